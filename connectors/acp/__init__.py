"""Any agent that speaks the Agent Client Protocol as a peer."""

from connectors.acp.config import AcpOptions
from connectors.acp.connector import AcpConnector

__all__ = ["AcpConnector", "AcpOptions"]
