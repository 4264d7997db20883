"""When a turn has lasted too long, its peer was silent too long, or one of its requests has expired."""

from __future__ import annotations

from typing import Protocol

import anyio

from harness.contract.options import Timeouts
from harness.errors import HarnessError, TurnStalled, TurnTimeout
from harness.turn.turn import Turn


class Clock(Protocol):
    def __call__(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Deadlines:
    """The deadlines of one turn, which move with what happens in it."""

    def __init__(self, turn: Turn, timeouts: Timeouts, clock: Clock) -> None:
        self._turn = turn
        self._timeouts = timeouts
        self._clock = clock
        self._served_since: int | None = None
        self._moved = anyio.Event()

    def note_served(self) -> None:
        """From now on it is this turn's peer that is silent; a turn may wait for the session of the one before."""
        self._served_since = self._clock()
        self.note_moved()

    def note_moved(self) -> None:
        self._moved.set()

    async def wait(self) -> bool:
        """Sleeps until the next deadline, then true; false when they moved meanwhile."""
        self._moved = anyio.Event()
        due = self._next()
        seconds = None if due is None else max(0.0, (due - self._clock()) / 1000)
        with anyio.move_on_after(seconds):
            await self._moved.wait()
        return due is not None and self._clock() >= due

    def overdue_requests(self) -> list[str]:
        """The ids of open requests whose time is up."""
        now = self._clock()
        return [
            request.request_id
            for request in self._turn.open_requests
            if request.expires_at is not None and now >= request.expires_at
        ]

    def missed(self) -> HarnessError | None:
        """Why the turn must end now."""
        now, turn_ms, stalls_at = self._clock(), self._timeouts.turn_ms, self._stalls_at()
        if turn_ms is not None and now >= self._turn.started_at + turn_ms:
            return TurnTimeout(f"the turn took longer than its limit of {turn_ms / 1000:g} s")
        if stalls_at is not None and now >= stalls_at:
            return TurnStalled(f"the peer was silent for {(self._timeouts.idle_ms or 0) / 1000:g} s")
        return None

    def _next(self) -> int | None:
        turn = self._turn
        dues = [request.expires_at for request in turn.open_requests if request.expires_at is not None]
        if self._timeouts.turn_ms is not None:
            dues.append(turn.started_at + self._timeouts.turn_ms)
        stalls_at = self._stalls_at()
        if stalls_at is not None:
            dues.append(stalls_at)
        return min(dues, default=None)

    def _stalls_at(self) -> int | None:
        """When the peer has been silent for too long; null while it is not its turn to speak.

        A restored turn is idle from its return on, not from the crash on.
        """
        idle_ms = self._timeouts.idle_ms
        if idle_ms is None or self._served_since is None or self._turn.open_requests:
            return None
        return max(self._turn.last_activity_at, self._served_since) + idle_ms
