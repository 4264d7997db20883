"""The public names, pinned. Everything that is not listed here may move.

A change of this file is a change for callers: it belongs into CHANGELOG.md too.
"""

PUBLIC_NAMES: dict[str, list[str]] = {
    "bridge_mcp": [],
    "connectors.fake": ["FakeConfig", "FakeConnector", "Script", "Seen"],
    "harness": [],
}
