"""Tasks of a session that wait for an answer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import anyio

from harness.contract.requests import HostRequest, HostResponse
from harness.turn import answers


class Parked:
    """One request that is waited for; several tasks may wait for the same one."""

    def __init__(self, request: HostRequest) -> None:
        self.answered = anyio.Event()
        self.response = answers.cancelled(request)
        self.waiters = 0
        self.request_id: str | None = None
        """Of the request as the host answered it."""

    def release(self, response: HostResponse | None = None) -> None:
        """Ends the wait; without a response the waiting task gets the synthetic error."""
        if response is not None:
            self.response = response
        self.answered.set()


class Asks:
    """What waits in `ask`, by the peer's name for it; a released one is gone from here."""

    def __init__(self) -> None:
        self._parked: dict[str, Parked] = {}

    @contextmanager
    def joined(self, peer_id: str, request: HostRequest) -> Generator[Parked]:
        """Counts the caller among those who wait; the first one finds `waiters` at 1."""
        parked = self._parked.setdefault(peer_id, Parked(request))
        parked.waiters += 1
        try:
            yield parked
        finally:
            parked.waiters -= 1
            if parked.waiters == 0 and self._parked.get(peer_id) is parked:
                del self._parked[peer_id]

    def take(self, peer_id: str) -> Parked | None:
        return self._parked.pop(peer_id, None)

    def release_all(self) -> None:
        parked, self._parked = self._parked, {}
        for one in parked.values():
            one.release()
