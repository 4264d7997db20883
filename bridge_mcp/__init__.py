"""The MCP server that inner harnesses see: a sans-I/O core, and the mapping between our values and MCP's."""

from bridge_mcp.mapping import MappedTools, map_tools, result_of
from bridge_mcp.protocol import CallRaised, CallWithdrawn, McpServer, Reply, ToolsListed

__all__ = [
    "CallRaised",
    "CallWithdrawn",
    "MappedTools",
    "McpServer",
    "Reply",
    "ToolsListed",
    "map_tools",
    "result_of",
]
