"""Finds out that a peer has stalled: it says nothing, and it is not the host's turn to say something."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

import anyio

from connectors._options import CliOptions
from harness.connector import TurnSink
from harness.contract.output import StopReason
from harness.errors import TurnStalled, unwrapped
from harness.turn.events import TurnEnded, TurnEvent, TurnFailed, notice


class Watched(Protocol):
    """What a wire tells of its running turn."""

    @property
    def waits_for_host(self) -> bool:
        """Whether something that the peer has asked over this wire is not answered yet."""
        ...

    def unfinished_calls(self) -> Mapping[str, str]:
        """The calls that the model has begun and of which no end has come: id -> tool."""
        ...


@dataclass(frozen=True, slots=True)
class StallLimits:
    """After how much silence a turn has stalled, and whether it is then interrupted."""

    seconds: float
    interrupts: bool


def stall_limits(options: CliOptions) -> StallLimits:
    return StallLimits(options.stalled_seconds, options.interrupt_when_stalled)


class StallWatch:
    """Belongs to one session, and watches its turns one after the other."""

    def __init__(self, peer: str, wire: Watched, limits: StallLimits) -> None:
        self.given_up: TurnStalled | None = None
        """Why the running turn was interrupted by us."""
        self._peer = peer
        self._wire = wire
        self._limits = limits
        self._moved = anyio.Event()
        self._rests = False
        self._asked = 0

    def moved(self) -> None:
        """Something came from the peer or went to it."""
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    def rest(self) -> None:
        """The turn is being interrupted, which has a limit of its own."""
        self._rests = True
        self.moved()

    @contextmanager
    def host_is_asked(self) -> Generator[None]:
        """Around a call that comes beside the wire: while it is open the peer waits for the host."""
        self._asked += 1
        self.moved()
        try:
            yield
        finally:
            self._asked -= 1
            self.moved()

    async def until(self, over: anyio.Event, sink: TurnSink, interrupt: Callable[[], Awaitable[None]]) -> None:
        """Waits for the turn's end, and tells each silence once; interrupts the first one where that is wanted."""
        self.given_up, self._rests = None, False
        with unwrapped():
            async with anyio.create_task_group() as watching:
                watching.start_soon(self._watch, sink, interrupt)
                await over.wait()
                watching.cancel_scope.cancel()

    def with_stall(self, events: Sequence[TurnEvent]) -> list[TurnEvent]:
        """A turn that we have interrupted has failed, though the peer calls it cancelled."""
        return [self._end(event) for event in events]

    # inside

    @property
    def _has_time(self) -> bool:
        return self._rests or self._asked > 0 or self._wire.waits_for_host

    async def _watch(self, sink: TurnSink, interrupt: Callable[[], Awaitable[None]]) -> None:
        while True:
            moved = self._moved
            with anyio.move_on_after(None if self._has_time else self._limits.seconds):
                await moved.wait()
            if moved.is_set():
                continue
            told = self._told()
            sink.emit(notice("stalled", told))
            if self._limits.interrupts:
                self.given_up = TurnStalled(told)
                await interrupt()
                return
            await moved.wait()

    def _told(self) -> str:
        calls = self._wire.unfinished_calls()
        named = ", ".join(f"'{call_id}' of '{tool}'" for call_id, tool in calls.items())
        silent = f"{self._peer} has said nothing for {self._limits.seconds:g} s"
        return f"{silent}; the model has called {named}, and nothing was heard of it since" if named else silent

    def _end(self, event: TurnEvent) -> TurnEvent:
        was_cut = isinstance(event, TurnEnded) and event.stop_reason == StopReason.CANCELLED
        return TurnFailed(self.given_up) if was_cut and self.given_up is not None else event
