"""Codex's app-server as a peer: its loop runs there, our tools here."""

from connectors.codex.config import CodexOptions
from connectors.codex.connector import CodexConnector

__all__ = ["CodexConnector", "CodexOptions"]
