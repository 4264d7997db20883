"""The way over HTTP: calls of the host's tools, and permissions to be given, as they come to the bridge's endpoint."""

from __future__ import annotations

import anyio

from bridge_mcp.mapping import error_result, result_of
from bridge_mcp.protocol import CallRaised, JsonObject
from connectors._json import compact_json
from connectors._stall_watch import StallWatch
from connectors.claude.host_asks import TURN_OVER
from connectors.claude.host_tools import HostTools
from connectors.claude.protocol import ClaudeProtocol
from harness.connector import TurnSink

_WRITTEN_SECONDS = 2.0
_DEATH_SECONDS = 0.5


class BridgeRoute:
    """Waits for the host's answer where the peer's request is held. Belongs to one session."""

    def __init__(self, tools: HostTools, protocol: ClaudeProtocol, watch: StallWatch) -> None:
        self._tools = tools
        self._protocol = protocol
        self._watch = watch
        self._sink: TurnSink | None = None
        self._read = anyio.Event()
        self._over = anyio.Event()

    def begin(self, sink: TurnSink) -> None:
        """A turn runs."""
        self._sink, self._over = sink, anyio.Event()

    def end(self) -> None:
        """The turn is over: what is called now has nobody to answer it."""
        self._sink = None
        self._over.set()

    async def before_withdrawal(self) -> None:
        """A CLI that dies closes its connections first: then its calls are lost with the turn, not withdrawn."""
        with anyio.move_on_after(_DEATH_SECONDS):
            await self._over.wait()

    def has_read(self) -> None:
        """Lines of the CLI have come."""
        read, self._read = self._read, anyio.Event()
        read.set()

    async def on_call(self, call: CallRaised) -> JsonObject:
        """The result of one call, once the host has given it."""
        with self._watch.host_is_asked():
            if self._tools.is_approval(call):
                return _text_result(await self._permission(call))
            return await self._result(call)

    async def _result(self, call: CallRaised) -> JsonObject:
        sink = self._sink
        await self._until_written(call)
        request = self._protocol.raised(call)
        if sink is None or request is None:
            return error_result(TURN_OVER)
        async with sink.ask(request) as response:
            return result_of(response)

    async def _permission(self, call: CallRaised) -> JsonObject:
        sink = self._sink
        await self._until_written(call)
        known, request = self._protocol.known_permission(call), self._protocol.raised(call)
        if known is not None:
            return known
        if sink is None or request is None:
            return {"behavior": "deny", "message": TURN_OVER}
        async with sink.ask(request) as response:
            return self._protocol.permission(call, request, response)

    async def _until_written(self, call: CallRaised) -> None:
        """The request over HTTP may overtake the line on stdout that says what the model wrote."""
        with anyio.move_on_after(_WRITTEN_SECONDS):
            while not self._protocol.has_written(call):
                await self._read.wait()


def _text_result(value: JsonObject) -> JsonObject:
    return {"content": [{"type": "text", "text": compact_json(value)}]}
