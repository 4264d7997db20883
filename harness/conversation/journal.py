"""The only writer of one conversation's record (design 6).

Entries are noted in order and written in batches by one task. What was noted with `then` becomes visible, and its
effects are released, only after the batch that holds it is durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from harness.errors import HarnessError
from harness.store.port import Entry, Store, Summary

logger = logging.getLogger(__name__)

BATCH_SECONDS = 0.1
"""How long a delta may wait for others before it is written."""
Then = Callable[[], None]


class Journal:
    """Writes for one claimed conversation; `epoch` fences it off once another process has claimed it."""

    def __init__(
        self,
        store: Store,
        conversation_id: str,
        epoch: int,
        summary: Callable[[], Summary],
        on_failure: Callable[[HarnessError], None],
    ) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._epoch = epoch
        self._summary = summary
        self._on_failure = on_failure
        self._entries: list[Entry] = []
        self._thens: list[Then] = []
        self._noted = anyio.Event()
        self._urgent = anyio.Event()
        self._written: anyio.Event | None = None
        self._is_writing = False
        self._runs = False
        self._error: HarnessError | None = None
        self._is_closed = False

    @property
    def is_behind(self) -> bool:
        """Whether something that must be durable first is not yet."""
        return self._is_writing or self._urgent.is_set()

    def note(self, *entries: Entry, urgent: bool = False, then: Then | None = None) -> None:
        """Queues entries; urgent ones are written at once, others with the next batch."""
        self._entries.extend(entries)
        if then is not None:
            self._thens.append(then)
        if self._error is not None:  # the failure has been told; nothing waits for a medium that is gone
            self._run_thens()
            return
        self._noted.set()
        if urgent:
            self._urgent.set()

    async def flushed(self) -> None:
        """Returns when everything noted so far is durable.

        Raises:
            Internal: the medium failed; what was accepted before is safe.
            ConversationInUse: another process has taken the conversation over.
        """
        self._error = None  # a caller who tries again gets a new attempt
        if self._runs:
            self._noted.set()
            self._urgent.set()
            self._written = self._written or anyio.Event()
            await self._written.wait()
        else:
            await self._write()
        if self._error is not None:
            raise self._error

    async def run(self) -> None:
        """The writer's task; ends after `close`."""
        self._runs = True
        try:
            while not self._is_closed:
                await self._noted.wait()
                with anyio.move_on_after(BATCH_SECONDS):
                    await self._urgent.wait()
                await self._write()
        finally:
            self._runs = False

    async def close(self) -> None:
        """Writes what is left, gives the conversation back and ends the writer."""
        try:
            await self.flushed()
            await self._store.release(self._conversation_id, self._epoch)
        except HarnessError as error:
            logger.warning("closing the journal of '%s' failed: %s", self._conversation_id, error)
        self._is_closed = True
        self._noted.set()
        self._urgent.set()

    async def _write(self) -> None:
        """One batch, one commit."""
        self._noted, self._urgent = anyio.Event(), anyio.Event()
        entries, self._entries = self._entries, []
        count = len(self._thens)
        waiting, self._written = self._written, None
        self._is_writing = True
        try:
            if not self._is_closed:
                await self._store.append(self._conversation_id, self._epoch, entries, self._summary())
        except HarnessError as error:
            self._entries = entries + self._entries
            self._error = error
            self._on_failure(error)
            count = len(self._thens)
        finally:
            self._is_writing = False
            self._run_thens(count)
            if waiting is not None:
                waiting.set()

    def _run_thens(self, count: int | None = None) -> None:
        thens, self._thens = self._thens[:count], self._thens[count if count is not None else len(self._thens) :]
        for then in thens:
            then()
