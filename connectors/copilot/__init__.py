"""GitHub Copilot CLI as a peer: its server mode for SDKs, or the Agent Client Protocol."""

from connectors.copilot.config import CopilotOptions
from connectors.copilot.connector import CopilotConnector

__all__ = ["CopilotConnector", "CopilotOptions"]
