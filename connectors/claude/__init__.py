"""The Claude Code CLI as a connector."""

from connectors.claude.config import ClaudeOptions
from connectors.claude.connector import ClaudeConnector

__all__ = ["ClaudeConnector", "ClaudeOptions"]
