"""Calls of the host's tools as they come to the bridge: each waits for the host's answer where its request is held."""

from __future__ import annotations

import json
from collections.abc import Callable

import anyio

from bridge_mcp.mapping import MappedTools, error_result, result_of
from bridge_mcp.protocol import CallRaised, JsonObject
from connectors._json import compact_json, objects_in, plain_text_in
from connectors.acp.protocol import AcpProtocol
from connectors.acp.records import CallNotes
from harness.connector import TurnSink
from harness.contract.requests import HostRequest, RequestKind
from harness.contract.value import JsonValue

_AHEAD_SECONDS = 1.0
"""How long a call may be ahead of the update that tells of it."""
_TURN_OVER = "The turn ended before this call was answered."


def as_plain_text(result: JsonObject) -> JsonObject:
    """For an agent that reads a text that is JSON as structured content: where that would be no object, it has one."""
    content = objects_in(result.get("content"))
    try:
        told: JsonValue = json.loads(plain_text_in(content[0].get("text"))) if content else {}
    except ValueError:
        return result
    return result if isinstance(told, dict) else {**result, "structuredContent": {"value": told}}


class AcpBridge:
    """Belongs to one session; `sink` gives the running turn's, null between turns."""

    def __init__(
        self, tools: MappedTools, protocol: AcpProtocol, sink: Callable[[], TurnSink | None], notes: CallNotes
    ) -> None:
        self._ours = tools.ours
        self._protocol = protocol
        self._sink = sink
        self._notes = notes
        self._read = anyio.Event()

    def has_read(self) -> None:
        """Lines of the agent have come."""
        read, self._read = self._read, anyio.Event()
        read.set()

    async def on_call(self, call: CallRaised) -> JsonObject:
        """The result of one call, once the host has given it."""
        sink = self._sink()
        if sink is None or self._protocol.is_interrupted:
            return error_result(_TURN_OVER)
        request = await self._request(call)
        if self._sink() is not sink or self._protocol.is_interrupted:
            return error_result(_TURN_OVER)
        sink.emit(*self._protocol.acted())
        self._notes.opened(call.key, request.tool_name or "")
        async with sink.ask(request) as response:
            if self._sink() is sink:  # else there is nobody who could read it
                self._notes.closed(call.key)
            result = result_of(response)
            return as_plain_text(result) if self._protocol.takes_json_for_structured else result

    async def _request(self, call: CallRaised) -> HostRequest:
        correlation = self._protocol.correlation
        told = call.key if call.tells_id else None
        found = None
        with anyio.move_on_after(_AHEAD_SECONDS):
            if told is not None:  # the stream still tells its place among the others
                while not correlation.has_seen(told):
                    await self._read.wait()
            while found is None:
                found = correlation.find(call.tool_name, call.arguments, told_id=told)
                if found is None:
                    await self._read.wait()
        if found is None:
            found = correlation.find(call.tool_name, call.arguments, told_id=told, is_last_try=True)
        assert found is not None, "the last try always finds something"
        tool = self._ours[call.tool_name]
        return HostRequest(
            kind=RequestKind.TOOL_CALL,
            call_id=found.call_id or call.key,
            call_id_source=found.source,
            peer_request_id=call.key,
            order=found.order,
            tool_name=tool.name,
            arguments_json=compact_json(call.arguments),
            read_only=tool.read_only,
        )
