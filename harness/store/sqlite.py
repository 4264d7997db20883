"""The journal in one SQLite file that several processes share.

`durability="process"` survives the death of this process, `"power"` also that of the machine. The lock files that tell
which processes are alive stand beside the file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import TypeAdapter

from harness.contract.options import ConversationOptions
from harness.contract.output import Item
from harness.contract.requests import OpenRequest
from harness.contract.state import ConversationState
from harness.contract.value import JsonValue
from harness.errors import ConversationInUse, HarnessError, Internal
from harness.store import codec
from harness.store.codec import Row
from harness.store.database import LOCK_WAIT_SECONDS, Database, clear_errors
from harness.store.durability import Durability
from harness.store.holders import Holder
from harness.store.port import ConversationRecord, Entry, Summary

HEAVY_CHARS = 64 * 1024
"""An append with more text than this is committed in a thread."""
_COLUMNS = (
    "conversation_id, owner, connector, options, capabilities, created_at, updated_at, state, turns, first_message,"
    " turn_is_running, open_requests"
)
_open_requests = TypeAdapter(list[OpenRequest])


class SqliteStore:
    """The journal at `path`; its directory is made where there is none."""

    def __init__(
        self, path: Path, durability: Durability = "process", *, lock_wait_seconds: float = LOCK_WAIT_SECONDS
    ) -> None:
        self._path = path
        self._database = Database(path, durability, lock_wait_seconds)
        self._holder: Holder | None = None
        self._numbers: dict[str, int] = {}
        self._summaries: dict[str, Summary] = {}
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.enter_async_context(self._database)
        try:
            with clear_errors(self._path):
                self._holder = Holder(self._path.parent / f"{self._path.name}.holders")
        except BaseException:
            await self._stack.aclose()
            raise
        self._stack.callback(self._leave, self._holder)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, traceback)

    # the port

    async def create(self, record: ConversationRecord) -> tuple[ConversationRecord, int | None]:
        options = record.options.to_json()

        def work(db: sqlite3.Connection) -> bool:
            try:
                db.execute(
                    "INSERT INTO conversations VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,1)",
                    (
                        record.conversation_id,
                        record.owner,
                        record.options.client_key,
                        record.connector,
                        options,
                        record.capabilities_json,
                        record.created_at,
                        *_summary_row(record.summary),
                        self._own.holder_id,
                    ),
                )
            except sqlite3.IntegrityError:
                return False
            return True

        if await self._database.write(work, heavy=len(options) > HEAVY_CHARS):
            return record, 1
        key = record.options.client_key
        known = None if key is None else await self.find_client_key(record.owner, key)
        if known is None:
            raise Internal(f"conversation id '{record.conversation_id}' is taken")
        return known, None

    async def claim(self, conversation_id: str) -> int:
        def work(db: sqlite3.Connection) -> int:
            row = db.execute(
                "SELECT holder, epoch FROM conversations WHERE conversation_id = ?", (conversation_id,)
            ).fetchone()
            if row is None:
                raise ConversationInUse(f"conversation '{conversation_id}' was deleted")
            holder, epoch = row
            if holder is not None and self._own.is_alive(holder) and holder != self._own.holder_id:
                name = self._own.name_of(holder)
                raise ConversationInUse(
                    f"conversation '{conversation_id}' is open in {name}: end it there, or wait until it is idle",
                    holder=name,
                )
            db.execute(
                "UPDATE conversations SET holder = ?, epoch = ? WHERE conversation_id = ?",
                (self._own.holder_id, epoch + 1, conversation_id),
            )
            return epoch + 1

        self._forget(conversation_id)
        return await self._database.write(work)

    async def release(self, conversation_id: str, epoch: int) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE conversations SET holder = NULL WHERE conversation_id = ? AND epoch = ?",
                (conversation_id, epoch),
            )

        self._forget(conversation_id)
        await self._database.write(work)

    async def append(self, conversation_id: str, epoch: int, entries: Sequence[Entry], summary: Summary) -> None:
        rows = [row for entry in entries for row in codec.rows_of(entry)]
        size = sum(len(row.body) for row in rows)

        def work(db: sqlite3.Connection) -> None:
            if not self._still_ours(db, conversation_id, epoch, summary):
                raise ConversationInUse(
                    f"conversation '{conversation_id}' was taken over or deleted by another process"
                )
            self._insert(db, conversation_id, rows)

        try:
            await self._database.write(work, heavy=size > HEAVY_CHARS)
        except HarnessError:
            self._forget(conversation_id)
            raise
        self._database.wrote(size)

    async def find(self, conversation_id: str, owner: str) -> ConversationRecord | None:
        found = await self._records("conversation_id = ? AND owner = ?", (conversation_id, owner))
        return found[0] if found else None

    async def find_client_key(self, owner: str, client_key: str) -> ConversationRecord | None:
        found = await self._records("owner = ? AND client_key = ?", (owner, client_key))
        return found[0] if found else None

    async def list_conversations(self, owner: str) -> list[ConversationRecord]:
        return await self._records("owner = ?", (owner,), heavy=True)

    async def list_requests(self, owner: str) -> list[OpenRequest]:
        records = await self._records("owner = ? AND open_requests != '[]'", (owner,))
        return [request for record in records for request in record.summary.open_requests]

    async def held(self) -> dict[str, str]:
        def work(db: sqlite3.Connection) -> dict[str, str]:
            query = "SELECT conversation_id, holder FROM conversations WHERE holder IS NOT NULL"
            rows = db.execute(query).fetchall()
            alive = {holder: self._own.name_of(holder) for _, holder in rows if self._own.is_alive(holder)}
            return {conversation_id: alive[holder] for conversation_id, holder in rows if holder in alive}

        return await self._database.read(work)

    async def abandoned(self) -> list[ConversationRecord]:
        def holders(db: sqlite3.Connection) -> list[str]:
            rows = db.execute("SELECT DISTINCT holder FROM conversations WHERE holder IS NOT NULL").fetchall()
            return [holder for (holder,) in rows if not self._own.is_alive(holder)]

        dead = await self._database.read(holders)
        marks = ",".join("?" * len(dead))
        where = f"holder IN ({marks}) OR (holder IS NULL AND turn_is_running)"
        return await self._records(where, tuple(dead), heavy=True)

    async def entries(self, conversation_id: str) -> list[Entry]:
        def work(db: sqlite3.Connection) -> list[Entry]:
            rows = _rows(db, "conversation_id = ? ORDER BY number", (conversation_id,))
            return [codec.entry_of(row) for row in rows]

        return await self._database.read(work, heavy=True)

    async def remembered(self, conversation_id: str) -> list[JsonValue]:
        def work(db: sqlite3.Connection) -> list[JsonValue]:
            rows = _rows(db, "conversation_id = ? AND kind = 'log' ORDER BY number", (conversation_id,))
            return [json.loads(row.body) for row in rows]

        return await self._database.read(work, heavy=True)

    async def items(self, conversation_id: str, turn_id: str, since: int, limit: int) -> list[Item]:
        def work(db: sqlite3.Connection) -> list[Item]:
            where = "conversation_id = ? AND turn_id = ? AND kind = 'item' AND sequence_no > ?"
            values = (conversation_id, turn_id, since, limit)
            return [codec.item_of(row.body) for row in _rows(db, f"{where} ORDER BY sequence_no LIMIT ?", values)]

        return await self._database.read(work, heavy=True)

    async def sizes(self, owner: str) -> dict[str, int]:
        def work(db: sqlite3.Connection) -> dict[str, int]:
            rows = db.execute(
                "SELECT c.conversation_id, length(c.options) + coalesce(sum(length(e.body)), 0)"
                " FROM conversations c LEFT JOIN entries e USING (conversation_id)"
                " WHERE c.owner = ? GROUP BY c.conversation_id",
                (owner,),
            )
            sizes: dict[str, int] = dict(rows.fetchall())
            blobs = db.execute(
                "SELECT u.conversation_id, sum(length(b.text)) FROM blob_uses u JOIN blobs b USING (digest)"
                " GROUP BY u.conversation_id"
            )
            for conversation_id, size in blobs.fetchall():
                if conversation_id in sizes:
                    sizes[conversation_id] += size
            return sizes

        return await self._database.read(work, heavy=True)

    async def delete(self, conversation_id: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            for table in ("entries", "blob_uses", "conversations"):
                db.execute(f"DELETE FROM {table} WHERE conversation_id = ?", (conversation_id,))
            db.execute("DELETE FROM blobs WHERE digest NOT IN (SELECT digest FROM blob_uses)")

        self._forget(conversation_id)
        await self._database.write(work, heavy=True)
        await self._database.shrink()

    # inside

    @property
    def _own(self) -> Holder:
        if self._holder is None:
            raise Internal(f"the journal '{self._path}' is used before it was opened")
        return self._holder

    def _leave(self, holder: Holder) -> None:
        """What is open is free for others now."""

        def work(db: sqlite3.Connection) -> None:
            db.execute("UPDATE conversations SET holder = NULL WHERE holder = ?", (holder.holder_id,))

        try:
            with suppress(HarnessError):  # it counts as abandoned, too
                self._database.write_now(work)
        finally:
            holder.close()

    def _forget(self, conversation_id: str) -> None:
        """What was known of its rows may be old."""
        self._numbers.pop(conversation_id, None)
        self._summaries.pop(conversation_id, None)

    def _still_ours(self, db: sqlite3.Connection, conversation_id: str, epoch: int, summary: Summary) -> bool:
        """Whether nobody claimed it since; the summary is written where it says something new."""
        known = self._summaries.get(conversation_id)
        if known is not None and known.facts == summary.facts:
            query = "SELECT 1 FROM conversations WHERE conversation_id = ? AND epoch = ?"
            return db.execute(query, (conversation_id, epoch)).fetchone() is not None
        *columns, requests = _summary_row(summary)
        requests = _taken_out(db, conversation_id, requests)
        changed = db.execute(
            "UPDATE conversations SET updated_at=?, state=?, turns=?, first_message=?, turn_is_running=?,"
            " open_requests=? WHERE conversation_id = ? AND epoch = ?",
            (*columns, requests, conversation_id, epoch),
        )
        self._summaries[conversation_id] = summary
        return changed.rowcount == 1

    def _insert(self, db: sqlite3.Connection, conversation_id: str, rows: Iterable[Row]) -> None:
        number = self._numbers.get(conversation_id)
        if number is None:
            query = "SELECT coalesce(max(number), 0) FROM entries WHERE conversation_id = ?"
            number = int(db.execute(query, (conversation_id,)).fetchone()[0])
        for row in rows:
            number += 1
            body = _taken_out(db, conversation_id, row.body)
            values = (conversation_id, number, row.kind, row.turn_id, row.sequence_no, body, body is not row.body)
            db.execute("INSERT INTO entries VALUES (?,?,?,?,?,?,?)", values)
        self._numbers[conversation_id] = number

    async def _records(self, where: str, values: tuple[Any, ...], *, heavy: bool = False) -> list[ConversationRecord]:
        def work(db: sqlite3.Connection) -> list[ConversationRecord]:
            query = f"SELECT {_COLUMNS} FROM conversations WHERE {where} ORDER BY updated_at DESC, rowid DESC"
            return [_record_of(db, row) for row in db.execute(query, values).fetchall()]

        return await self._database.read(work, heavy=heavy)


def _taken_out(db: sqlite3.Connection, conversation_id: str, body: str) -> str:
    """The body as it is stored; its long strings go to a table of their own, where each stands once."""
    if len(body) < codec.BLOB_CHARS:
        return body
    shorter, blobs = codec.without_blobs(body)
    for digest, text in blobs.items():
        db.execute("INSERT OR IGNORE INTO blobs VALUES (?,?)", (digest, json.dumps(text)))
        db.execute("INSERT OR IGNORE INTO blob_uses VALUES (?,?)", (digest, conversation_id))
    return shorter


def _put_back(db: sqlite3.Connection, body: str) -> str:
    def blob(digest: str) -> str:
        return json.loads(db.execute("SELECT text FROM blobs WHERE digest = ?", (digest,)).fetchone()[0])

    return codec.with_blobs(body, blob)


def _rows(db: sqlite3.Connection, where: str, values: tuple[Any, ...]) -> list[Row]:
    found = db.execute(f"SELECT kind, turn_id, sequence_no, body, has_blobs FROM entries WHERE {where}", values)
    return [
        Row(kind, turn_id, sequence_no, _put_back(db, body) if has_blobs else body)
        for kind, turn_id, sequence_no, body, has_blobs in found.fetchall()
    ]


def _summary_row(summary: Summary) -> tuple[Any, ...]:
    requests = "[" + ",".join(request.to_json() for request in summary.open_requests) + "]"
    return (
        summary.updated_at,
        str(summary.state),
        summary.turns,
        summary.first_message,
        summary.turn_is_running,
        requests,
    )


def _record_of(db: sqlite3.Connection, row: tuple[Any, ...]) -> ConversationRecord:
    summary = Summary(
        updated_at=row[6],
        state=ConversationState(row[7]),
        turns=row[8],
        first_message=row[9],
        turn_is_running=bool(row[10]),
        open_requests=tuple(_open_requests.validate_json(_put_back(db, row[11]))) if row[11] != "[]" else (),
    )
    return ConversationRecord(
        conversation_id=row[0],
        owner=row[1],
        connector=row[2],
        options=ConversationOptions.model_validate_json(row[3]),
        capabilities_json=row[4],
        created_at=row[5],
        summary=summary,
    )
