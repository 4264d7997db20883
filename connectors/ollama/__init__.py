"""Ollama's native API, over plain HTTP."""

from connectors.ollama.config import OllamaConfig
from connectors.ollama.connector import OllamaConnector

__all__ = ["OllamaConfig", "OllamaConnector"]
