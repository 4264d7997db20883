"""A journal that ends with the process; for tests, and for programs that want no file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Self

from harness.contract.output import Item
from harness.contract.requests import OpenRequest
from harness.contract.value import JsonValue
from harness.errors import ConversationInUse
from harness.store.codec import rows_of
from harness.store.port import ConversationRecord, Entry, ItemsProduced, Remembered, Summary


@dataclass
class _Kept:
    record: ConversationRecord
    epoch: int = 0
    holder: MemoryStore | None = None
    entries: list[Entry] = field(default_factory=list[Entry])


class MemoryStore:
    """Several stores made with `shared=` look at the same conversations, as several processes do at one file."""

    def __init__(self, shared: MemoryStore | None = None) -> None:
        self._all: dict[str, _Kept] = shared._all if shared is not None else {}
        self._is_open = False

    async def __aenter__(self) -> Self:
        self._is_open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for kept in self._all.values():
            if kept.holder is self:
                kept.holder = None
        self._is_open = False

    async def create(self, record: ConversationRecord) -> tuple[ConversationRecord, int | None]:
        key = record.options.client_key
        known = None if key is None else await self.find_client_key(record.owner, key)
        if known is not None:
            return known, None
        self._all[record.conversation_id] = _Kept(record, epoch=1, holder=self)
        return record, 1

    async def claim(self, conversation_id: str) -> int:
        kept = self._all.get(conversation_id)
        if kept is None:
            raise ConversationInUse(f"conversation '{conversation_id}' was deleted")
        if kept.holder is not None and kept.holder is not self and kept.holder._is_open:
            name = f"another store of process {os.getpid()}"
            raise ConversationInUse(f"conversation '{conversation_id}' is open in {name}", holder=name)
        kept.holder, kept.epoch = self, kept.epoch + 1
        return kept.epoch

    async def release(self, conversation_id: str, epoch: int) -> None:
        kept = self._all.get(conversation_id)
        if kept is not None and kept.epoch == epoch:
            kept.holder = None

    async def append(self, conversation_id: str, epoch: int, entries: Sequence[Entry], summary: Summary) -> None:
        kept = self._all.get(conversation_id)
        if kept is None or kept.epoch != epoch:
            raise ConversationInUse(f"conversation '{conversation_id}' was taken over or deleted")
        kept.entries.extend(entries)
        kept.record = replace(kept.record, summary=summary)

    async def find(self, conversation_id: str, owner: str) -> ConversationRecord | None:
        kept = self._all.get(conversation_id)
        return kept.record if kept is not None and kept.record.owner == owner else None

    async def find_client_key(self, owner: str, client_key: str) -> ConversationRecord | None:
        records = (kept.record for kept in self._all.values())
        return next((r for r in records if r.owner == owner and r.options.client_key == client_key), None)

    async def list_conversations(self, owner: str) -> list[ConversationRecord]:
        mine = [kept.record for kept in reversed(self._all.values()) if kept.record.owner == owner]
        return sorted(mine, key=lambda record: record.summary.updated_at, reverse=True)

    async def list_requests(self, owner: str) -> list[OpenRequest]:
        return [r for record in await self.list_conversations(owner) for r in record.summary.open_requests]

    async def held(self) -> dict[str, str]:
        name = f"process {os.getpid()}"
        return {key: name for key, kept in self._all.items() if kept.holder is not None and kept.holder._is_open}

    async def abandoned(self) -> list[ConversationRecord]:
        return [
            kept.record
            for kept in self._all.values()
            if (kept.record.summary.turn_is_running if kept.holder is None else not kept.holder._is_open)
        ]

    async def entries(self, conversation_id: str) -> list[Entry]:
        kept = self._all.get(conversation_id)
        return [] if kept is None else list(kept.entries)

    async def remembered(self, conversation_id: str) -> list[JsonValue]:
        return [entry.record for entry in await self.entries(conversation_id) if isinstance(entry, Remembered)]

    async def items(self, conversation_id: str, turn_id: str, since: int, limit: int) -> list[Item]:
        batches = (
            e for e in await self.entries(conversation_id) if isinstance(e, ItemsProduced) and e.turn_id == turn_id
        )
        return [item for batch in batches for item in batch.items if item.sequence_no > since][:limit]

    async def sizes(self, owner: str) -> dict[str, int]:
        return {
            key: sum(len(row.body) for entry in kept.entries for row in rows_of(entry))
            for key, kept in self._all.items()
            if kept.record.owner == owner
        }

    async def delete(self, conversation_id: str) -> None:
        self._all.pop(conversation_id, None)
