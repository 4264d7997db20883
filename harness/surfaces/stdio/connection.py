"""One client: its calls run side by side, each is answered once, and nothing it says breaks the connection."""

from __future__ import annotations

import logging

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from harness.errors import HarnessError, Internal, LimitExceeded, unwrapped
from harness.surfaces.call import MAX_WAIT_MS, OwnedLLM
from harness.surfaces.stdio.calls import Calls
from harness.surfaces.stdio.following import ITEMS, PROBLEM, Following
from harness.surfaces.stdio.methods import fault_of, plain
from harness.wire.bodies import ConnectorInfo, ConnectorList
from harness.wire.json_rpc import (
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    JsonObject,
    RpcAnswer,
    RpcFault,
    RpcId,
    RpcMalformed,
    RpcMessage,
    RpcNotification,
    RpcRequest,
    fault_line,
    notification_line,
    result_line,
)

READY = "ready"
CANCEL = "$/cancelRequest"
SHUTDOWN = "shutdown"
PROTOCOL = "harness-stdio/1"
MAX_OPEN_CALLS = 1000

logger = logging.getLogger(__name__)


class Connection:
    """Whole lines go into `lines`, which makes us wait where the client reads slowly."""

    def __init__(
        self,
        llm: OwnedLLM,
        connectors: tuple[ConnectorInfo, ...],
        lines: MemoryObjectSendStream[bytes],
        tasks: TaskGroup,
    ) -> None:
        self._connectors = connectors
        self._lines = lines
        self._tasks = tasks
        self._calls = Calls(llm, connectors, Following(llm, self._notify, tasks))
        self._open: set[RpcId] = set()
        self._running = 0
        self._one_ended = anyio.Event()
        self._shutdown_id: RpcId | None = None

    async def greet(self, version: str, max_line_bytes: int) -> None:
        """The first line: who this is, and what may be asked."""
        told: JsonObject = {
            "protocol": PROTOCOL,
            "version": version,
            **plain(ConnectorList(connectors=list(self._connectors))),
            "capabilities": {
                "methods": [*self._calls.methods, SHUTDOWN],
                "notifications": [ITEMS, PROBLEM],
                "max_wait_ms": MAX_WAIT_MS,
                "max_line_bytes": max_line_bytes,
                "max_open_calls": MAX_OPEN_CALLS,
            },
        }
        await self._notify(READY, told)

    async def receive(self, message: RpcMessage) -> bool:
        """Takes up one message, in the order they came. False after the last one, `shutdown`."""
        match message:
            case RpcMalformed():
                await self.refuse(message.id, message.fault)
            case RpcAnswer():
                logger.info("the client answered something that nobody asked")
            case RpcNotification():
                self._notified(message)
                return message.method != SHUTDOWN
            case RpcRequest(method="shutdown"):
                self._shutdown_id = message.id
                return False
            case RpcRequest():
                refusal = self._refusal(message)
                if refusal is not None:
                    await self.refuse(message.id, refusal)
                    return True
                self._open.add(message.id)
                self._start(message.id, message.method, message.params)
        return True

    async def refuse(self, rpc_id: RpcId | None, fault: RpcFault) -> None:
        await self._lines.send(fault_line(rpc_id, fault))

    async def settle(self) -> None:
        """What waits is answered as it stands. Returns when every call is."""
        self._calls.settle()
        while self._running:
            self._one_ended = anyio.Event()
            await self._one_ended.wait()

    async def say_goodbye(self) -> None:
        """The answer to `shutdown` is the last line."""
        if self._shutdown_id is not None:
            await self._lines.send(result_line(self._shutdown_id, {}))

    # inside

    def _notified(self, message: RpcNotification) -> None:
        """A method without an id is done and not answered."""
        if message.method == CANCEL:
            rpc_id = message.params.get("id")
            if isinstance(rpc_id, str | int):
                self._calls.give_up(rpc_id)
        elif message.method in self._calls.methods and self._running < MAX_OPEN_CALLS:
            self._start(None, message.method, message.params)
        else:
            logger.warning("the client's notification '%s' was dropped", message.method[:100])

    def _refusal(self, request: RpcRequest) -> RpcFault | None:
        if request.method not in self._calls.methods:
            return RpcFault(METHOD_NOT_FOUND, f"there is no method '{request.method[:100]}'")
        if request.id in self._open:
            return RpcFault(INVALID_REQUEST, f"the id {request.id!r} is that of a call which is still open")
        if self._running >= MAX_OPEN_CALLS:
            return fault_of(LimitExceeded(f"{MAX_OPEN_CALLS} calls are open: wait for an answer", retry_after_ms=100))
        return None

    def _start(self, rpc_id: RpcId | None, method: str, params: JsonObject) -> None:
        self._running += 1
        self._tasks.start_soon(self._answer, rpc_id, method, params)

    async def _answer(self, rpc_id: RpcId | None, method: str, params: JsonObject) -> None:
        try:
            await self._run(rpc_id, method, params)
        finally:
            if rpc_id is not None:
                self._open.discard(rpc_id)
            self._running -= 1
            self._one_ended.set()

    async def _run(self, rpc_id: RpcId | None, method: str, params: JsonObject) -> None:
        try:
            with unwrapped():
                reply = await self._calls.run(rpc_id, method, params)
        except HarnessError as error:
            await self._failed(rpc_id, method, error)
        except Exception:
            # the edge: the client gets an answer whatever happens, and its other calls go on
            logger.exception("'%s' failed", method)
            await self._failed(rpc_id, method, Internal("an internal error; stderr has the details"))
        else:
            if rpc_id is not None:
                await self._lines.send(result_line(rpc_id, reply.result))
            if reply.then is not None:
                reply.then()

    async def _failed(self, rpc_id: RpcId | None, method: str, error: HarnessError) -> None:
        fault = fault_of(error)
        if rpc_id is None:
            logger.warning("'%s' failed, and was to be answered to nobody: %s", method, fault.message)
            return
        await self.refuse(rpc_id, fault)

    async def _notify(self, method: str, params: JsonObject) -> None:
        await self._lines.send(notification_line(method, params))
