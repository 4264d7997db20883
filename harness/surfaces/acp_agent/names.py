"""Words of ours on the client's wire (pure)."""

AGENT = "level2-harness"
META = "level2-harness"
"""The member of `_meta` with what the protocol has no word for."""
CWD_LABEL = "acp_cwd"
"""The label with the directory of a session: clients list sessions by it."""
SERVERS_LABEL = "acp_servers"
"""The label with the names of a session's MCP servers, and who runs each."""
