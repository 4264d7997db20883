"""The public names, pinned. Everything that is not listed here may move.

A change of this file is a change for callers: it belongs into CHANGELOG.md too.
"""

PUBLIC_NAMES: dict[str, list[str]] = {
    "bridge_mcp": [
        "CallRaised",
        "CallWithdrawn",
        "MappedTools",
        "McpServer",
        "Reply",
        "ToolsListed",
        "map_tools",
        "result_of",
    ],
    "connectors.claude": ["ClaudeConnector", "ClaudeOptions"],
    "connectors.fake": ["FakeConfig", "FakeConnector", "Script", "Seen"],
    "harness": [
        "Completion",
        "ContentBlock",
        "ConversationDirectory",
        "ConversationOptions",
        "ConversationalLLM",
        "HarnessError",
        "HostRequest",
        "HostResponse",
        "ImageBlock",
        "Limits",
        "LlmCapabilities",
        "LocalHarness",
        "OutputItem",
        "Registry",
        "RemoteHarness",
        "Rights",
        "Settings",
        "TextBlock",
        "Timeouts",
        "ToolDescriptor",
        "ToolRegistry",
        "TurnOptions",
        "TurnState",
        "UsageInfo",
        "connect",
        "run_to_completion",
        "run_to_completion_sync",
        "tool",
    ],
}
