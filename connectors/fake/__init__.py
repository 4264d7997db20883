"""A connector without a model behind it: it follows a script, or echoes. For tests, examples and documentation."""

from connectors.fake.config import FakeConfig
from connectors.fake.connector import FakeConnector, Seen
from connectors.fake.script import Script

__all__ = ["FakeConfig", "FakeConnector", "Script", "Seen"]
