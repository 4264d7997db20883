"""An embedded model: no key, no server, no network."""

from connectors.local.config import LocalConfig
from connectors.local.connector import LocalConnector

__all__ = ["LocalConfig", "LocalConnector"]
