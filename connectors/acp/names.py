"""The host's tools under the names that agents give them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from connectors._json import JsonObject, object_in, plain_text_in

_FORMS = (
    "mcp__{server}__{tool}",
    "mcp_{server}_{tool}",
    "mcp.{server}.{tool}",
    "{server}-{tool}",
    "{server}_{tool}",
    "{server}/{tool}",
    "Tool: {server}/{tool}",
    "{tool} ({server} MCP Server)",
)


class ToolNames:
    """Which of the host's tools an agent means."""

    def __init__(self, server: str, tools: Iterable[str]) -> None:
        self._server = server
        self._tools = set(tools)
        self._by_form = {form.format(server=server, tool=tool): tool for tool in self._tools for form in _FORMS}

    def tool_of(self, update: JsonObject) -> str | None:
        """The tool in a tool call's update; null if it is none of the host's, or not told."""
        raw = object_in(update.get("rawInput"))
        if raw.get("server") == self._server and plain_text_in(raw.get("tool")) in self._tools:
            return plain_text_in(raw.get("tool"))
        meta = object_in(update.get("_meta"))
        named = [object_in(meta.get(agent)).get("toolName") for agent in ("claudeCode", "level2-harness")]
        for told in (*named, update.get("title"), _prefix_of(update.get("toolCallId"))):
            tool = self._by_form.get(plain_text_in(told))
            if tool is not None:
                return tool
        return None

    def arguments_of(self, update: JsonObject) -> JsonObject | None:
        """What the call is called with; null where the update does not tell."""
        raw = update.get("rawInput")
        if not isinstance(raw, dict):
            return None
        told = object_in(raw)
        if told.get("server") == self._server and "tool" in told:
            return object_in(told.get("arguments"))
        return told


def _prefix_of(call_id: object) -> str:
    """Of an id that has the tool's name before it."""
    return plain_text_in(call_id).rpartition("__")[0]
