"""The journal in one SQLite file that several processes share.

WAL with `synchronous=NORMAL` survives the death of this process; `durability="power"` (FULL) also that of the machine.
Small appends are committed on the loop (tens of microseconds); FULL commits, rows over 64 KB, waiting for another
process's lock and checkpoints run in a thread.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeVar

import anyio
from anyio.abc import TaskGroup
from pydantic import TypeAdapter

from harness.contract.options import ConversationOptions
from harness.contract.output import Item
from harness.contract.requests import OpenRequest
from harness.contract.state import ConversationState
from harness.errors import ConversationInUse, HarnessError, Internal
from harness.store import codec
from harness.store.codec import Row
from harness.store.holders import Holder
from harness.store.port import ConversationRecord, Entry, Summary

logger = logging.getLogger(__name__)

HEAVY_CHARS = 64 * 1024
"""An append with more text than this is committed in a thread."""
CHECKPOINT_CHARS = 4 * 1024 * 1024
"""So much text is written between two checkpoints of the write-ahead log."""
LOCK_WAIT_SECONDS = 10.0
_MIGRATIONS = (
    """
    CREATE TABLE conversations (
        conversation_id TEXT PRIMARY KEY,
        owner TEXT NOT NULL,
        client_key TEXT,
        connector TEXT NOT NULL,
        options TEXT NOT NULL,
        capabilities TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        updated_at INTEGER NOT NULL,
        state TEXT NOT NULL,
        turns INTEGER NOT NULL,
        first_message TEXT,
        turn_is_running INTEGER NOT NULL,
        open_requests TEXT NOT NULL,
        holder TEXT,
        epoch INTEGER NOT NULL,
        UNIQUE (owner, client_key)
    );
    CREATE INDEX conversations_by_use ON conversations (owner, updated_at);
    CREATE INDEX conversations_by_holder ON conversations (holder) WHERE holder IS NOT NULL;
    CREATE TABLE entries (
        conversation_id TEXT NOT NULL,
        number INTEGER NOT NULL,
        kind TEXT NOT NULL,
        turn_id TEXT,
        sequence_no INTEGER,
        body TEXT NOT NULL,
        has_blobs INTEGER NOT NULL,
        PRIMARY KEY (conversation_id, number)
    ) WITHOUT ROWID;
    CREATE INDEX entries_by_turn ON entries (conversation_id, turn_id, sequence_no) WHERE kind = 'item';
    CREATE TABLE blobs (digest TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE blob_uses (digest TEXT, conversation_id TEXT, PRIMARY KEY (digest, conversation_id)) WITHOUT ROWID;
    """,
)
_open_requests = TypeAdapter(list[OpenRequest])
T = TypeVar("T")


class SqliteStore:
    """The journal at `path`; the lock files of its processes stand beside it."""

    def __init__(self, path: Path, durability: Literal["process", "power"] = "process") -> None:
        self._path = path
        self._durability = durability
        self._connection: sqlite3.Connection | None = None
        self._holder: Holder | None = None
        self._lock = anyio.Lock()
        self._numbers: dict[str, int] = {}
        self._written = 0
        self._group: TaskGroup | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        await anyio.to_thread.run_sync(self._open)
        self._stack.callback(self._close)
        self._group = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.__aexit__(kind, error, traceback)

    # the port

    async def create(self, record: ConversationRecord) -> tuple[ConversationRecord, int | None]:
        def work(db: sqlite3.Connection) -> bool:
            try:
                db.execute(
                    "INSERT INTO conversations VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,1)",
                    (*_record_row(record), self._own.holder_id),
                )
            except sqlite3.IntegrityError:
                return False
            return True

        if await self._run(work, heavy=len(record.options.to_json()) > HEAVY_CHARS):
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
            if holder is not None and holder != self._own.holder_id and self._own.is_alive(holder):
                name = self._own.name_of(holder)
                raise ConversationInUse(f"conversation '{conversation_id}' is open in {name}", holder=name)
            db.execute(
                "UPDATE conversations SET holder = ?, epoch = ? WHERE conversation_id = ?",
                (self._own.holder_id, epoch + 1, conversation_id),
            )
            return epoch + 1

        self._numbers.pop(conversation_id, None)
        return await self._run(work)

    async def release(self, conversation_id: str, epoch: int) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(
                "UPDATE conversations SET holder = NULL WHERE conversation_id = ? AND epoch = ?",
                (conversation_id, epoch),
            )

        await self._run(work)

    async def append(self, conversation_id: str, epoch: int, entries: Sequence[Entry], summary: Summary) -> None:
        rows = [row for entry in entries for row in codec.rows_of(entry)]
        size = sum(len(row.body) for row in rows)

        def work(db: sqlite3.Connection) -> None:
            changed = db.execute(
                "UPDATE conversations SET updated_at=?, state=?, turns=?, first_message=?, turn_is_running=?,"
                " open_requests=? WHERE conversation_id = ? AND epoch = ?",
                (*_summary_row(summary), conversation_id, epoch),
            )
            if changed.rowcount == 0:
                raise ConversationInUse(
                    f"conversation '{conversation_id}' was taken over or deleted by another process"
                )
            self._insert(db, conversation_id, rows)

        try:
            await self._run(work, heavy=size > HEAVY_CHARS)
        except HarnessError:
            self._numbers.pop(conversation_id, None)
            raise
        self._count_towards_checkpoint(size)

    async def find(self, conversation_id: str, owner: str) -> ConversationRecord | None:
        found = await self._records("conversation_id = ? AND owner = ?", (conversation_id, owner))
        return found[0] if found else None

    async def find_client_key(self, owner: str, client_key: str) -> ConversationRecord | None:
        found = await self._records("owner = ? AND client_key = ?", (owner, client_key))
        return found[0] if found else None

    async def list_conversations(self, owner: str) -> list[ConversationRecord]:
        return await self._records("owner = ?", (owner,))

    async def list_requests(self, owner: str) -> list[OpenRequest]:
        records = await self._records("owner = ? AND open_requests != '[]'", (owner,))
        return [request for record in records for request in record.summary.open_requests]

    async def abandoned(self) -> list[ConversationRecord]:
        def holders(db: sqlite3.Connection) -> list[str]:
            rows = db.execute("SELECT DISTINCT holder FROM conversations WHERE holder IS NOT NULL").fetchall()
            return [holder for (holder,) in rows if not self._own.is_alive(holder)]

        dead = await self._run(holders)
        return [record for holder in dead for record in await self._records("holder = ?", (holder,))]

    async def entries(self, conversation_id: str) -> list[Entry]:
        rows = await self._rows("conversation_id = ? ORDER BY number", (conversation_id,))
        return [codec.entry_of(row) for row in rows]

    async def items(self, conversation_id: str, turn_id: str, since: int, limit: int) -> list[Item]:
        where = "conversation_id = ? AND turn_id = ? AND kind = 'item' AND sequence_no > ? ORDER BY sequence_no LIMIT ?"
        rows = await self._rows(where, (conversation_id, turn_id, since, limit))
        return [codec.item_of(row.body) for row in rows]

    async def delete(self, conversation_id: str) -> None:
        def work(db: sqlite3.Connection) -> None:
            for table in ("entries", "blob_uses", "conversations"):
                db.execute(f"DELETE FROM {table} WHERE conversation_id = ?", (conversation_id,))
            db.execute("DELETE FROM blobs WHERE digest NOT IN (SELECT digest FROM blob_uses)")

        await self._run(work, heavy=True)

    # inside

    @property
    def _own(self) -> Holder:
        if self._holder is None:
            raise Internal("the journal is used before it was opened")
        return self._holder

    def _open(self) -> None:
        with self._clear_errors():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            self._path.chmod(0o600)
            self._connection = self._connect(LOCK_WAIT_SECONDS)
            self._migrate(self._connection)
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._holder = Holder(self._path.parent / f"{self._path.name}.holders")

    def _connect(self, wait_seconds: float) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=wait_seconds, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'power' else 'NORMAL'}")
        return connection

    def _migrate(self, db: sqlite3.Connection) -> None:
        db.execute("BEGIN IMMEDIATE")
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > len(_MIGRATIONS):
            db.execute("ROLLBACK")
            raise Internal(f"the journal '{self._path}' was written by a newer version of this program; upgrade it")
        for migration in _MIGRATIONS[version:]:
            for statement in migration.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")
        db.execute("COMMIT")

    def _close(self) -> None:
        if self._holder is not None:
            if self._connection is not None:
                with self._clear_errors():
                    self._connection.execute(f"PRAGMA busy_timeout = {int(LOCK_WAIT_SECONDS * 1000)}")
                    self._connection.execute(
                        "UPDATE conversations SET holder = NULL WHERE holder = ?", (self._holder.holder_id,)
                    )
            self._holder.close()
        if self._connection is not None:
            self._connection.close()

    async def _run(self, work: Callable[[sqlite3.Connection], T], *, heavy: bool = False) -> T:
        """One transaction: on the loop where it is short, in a thread where it may take time or must wait."""
        async with self._lock:
            if not heavy and self._durability == "process":
                try:
                    return self._transaction(work)
                except sqlite3.OperationalError as error:
                    if error.sqlite_errorcode not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                        raise self._clear(error) from error
            return await anyio.to_thread.run_sync(self._transaction_waiting, work)

    def _transaction(self, work: Callable[[sqlite3.Connection], T]) -> T:
        db = self._connection
        if db is None:
            raise Internal("the journal is used before it was opened")
        db.execute("BEGIN IMMEDIATE")
        try:
            result = work(db)
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
        return result

    def _transaction_waiting(self, work: Callable[[sqlite3.Connection], T]) -> T:
        db = self._connection
        with self._clear_errors():
            if db is not None:
                db.execute(f"PRAGMA busy_timeout = {int(LOCK_WAIT_SECONDS * 1000)}")
            try:
                return self._transaction(work)
            finally:
                if db is not None:
                    db.execute("PRAGMA busy_timeout = 0")

    def _insert(self, db: sqlite3.Connection, conversation_id: str, rows: Iterable[Row]) -> None:
        number = self._numbers.get(conversation_id)
        if number is None:
            query = "SELECT coalesce(max(number), 0) FROM entries WHERE conversation_id = ?"
            number = int(db.execute(query, (conversation_id,)).fetchone()[0])
        for row in rows:
            number += 1
            body, blobs = codec.without_blobs(row.body) if len(row.body) >= codec.BLOB_CHARS else (row.body, {})
            for digest, text in blobs.items():
                db.execute("INSERT OR IGNORE INTO blobs VALUES (?,?)", (digest, json.dumps(text)))
                db.execute("INSERT OR IGNORE INTO blob_uses VALUES (?,?)", (digest, conversation_id))
            values = (conversation_id, number, row.kind, row.turn_id, row.sequence_no, body, bool(blobs))
            db.execute("INSERT INTO entries VALUES (?,?,?,?,?,?,?)", values)
        self._numbers[conversation_id] = number

    async def _rows(self, where: str, values: tuple[Any, ...]) -> list[Row]:
        def work(db: sqlite3.Connection) -> list[Row]:
            def blob(digest: str) -> str:
                return json.loads(db.execute("SELECT text FROM blobs WHERE digest = ?", (digest,)).fetchone()[0])

            found = db.execute(f"SELECT kind, turn_id, sequence_no, body, has_blobs FROM entries WHERE {where}", values)
            return [
                Row(kind, turn_id, sequence_no, codec.with_blobs(body, blob) if has_blobs else body)
                for kind, turn_id, sequence_no, body, has_blobs in found.fetchall()
            ]

        return await self._run(work, heavy=True)

    async def _records(self, where: str, values: tuple[Any, ...]) -> list[ConversationRecord]:
        def work(db: sqlite3.Connection) -> list[tuple[Any, ...]]:
            return db.execute(
                "SELECT conversation_id, owner, connector, options, capabilities, created_at, updated_at, state, turns,"
                f" first_message, turn_is_running, open_requests FROM conversations WHERE {where}"
                " ORDER BY updated_at DESC, rowid DESC",
                values,
            ).fetchall()

        return [_record_of(row) for row in await self._run(work)]

    def _count_towards_checkpoint(self, size: int) -> None:
        self._written += size
        if self._written >= CHECKPOINT_CHARS and self._group is not None:
            self._written = 0
            self._group.start_soon(anyio.to_thread.run_sync, self._checkpoint)

    def _checkpoint(self) -> None:
        """On a connection of its own, so that appends go on meanwhile; a failed one is repeated after more text."""
        try:
            connection = self._connect(0.0)
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                connection.close()
        except sqlite3.Error as error:
            logger.warning("checkpoint of the journal '%s' failed: %s", self._path, error)

    @contextmanager
    def _clear_errors(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._clear(error) from error

    def _clear(self, error: Exception) -> Internal:
        return Internal(
            f"the journal '{self._path}' cannot be used: {error}; free the disk or the file, then repeat the call",
            path=str(self._path),
        )


def _record_row(record: ConversationRecord) -> tuple[Any, ...]:
    summary = record.summary
    return (
        record.conversation_id,
        record.owner,
        record.options.client_key,
        record.connector,
        record.options.to_json(),
        record.capabilities_json,
        record.created_at,
        *_summary_row(summary),
    )


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


def _record_of(row: tuple[Any, ...]) -> ConversationRecord:
    summary = Summary(
        updated_at=row[6],
        state=ConversationState(row[7]),
        turns=row[8],
        first_message=row[9],
        turn_is_running=bool(row[10]),
        open_requests=_open_requests.validate_json(row[11]) if row[11] != "[]" else (),
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
