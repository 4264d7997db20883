"""Anthropic's Messages API, over plain HTTP."""

from connectors.anthropic.config import AnthropicConfig
from connectors.anthropic.connector import AnthropicConnector

__all__ = ["AnthropicConfig", "AnthropicConnector"]
