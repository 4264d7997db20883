"""The only writer of one conversation's record (design 6).

Entries are noted in order and written in batches: whatever was noted while the last batch was written is the next one.
What was noted with `then` becomes visible, and its effects are released, only after its batch is durable.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import anyio

from harness.errors import HarnessError, Internal
from harness.store.port import Entry, Store, Summary

logger = logging.getLogger(__name__)

LATER_SECONDS = 0.1
"""How long an entry nobody waits for may wait for others before it is written."""
Then: TypeAlias = Callable[[], None]


@dataclass(eq=False)
class _Batch:
    entries: list[Entry] = field(default_factory=list[Entry])
    thens: list[Then] = field(default_factory=list[Then])
    error: HarnessError | None = None

    @property
    def is_empty(self) -> bool:
        return not self.entries and not self.thens


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
        self._batch = _Batch()
        self._one_at_a_time = anyio.Lock(fast_acquire=True)
        self._noted = anyio.Event()
        self._urgent = anyio.Event()
        self._is_closed = False
        self.is_broken = False
        """The medium failed. The failure has been told, so nothing waits for it; `flushed` tries again."""

    def note(self, *entries: Entry, then: Then | None = None) -> None:
        """Queues entries that are to be written at once."""
        self._batch.entries.extend(entries)
        if then is not None:
            self._batch.thens.append(then)
        if self.is_broken:
            self._run_thens()
            return
        self._noted.set()
        self._urgent.set()

    def note_later(self, *entries: Entry) -> None:
        """Queues entries that go with the next batch; losing them in a crash loses no promise."""
        self._batch.entries.extend(entries)
        if not self.is_broken:
            self._noted.set()

    async def flushed(self) -> None:
        """Returns when everything noted so far is durable.

        Raises:
            Internal: the medium failed; what was accepted before is safe.
            ConversationInUse: another process has taken the conversation over.
        """
        batch = self._batch
        async with self._one_at_a_time:
            if batch is self._batch and not batch.is_empty:  # else the writer was quicker
                await self._write()
        if batch.error is not None:
            raise batch.error

    async def run(self) -> None:
        """The task that writes what nobody flushes; ends after `close`."""
        while not self._is_closed:
            await self._noted.wait()
            if self._batch.is_empty and not self._is_closed:
                self._renew_events()  # a flush was quicker
                continue
            if not self._urgent.is_set():
                with anyio.move_on_after(LATER_SECONDS):
                    await self._urgent.wait()
            async with self._one_at_a_time:
                if not self._batch.is_empty and not self.is_broken:
                    await self._write()

    async def close(self) -> None:
        """Writes what is left, gives the conversation back and ends the writer."""
        async with self._one_at_a_time:
            await self._write()
            while not self._batch.is_empty and not self.is_broken:  # what became visible may have led to more
                await self._write()
            self._is_closed = True
        self._noted.set()
        self._urgent.set()
        try:
            await self._store.release(self._conversation_id, self._epoch)
        except HarnessError as error:
            logger.warning("giving conversation '%s' back failed: %s", self._conversation_id, error)

    async def _write(self) -> None:
        """One batch, one commit."""
        batch, self._batch = self._batch, _Batch()
        self._renew_events()
        error = await self._append(batch.entries)
        if error is None:
            self.is_broken = False
            for then in batch.thens:
                then()
            return
        batch.error = error
        self.is_broken = True
        self._batch.entries[:0] = batch.entries
        self._batch.thens[:0] = batch.thens
        self._on_failure(error)
        self._run_thens()

    def _renew_events(self) -> None:
        # one that is not set stays: the writer's task waits for it
        if self._noted.is_set():
            self._noted = anyio.Event()
        if self._urgent.is_set():
            self._urgent = anyio.Event()

    async def _append(self, entries: list[Entry]) -> HarnessError | None:
        if self._is_closed:
            return Internal(f"conversation '{self._conversation_id}' was closed meanwhile; repeat the call")
        try:
            with anyio.CancelScope(shield=True):  # a caller who goes away leaves no half batch; stores wait in bounds
                await self._store.append(self._conversation_id, self._epoch, entries, self._summary())
        except HarnessError as error:
            return error
        except Exception:
            # the edge of the writer: other conversations must not see it
            logger.exception("the journal of conversation '%s' failed", self._conversation_id)
            return Internal("the journal failed; the log has the traceback")
        return None

    def _run_thens(self) -> None:
        thens, self._batch.thens = self._batch.thens, []
        for then in thens:
            then()
