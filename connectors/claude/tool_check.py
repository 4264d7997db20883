"""Which tools and servers the CLI says it has, held against what it was to have. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from connectors._json import JsonObject, objects_in, plain_text_in
from connectors.claude.host_tools import HostTools
from connectors.claude.turn_reader import OUTPUT_TOOL
from harness.errors import ConnectorUnavailable
from harness.turn.events import TurnEvent, notice

_TOOL_NAMES = {"Task": "Agent"}
"""The CLI lists a tool under another name than it is asked for and called by."""


class ToolCheck:
    """Reads the line that begins every turn; what is wrong but no danger is told once."""

    def __init__(self, tools: HostTools, internal_tools: Collection[str], sources: Collection[str]) -> None:
        self._tools = tools
        self._internal_tools = frozenset(internal_tools)
        self._sources = frozenset(sources)
        self._told: set[str] = set()

    def read(self, line: JsonObject) -> list[TurnEvent]:
        """
        Raises:
            ConnectorUnavailable: a tool of the host is missing.
        """
        tools = line.get("tools")
        if not isinstance(tools, list):
            return []
        named = {plain_text_in(name) for name in cast(list[object], tools)} - {""}
        present = {_TOOL_NAMES.get(name, name) for name in named}
        missing = sorted(self._tools.wire_names - present)
        if missing:
            version = plain_text_in(line.get("claude_code_version"))
            raise ConnectorUnavailable(
                f"Claude Code {version} started without our tools; missing: {', '.join(missing)[:500]}",
                reason="tools_unavailable",
            )
        known = self._tools.wire_names | self._internal_tools | {self._tools.approve_name or "", OUTPUT_TOOL}
        return [
            *self._once("surplus_tools", "has tools nobody asked for", present - known - self._delegated(present)),
            *self._once("missing_tools", "does not have these of its tools", self._internal_tools - present),
            *self._once("tool_source_failed", "could not reach these tool sources", self._failed_sources(line)),
        ]

    def _delegated(self, present: Collection[str]) -> set[str]:
        return {name for name in present if any(name.startswith(f"mcp__{source}__") for source in self._sources)}

    def _failed_sources(self, line: JsonObject) -> set[str]:
        servers = {plain_text_in(one.get("name")): one.get("status") for one in objects_in(line.get("mcp_servers"))}
        return {source for source in self._sources if servers.get(source, "connected") == "failed"}

    def _once(self, code: str, what: str, names: Collection[str]) -> list[TurnEvent]:
        new = sorted(name for name in names if f"{code}/{name}" not in self._told)
        self._told.update(f"{code}/{name}" for name in new)
        return [notice(code, f"Claude Code {what}: {', '.join(new)[:500]}")] if new else []
