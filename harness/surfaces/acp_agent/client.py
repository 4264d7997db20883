"""The client, as the agent sees it: it is told updates, and asked for leave and answers."""

from __future__ import annotations

from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectSendStream

from harness.contract.value import JsonValue
from harness.wire.json_rpc import (
    JsonObject,
    RpcAnswer,
    RpcFault,
    RpcId,
    fault_line,
    notification_line,
    request_line,
    result_line,
)


class ClientRefused(Exception):
    """The client answered a request of ours with an error."""


@dataclass
class _Waiting:
    answered: anyio.Event = field(default_factory=anyio.Event)
    answer: RpcAnswer | None = None


class Client:
    """Writes whole lines into `lines`, which waits where the client reads slowly."""

    def __init__(self, lines: MemoryObjectSendStream[bytes]) -> None:
        self._lines = lines
        self._asked = 0
        self._waiting: dict[RpcId, _Waiting] = {}

    async def update(self, session_id: str, update: JsonObject) -> None:
        await self._lines.send(notification_line("session/update", {"sessionId": session_id, "update": update}))

    async def ask(self, method: str, params: JsonObject) -> JsonValue:
        """The result; an answer that comes when nobody waits any more is dropped.

        Raises:
            ClientRefused: an error came instead.
        """
        self._asked += 1
        rpc_id = self._asked
        waiting = self._waiting[rpc_id] = _Waiting()
        try:
            await self._lines.send(request_line(rpc_id, method, params))
            await waiting.answered.wait()
        finally:
            del self._waiting[rpc_id]
        if waiting.answer is None or waiting.answer.fault is not None:
            fault = waiting.answer.fault if waiting.answer is not None else None
            raise ClientRefused(fault.message if fault is not None else "no answer")
        return waiting.answer.result

    def answered(self, answer: RpcAnswer) -> None:
        """The client has answered a request of ours."""
        waiting = None if answer.id is None else self._waiting.get(answer.id)
        if waiting is not None:
            waiting.answer = answer
            waiting.answered.set()

    async def answer(self, rpc_id: RpcId, result: JsonObject) -> None:
        await self._lines.send(result_line(rpc_id, result))

    async def refuse(self, rpc_id: RpcId | None, fault: RpcFault) -> None:
        await self._lines.send(fault_line(rpc_id, fault))
