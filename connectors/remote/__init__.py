"""Another harness as a connector: what it reaches, this one reaches too."""

from connectors.remote.config import RemoteConfig
from connectors.remote.connector import RemoteConnector

__all__ = ["RemoteConfig", "RemoteConnector"]
