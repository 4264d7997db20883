"""The way over HTTP: calls of the host's tools, and permissions to be given, as they come to the bridge's endpoint."""

from __future__ import annotations

import anyio

from bridge_mcp.mapping import error_result, result_of
from bridge_mcp.protocol import CallRaised, JsonObject
from connectors._json import compact_json
from connectors.claude.protocol import TURN_OVER, ClaudeProtocol
from harness.connector import TurnSink

_WRITTEN_SECONDS = 2.0
"""How long a call may be ahead of the line on stdout that says how the model wrote it."""


class BridgeRoute:
    """Waits for the host's answer where the peer's request is held. Belongs to one session."""

    def __init__(self, protocol: ClaudeProtocol) -> None:
        self._protocol = protocol
        self._sink: TurnSink | None = None
        self._read = anyio.Event()

    def begin(self, sink: TurnSink) -> None:
        """A turn runs."""
        self._sink = sink

    def end(self) -> None:
        """The turn is over: what is called now has nobody to answer it."""
        self._sink = None

    def has_read(self) -> None:
        """Lines of the CLI have come."""
        read, self._read = self._read, anyio.Event()
        read.set()

    async def on_call(self, call: CallRaised) -> JsonObject:
        """The result of one call, once the host has given it."""
        sink = self._sink
        if sink is None:
            return self._closed(call)
        with anyio.move_on_after(_WRITTEN_SECONDS):
            while not self._protocol.has_written(call):
                await self._read.wait()
        raised = self._protocol.raised(call)
        if raised is None:
            return self._closed(call)
        async with sink.ask(raised) as response:
            if self._protocol.is_approval(call):
                return _text_result(self._protocol.permission(call, raised, response))
            return result_of(response)

    def _closed(self, call: CallRaised) -> JsonObject:
        if self._protocol.is_approval(call):
            return _text_result({"behavior": "deny", "message": TURN_OVER})
        return error_result(TURN_OVER)


def _text_result(value: JsonObject) -> JsonObject:
    return {"content": [{"type": "text", "text": compact_json(value)}]}
