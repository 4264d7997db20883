"""One conversation's end of the bridge: messages of the peer in, replies out, and a task for each call that waits.

Transport-free: `http.py` brings the messages and takes the replies.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TypeAlias, cast

import anyio
from anyio.abc import TaskGroup

from bridge_mcp.mapping import error_result
from bridge_mcp.protocol import CallRaised, CallWithdrawn, JsonObject, McpServer, Reply, ToolsListed
from harness.contract.value import JsonValue
from harness.errors import HarnessError
from harness.wire.json_rpc import REQUEST_CANCELLED

OnCall: TypeAlias = Callable[[CallRaised], Awaitable[JsonObject]]
"""Runs one call and gives its MCP result; cancelled when the peer no longer waits for it."""

_LEAVE_SECONDS = 0.5

_logger = logging.getLogger(__name__)


class Exchange:
    """One message of the peer, and what goes back to where it came from. Identity is that of the object."""

    def __init__(self, message: JsonValue) -> None:
        asked = cast(JsonObject, message) if isinstance(message, dict) else {}
        self.rpc_id = asked.get("id")
        self.is_request = "method" in asked and "id" in asked
        """Whether an answer will come."""
        self.has_answer = False
        self._messages: deque[JsonObject] = deque()
        self._arrived = anyio.Event()

    def put(self, message: JsonObject) -> None:
        self.has_answer |= "method" not in message
        self._messages.append(message)
        self._arrived.set()

    async def next(self) -> JsonObject:
        """The next message that goes back; the one without a `method` is the answer, and the last."""
        while not self._messages:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        return self._messages.popleft()


class Endpoint:
    """Serves one peer with one `McpServer`. Its calls run in `group`, which the owner leaves after `settle`."""

    def __init__(
        self, server: McpServer, on_call: OnCall, group: TaskGroup, *, progress_seconds: float | None = None
    ) -> None:
        self.tools_listed = anyio.Event()
        """Set once the peer has been told our tools."""
        self._server = server
        self._on_call = on_call
        self._group = group
        self._progress_seconds = progress_seconds
        self._calls: dict[str, anyio.CancelScope] = {}
        self._exchanges: set[Exchange] = set()
        self._over = anyio.Event()

    def received(self, message: JsonValue) -> Exchange:
        """Takes a message; what it brings comes out of the exchange, which its transport leaves with `left`."""
        exchange = Exchange(message)
        self._exchanges.add(exchange)
        for event in self._server.receive(message, exchange):
            match event:
                case Reply():
                    exchange.is_request = True  # also what is no request may be answered with an error
                    self._send([event])
                case CallRaised():
                    self._begin(event)
                case CallWithdrawn():
                    self._withdraw(event)
                case ToolsListed():
                    self.tools_listed.set()
        if not exchange.is_request:
            self._dismiss_cancelled()
        return exchange

    def left(self, exchange: Exchange) -> None:
        """The peer has its answer, or has gone from where it would have come to: then its call is withdrawn."""
        self._exchanges.discard(exchange)
        for call in self._server.disconnected(exchange):
            if self._over.is_set():
                self._withdraw(call)
            elif call.key in self._calls:
                self._group.start_soon(self._withdraw_soon, call)

    def settle(self, reason: str) -> None:
        """Ends every call with an error result; later ones get it at once."""
        self._over.set()
        self._send(self._server.answer_all(error_result(reason)))
        for scope in self._calls.values():
            scope.cancel()

    # inside

    def _begin(self, call: CallRaised) -> None:
        if self._over.is_set():
            self._send(self._server.answer(call.key, error_result("the conversation has ended")))
            return
        scope = self._calls[call.key] = anyio.CancelScope()
        self._group.start_soon(self._run, call, scope)

    async def _run(self, call: CallRaised, scope: anyio.CancelScope) -> None:
        try:
            with scope:
                async with anyio.create_task_group() as signs:
                    if self._progress_seconds is not None:
                        signs.start_soon(self._show_life, call.key, self._progress_seconds)
                    self._send(self._server.answer(call.key, await self._result(call)))
                    signs.cancel_scope.cancel()
        finally:
            if self._calls.get(call.key) is scope:
                del self._calls[call.key]

    async def _result(self, call: CallRaised) -> JsonObject:
        try:
            return await self._on_call(call)
        except HarnessError as error:
            return error_result(error.message)
        except Exception:
            _logger.exception("the call '%s' of '%s' failed", call.key, call.tool_name)
            return error_result("the host failed to run this call")

    async def _show_life(self, key: str, seconds: float) -> None:
        """For peers that give up on silence; those that asked for no progress get a sign from the transport."""
        while True:
            await anyio.sleep(seconds)
            self._send(self._server.progress(key))

    async def _withdraw_soon(self, call: CallWithdrawn) -> None:
        """A peer that dies leaves too, and then its call is lost: whoever reads its output is to notice first."""
        with anyio.move_on_after(_LEAVE_SECONDS):
            await self._over.wait()
        self._withdraw(call)

    def _withdraw(self, call: CallWithdrawn) -> None:
        scope = self._calls.pop(call.key, None)
        if scope is not None:
            scope.cancel()

    def _dismiss_cancelled(self) -> None:
        """A notification may have withdrawn a call: whoever still holds its request open is let go."""
        for exchange in self._exchanges:
            if exchange.is_request and not exchange.has_answer and not self._server.is_waiting(exchange):
                exchange.put(_cancelled(exchange.rpc_id))

    def _send(self, replies: list[Reply]) -> None:
        for reply in replies:
            if isinstance(reply.reply_to, Exchange):
                reply.reply_to.put(reply.message)


def _cancelled(rpc_id: JsonValue) -> JsonObject:
    error: JsonObject = {"code": REQUEST_CANCELLED, "message": "the request was cancelled"}
    return {"jsonrpc": "2.0", "id": rpc_id, "error": error}
