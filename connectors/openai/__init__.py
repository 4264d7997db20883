"""OpenAI's Responses API and Chat Completions, and every server compatible with one of them."""

from connectors.openai.config import OpenAiConfig
from connectors.openai.connector import OpenAiConnector

__all__ = ["OpenAiConfig", "OpenAiConnector"]
