"""Requests that wait for something to happen: freed when their client leaves, settled when the server stops."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

import anyio
from starlette.types import Receive

from harness.errors import unwrapped


class Waiters:
    """What is parked on this server, in no order."""

    def __init__(self) -> None:
        self._parked: set[anyio.CancelScope] = set()
        self._changed = anyio.Event()
        self.settled = False
        """True once the server is stopping: from then on nothing waits."""

    @property
    def count(self) -> int:
        return len(self._parked)

    @asynccontextmanager
    async def parked(self, receive: Receive) -> AsyncGenerator[None]:
        """The body of the context ends early when the client leaves or when `settle` is called.

        The request's own body must have been read before: what `receive` still tells is the client's departure.
        """
        with unwrapped():
            async with anyio.create_task_group() as group:
                scope = group.cancel_scope
                self._park(scope)
                try:
                    group.start_soon(_cancel_when_client_leaves, receive, scope)
                    if self.settled:
                        scope.cancel()
                    yield
                finally:
                    self._leave(scope)
                scope.cancel()

    @contextmanager
    def ending(self, scope: anyio.CancelScope) -> Generator[None]:
        """While the context lasts, `settle` cancels the scope around it."""
        self._park(scope)
        try:
            if self.settled:
                scope.cancel()
            yield
        finally:
            self._leave(scope)

    def settle(self) -> None:
        """Ends every wait, now and in future."""
        self.settled = True
        for scope in list(self._parked):
            scope.cancel()

    async def wait_for(self, count: int) -> None:
        """Returns when exactly `count` requests are parked."""
        while len(self._parked) != count:
            await self._changed.wait()

    def _park(self, scope: anyio.CancelScope) -> None:
        self._parked.add(scope)
        self._note()

    def _leave(self, scope: anyio.CancelScope) -> None:
        self._parked.discard(scope)
        self._note()

    def _note(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def _cancel_when_client_leaves(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
