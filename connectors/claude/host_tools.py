"""The host's tools as the CLI has them, whichever way they get there: names, MCP server, calls as requests. Pure."""

from __future__ import annotations

from bridge_mcp.mapping import MappedTools
from bridge_mcp.protocol import CallRaised, McpServer
from connectors._json import JsonObject, compact_json, object_in, plain_text_in
from connectors.claude.argv import SERVER_NAME, TOOL_PREFIX
from connectors.claude.messages import ModelCall
from harness.contract.requests import CallIdSource, HostRequest, RequestKind

APPROVE = "approve"
"""The tool behind `--permission-prompt-tool`; the model does not see it."""


class HostTools:
    """With `approves` the MCP server also has a tool that the CLI itself asks for permissions."""

    def __init__(self, mapped: MappedTools, *, approves: bool = False) -> None:
        self._ours = mapped.ours
        self._approve = _free_name(mapped) if approves else None
        tools = [*mapped.tools, _approve_tool(self._approve)] if self._approve else mapped.tools
        self.server = McpServer(tools, name=SERVER_NAME, call_id_of=self._call_id)
        self.wire_names = frozenset(TOOL_PREFIX + name for name in mapped.ours)
        """The tools' full names, as the model sees them."""

    @property
    def approve_name(self) -> str | None:
        """The full name of the tool that gives permissions."""
        return None if self._approve is None else TOOL_PREFIX + self._approve

    def has(self, full_name: str) -> bool:
        """Whether it is a tool of the host that the model may call."""
        return full_name in self.wire_names

    def is_approval(self, call: CallRaised) -> bool:
        return call.tool_name == self._approve

    def request_of(self, call: CallRaised, written: ModelCall | None) -> HostRequest:
        """The request for the host; `written` is the call as the model wrote it."""
        tool = self._ours[call.tool_name]
        return HostRequest(
            kind=RequestKind.TOOL_CALL,
            call_id=call.key,
            call_id_source=CallIdSource.EXACT if call.tells_id else CallIdSource.MADE_UP,
            peer_request_id=call.key,
            order=written.order if written else None,
            tool_name=tool.name,
            arguments_json=written.arguments_json(call.arguments) if written else compact_json(call.arguments),
            read_only=tool.read_only,
            parent_call_id=written.parent_call_id if written else None,
        )

    def _call_id(self, params: JsonObject) -> str | None:
        """A permission is asked for under the id of the call that it gates: the two are told apart."""
        told = plain_text_in(object_in(params.get("_meta")).get("claudecode/toolUseId")) or None
        return f"{APPROVE}:{told}" if told is not None and params.get("name") == self._approve else told


def _free_name(mapped: MappedTools) -> str:
    name, number = APPROVE, 1
    while name in mapped.ours:
        number += 1
        name = f"{APPROVE}_{number}"
    return name


def _approve_tool(name: str) -> JsonObject:
    properties: JsonObject = {"tool_name": {"type": "string"}, "input": {"type": "object"}}
    return {
        "name": name,
        "description": "Asks the host whether a tool may run.",
        "inputSchema": {"type": "object", "properties": {**properties, "tool_use_id": {"type": "string"}}},
    }
