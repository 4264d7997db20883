"""One agent process and the turns it runs: moves bytes between the process and its wire, nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import anyio

from connectors._process import PeerProcess
from connectors._stall_watch import StallLimits, StallWatch, Watched
from harness.connector import SessionGone, TurnSink
from harness.contract.content import ContentBlock
from harness.contract.options import TurnOptions
from harness.contract.requests import HostRequest, HostResponse
from harness.errors import HarnessError, NotSupported, PeerLost
from harness.turn.events import TurnEvent


class AgentWire(Watched, Protocol):
    """A vendor's protocol: pure, fed with lines, asked for bytes."""

    @property
    def turn_is_over(self) -> bool: ...

    def receive(self, lines: Sequence[bytes]) -> list[TurnEvent]:
        """The lines of one read; raises errors of our tree."""
        ...

    def data_to_send(self) -> bytes:
        """What was said since the last call."""
        ...

    def start_turn(self, content: Sequence[ContentBlock], options: TurnOptions) -> list[TurnEvent]:
        """Sends the user's message; gives what there is to tell before the peer says anything."""
        ...

    def respond(self, request: HostRequest, response: HostResponse) -> Sequence[TurnEvent]:
        """The host's answer; one that nobody waits for any more is dropped. Gives what there is to tell about it."""
        ...

    def interrupt(self) -> None:
        """Asks the peer to stop the turn; its end comes as events."""
        ...


class AgentSession:
    """The `Session` of a connector around a process. `wait_until` and `pump` are driven by whoever opened it.

    `has_read` is called after each read, before its events reach the turn; `cancelled` when the host gives the turn up.
    """

    def __init__(
        self,
        process: PeerProcess,
        wire: AgentWire,
        *,
        interrupt_seconds: float,
        stall: StallLimits,
        has_read: Callable[[], None] | None = None,
        cancelled: Callable[[], None] | None = None,
    ) -> None:
        self.watch = StallWatch(f"'{process.name}'", wire, stall)
        self._process = process
        self._wire = wire
        self._interrupt_seconds = interrupt_seconds
        self._has_read = has_read
        self._cancelled = cancelled
        self._first_notices: list[TurnEvent] = []
        self._sink: TurnSink | None = None
        self._over: anyio.Event | None = None
        self._lost: HarnessError | None = None

    @property
    def sink(self) -> TurnSink | None:
        """Where the running turn is told; null between turns, and once the turn is over."""
        return None if self._wire.turn_is_over else self._sink

    async def wait_until(self, is_reached: Callable[[], bool]) -> None:
        """Talks to the peer before there are turns, until its answers have brought it so far.

        Raises:
            PeerLost: it ended before.
        """
        self.flush()
        while not is_reached():
            self._wire.receive(await self._process.receive())
            self.flush()

    def announce(self, *notices: TurnEvent) -> None:
        """To be told with the first turn."""
        self._first_notices += notices

    async def pump(self) -> None:
        """Feeds the peer's lines to the wire, and what comes of them to the turn, until the peer is gone."""
        try:
            async for lines in self._process.lines():
                events = self._wire.receive(lines)
                self.flush()
                self.watch.moved()
                if self._has_read is not None:
                    self._has_read()
                if self._sink is not None:
                    self._sink.emit(*self.watch.with_stall(events))
                if self._over is not None and self._wire.turn_is_over:
                    self._over.set()
        except HarnessError as error:
            self._lost = error
            self._process.end_soon()
        finally:
            self._lost = self._lost or PeerLost(f"'{self._process.name}' was ended")
            if self._over is not None:
                self._over.set()

    def flush(self) -> bool:
        """Writes what waits. False when the peer is gone: whoever reads finds its last words first, then its end."""
        data = self._wire.data_to_send()
        if not data:
            return True
        try:
            self._process.write(data)
        except PeerLost:
            return False
        self.watch.moved()
        return True

    # Session

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        if self._lost is not None or self._process.returncode is not None:
            raise SessionGone
        told = self._wire.start_turn(content, options)
        self._sink, self._over = sink, anyio.Event()
        try:
            notices, self._first_notices = self._first_notices, []
            sink.emit(*notices, *told)
            if not self.flush():
                raise SessionGone
            await self.watch.until(self._over, sink, self.interrupt)
            if self._lost is not None and not self._wire.turn_is_over:
                raise self.watch.given_up or self._lost
        finally:
            self._sink = self._over = None

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        raise NotSupported(f"connector '{self._process.name}' cannot go on with a turn of a process that died")

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        events = self._wire.respond(request, response)
        self.flush()
        if events and self._sink is not None:
            self._sink.emit(*events)

    async def interrupt(self) -> None:
        """Asks the peer; if it does not stop in time, ends it. Requests it left open are closed with the turn's end."""
        over = self._over
        if over is None:
            return
        self.watch.rest()
        self._wire.interrupt()
        self.flush()
        if self._cancelled is not None:
            self._cancelled()
        with anyio.move_on_after(self._interrupt_seconds):
            await over.wait()
            return
        await self._process.end()
