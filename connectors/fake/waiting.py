"""What the scripted peer waits for: its requests, raised in either style of the port, until each is resolved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from connectors.fake.parts import Style
from harness.connector import TurnSink
from harness.contract.requests import HostRequest, HostResponse
from harness.errors import Internal
from harness.turn.answers import cancelled
from harness.turn.events import RequestRaised, RequestWithdrawn


@dataclass
class Waiting:
    """A request the peer raised; `asking` holds the task that asks, null when it was raised as an event."""

    request: HostRequest
    resolved: anyio.Event = field(default_factory=anyio.Event)
    asking: anyio.CancelScope | None = None

    def is_named(self, name: str) -> bool:
        return name in (self.request.peer_request_id, self.request.call_id)


class WaitingRequests:
    """The open requests of one turn, by the peer's name for them."""

    def __init__(
        self, sink: TurnSink, tasks: TaskGroup, on_answer: Callable[[HostRequest, HostResponse], None]
    ) -> None:
        self._sink = sink
        self._tasks = tasks
        self._on_answer = on_answer
        self._open: dict[str, Waiting] = {}

    def open(self, requests: Sequence[HostRequest], style: Style) -> list[Waiting]:
        """Raises them together: the events of one read, or one task each."""
        raised = [Waiting(request) for request in requests]
        self._open.update({waiting.request.peer_request_id or "": waiting for waiting in raised})
        if style == "emit":
            self._sink.emit(*(RequestRaised(request) for request in requests))
            return raised
        for waiting in raised:
            waiting.asking = anyio.CancelScope()
            self._tasks.start_soon(self._ask, waiting, waiting.asking)
        return raised

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        """The answer to a request that was raised as an event.

        Raises:
            Internal: nothing waits for it; a real peer would be confused.
        """
        waiting = self._open.get(request.peer_request_id or "")
        if waiting is None or waiting.asking is not None:
            raise Internal(f"an answer to '{request.request_id}' was delivered, and nothing waits for it")
        self._resolve(waiting, request, response)

    def withdraw(self, name: str) -> None:
        """The peer no longer waits; named by call id or by the peer's id. No-op when it was answered before."""
        for waiting in [one for one in self._open.values() if one.is_named(name)]:
            del self._open[waiting.request.peer_request_id or ""]
            if waiting.asking is not None:
                waiting.asking.cancel()
            else:
                self._sink.emit(RequestWithdrawn(waiting.request.peer_request_id or ""))
            waiting.resolved.set()

    def close(self) -> None:
        """After an interrupt: what was raised as an event gets the synthetic answer from ourselves."""
        for waiting in [one for one in self._open.values() if one.asking is None]:
            self._resolve(waiting, waiting.request, cancelled(waiting.request))

    async def resolved(self, names: Iterable[str] | None = None) -> None:
        """Returns when these are resolved, by default every open one."""
        wanted = None if names is None else set(names)
        for waiting in list(self._open.values()):
            if wanted is None or any(waiting.is_named(name) for name in wanted):
                await waiting.resolved.wait()

    async def _ask(self, waiting: Waiting, scope: anyio.CancelScope) -> None:
        with scope:
            async with self._sink.ask(waiting.request) as response:
                if not waiting.resolved.is_set():  # else the answer has crossed the withdrawal
                    self._resolve(waiting, waiting.request, response)

    def _resolve(self, waiting: Waiting, request: HostRequest, response: HostResponse) -> None:
        del self._open[waiting.request.peer_request_id or ""]
        self._on_answer(request, response)
        waiting.resolved.set()
