"""One SQLite file, shared with other processes: who writes, who reads, and in which thread.

WAL, so that readers and the one writer do not wait for each other. Short transactions run on the loop (tens of
microseconds); long ones, those that must wait for another process's lock and, where a commit waits for the disk, all
writing ones run in a thread, and so do checkpoints.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup

from harness.errors import Internal
from harness.store.durability import Durability
from harness.store.schema import migrate

logger = logging.getLogger(__name__)

CHECKPOINT_CHARS = 4 * 1024 * 1024
"""So much text is written between two checkpoints of the write-ahead log."""
LOCK_WAIT_SECONDS = 10.0
"""How long another process may hold the file before a call fails."""
_REMEDY = "free the disk or the file, then repeat the call"
T = TypeVar("T")
Work: TypeAlias = Callable[[sqlite3.Connection], T]


class Database:
    """Enter it before use. `write` and `read` each run one transaction, one after the other."""

    def __init__(self, path: Path, durability: Durability, lock_wait_seconds: float = LOCK_WAIT_SECONDS) -> None:
        self._path = path
        self._durability = durability
        self._writer = _Line(path, "BEGIN IMMEDIATE", lock_wait_seconds)
        self._reader = _Line(path, "BEGIN", lock_wait_seconds)
        self._lock_wait_seconds = lock_wait_seconds
        self._written = 0
        self._group: TaskGroup | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        try:
            await anyio.to_thread.run_sync(self._open)
            self._stack.push_async_callback(self._close)
            self._group = await self._stack.enter_async_context(anyio.create_task_group())
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._stack.aclose()  # what the block raised is none of the checkpoints' business

    async def write(self, work: Work[T], *, heavy: bool = False) -> T:
        """All that `work` does or nothing; durable when this returns.

        Raises:
            Internal: the file is full, locked or broken. What `work` itself raises of our tree passes.
        """
        return await self._writer.run(work, in_thread=heavy or self._durability == "power")

    async def read(self, work: Work[T], *, heavy: bool = False) -> T:
        """`work` sees the file as of one moment, and keeps no other process from writing."""
        return await self._reader.run(work, in_thread=heavy)

    def wrote(self, size: int) -> None:
        """So many characters more stand in the write-ahead log; now and then it is worked into the file."""
        self._written += size
        if self._written >= CHECKPOINT_CHARS and self._group is not None:
            self._written = 0
            self._group.start_soon(anyio.to_thread.run_sync, self._checkpoint)

    async def shrink(self) -> None:
        """Gives the system back what was deleted."""
        await self._writer.run(_vacuum, in_thread=True)

    def write_now(self, work: Work[T]) -> T:
        """For the end, when no loop is to be waited for."""
        return self._writer.run_now(work)

    def _open(self) -> None:
        with clear_errors(self._path, "free it, or name another file"):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o600)
            self._path.chmod(0o600)
            connection = self._connect()
            try:
                migrate(connection, self._path)
                connection.execute(f"PRAGMA synchronous = {'FULL' if self._durability == 'power' else 'NORMAL'}")
                self._reader.connection = self._connect()
                self._writer.connection = connection
            except BaseException:
                connection.close()
                raise

    def _connect(self) -> sqlite3.Connection:
        """Its first statements wait for other processes; later `_Line` says who waits."""
        connection = sqlite3.connect(
            self._path, timeout=self._lock_wait_seconds, isolation_level=None, check_same_thread=False
        )
        if connection.execute("PRAGMA page_count").fetchone()[0] == 0:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # possible in a new file only
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        return connection

    async def _close(self) -> None:
        for line in (self._reader, self._writer):
            await line.close()

    def _checkpoint(self) -> None:
        """On a connection of its own, so that appends go on meanwhile; a failed one is repeated after more text."""
        try:
            connection = self._connect()
            try:
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            finally:
                connection.close()
        except sqlite3.Error as error:
            logger.warning("checkpoint of the journal '%s' failed: %s", self._path, error)


class _Line:
    """One connection and the queue before it."""

    def __init__(self, path: Path, begin: str, lock_wait_seconds: float) -> None:
        self.connection: sqlite3.Connection | None = None
        self._path = path
        self._begin = begin
        self._wait_ms = int(lock_wait_seconds * 1000)
        self._set_wait_ms = -1
        self._lock = anyio.Lock(fast_acquire=True)
        self._threads = anyio.CapacityLimiter(1)  # not those of tools, which may all be taken

    async def run(self, work: Work[T], *, in_thread: bool) -> T:
        async with self._lock:
            if not in_thread:
                try:
                    return self._transaction(work, wait_ms=0)
                except sqlite3.Error as error:
                    if getattr(error, "sqlite_errorcode", None) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                        raise clear_error(self._path, error) from error
            return await anyio.to_thread.run_sync(self.run_now, work, limiter=self._threads)

    async def close(self) -> None:
        """Waits for what runs: a connection that is closed under a thread of ours takes the process with it."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                connection, self.connection = self.connection, None
                if connection is not None:
                    with suppress(sqlite3.Error):  # its last act is a checkpoint, which another process may do as well
                        connection.close()

    def run_now(self, work: Work[T]) -> T:
        with clear_errors(self._path):
            return self._transaction(work, wait_ms=self._wait_ms)

    def _transaction(self, work: Work[T], *, wait_ms: int) -> T:
        db = self.connection
        if db is None:
            raise Internal(f"the journal '{self._path}' is used before it was opened, or after it was closed")
        if wait_ms != self._set_wait_ms:
            db.execute(f"PRAGMA busy_timeout = {wait_ms}")
            self._set_wait_ms = wait_ms
        db.execute(self._begin)
        try:
            result = work(db)
            if db.in_transaction:
                db.execute("COMMIT")
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")
        return result


def _vacuum(db: sqlite3.Connection) -> None:
    # it must not stand in a transaction of ours, and only `executescript` takes all of its steps
    db.execute("COMMIT")
    db.executescript("PRAGMA incremental_vacuum")


@contextmanager
def clear_errors(path: Path, remedy: str = _REMEDY) -> Generator[None]:
    """What SQLite or the file system says becomes one error of ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise clear_error(path, error, remedy) from error


def clear_error(path: Path, error: Exception, remedy: str = _REMEDY) -> Internal:
    return Internal(f"the journal '{path}' cannot be used: {error}; {remedy}", path=str(path))
