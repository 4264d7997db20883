"""The journal's file: who may read it, which version wrote it, and what happens when it cannot be written."""

from __future__ import annotations

import sqlite3
import stat
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.core.conversations import open_house
from contract_tests.core.stores import EVERY_ENTRY, delta, flat, record
from contract_tests.llm_suite import Peer, begin, is_over, is_waiting, results, say, until
from contract_tests.requirements import requirement
from harness.contract.content import text_of
from harness.errors import Internal
from harness.store import SqliteStore, Summary
from harness.store.database import Database
from harness.store.schema import VERSION

CALLS = [{"calls": [{"name": "weather", "id": "c"}, {"name": "clock", "id": "d"}]}, {"text": "done"}]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "journal.db"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@requirement("store:private")
async def test_only_the_user_can_read_the_journal(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.create(record())
        files = [one for one in path.parent.rglob("*") if one.is_file()]
        assert len(files) >= 3
        assert {mode(one) for one in files} == {0o600}
        directories = [path.parent, *(one for one in path.parent.rglob("*") if one.is_dir())]
        assert {mode(one) for one in directories} == {0o700}


@requirement("store:schema")
async def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    async with SqliteStore(path) as store:
        await store.create(record())
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = path.read_bytes()
    with pytest.raises(Internal, match=r"newer version of this program.*upgrade"):
        async with SqliteStore(path):
            pass
    assert path.read_bytes() == before


@requirement("store:schema")
async def test_an_empty_file_gets_the_tables_and_an_up_to_date_one_stays(path: Path) -> None:
    path.parent.mkdir()
    path.touch()
    for _ in range(2):
        async with SqliteStore(path) as store:
            await store.list_conversations("o")
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)


@requirement("store:schema")
async def test_many_processes_may_make_the_file_at_the_same_time(path: Path) -> None:
    async def use(number: int) -> None:
        async with SqliteStore(path) as store:
            await store.create(record(f"c_{number}"))

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(use, number)
    async with SqliteStore(path) as store:
        assert len(await store.list_conversations("o")) == 8


@requirement("store:broken")
async def test_a_file_that_is_no_journal_is_refused_by_name(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("This is not a database, and long enough to be looked at as one." * 20)
    with pytest.raises(Internal, match=r"journal\.db' cannot be used: file is not a database"):
        async with SqliteStore(path):
            pass


@requirement("store:broken")
async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    with pytest.raises(Internal, match="state"):
        async with SqliteStore(tmp_path / "state" / "journal.db"):
            pass


def fill(store: SqliteStore) -> Callable[[], None]:
    """From now on the disk is full; the result makes room."""
    db: Any = store._database._writer.connection  # pyright: ignore[reportPrivateUsage]
    db.execute(f"PRAGMA max_page_count = {db.execute('PRAGMA page_count').fetchone()[0]}")
    return lambda: db.execute("PRAGMA max_page_count = 1073741823")


@requirement("store:full")
async def test_a_full_disk_fails_the_append_and_keeps_what_was_there(path: Path) -> None:
    async with SqliteStore(path) as store:
        _, epoch = await store.create(record())
        assert epoch is not None
        await store.append("c_1", epoch, EVERY_ENTRY, Summary(turns=1))
        make_room = fill(store)
        for size in (10_000, 200_000):
            with pytest.raises(Internal, match="full; free the disk"):
                for _ in range(20):
                    await store.append("c_1", epoch, [delta(1, "y" * size)], Summary(turns=2))
                    kept = flat(await store.entries("c_1"))
        kept = flat(await store.entries("c_1"))
        assert kept[: len(EVERY_ENTRY)] == EVERY_ENTRY
        make_room()
        await store.append("c_1", epoch, [delta(99)], Summary(turns=3))
    async with SqliteStore(path) as store:
        assert flat(await store.entries("c_1")) == [*kept, delta(99)]


LIMITED = """
import resource, sys
from pathlib import Path
import anyio
from contract_tests.core.stores import delta, record
from harness.errors import Internal
from harness.store import SqliteStore, Summary

async def main():
    async with SqliteStore(Path(sys.argv[1])) as store:
        _, epoch = await store.create(record())
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        written = 0
        try:
            while True:
                await store.append("c_1", epoch, [delta(written + 1, "x" * 9000)], Summary())
                written += 1
        except Internal as error:
            print(written, error.message, flush=True)
        import os
        os._exit(0)

anyio.run(main)
"""


@requirement("store:full")
async def test_what_was_appended_before_the_system_refused_is_there_for_the_next_process(path: Path) -> None:
    with anyio.fail_after(20):
        done = await anyio.run_process([sys.executable, "-c", LIMITED, str(path)], stderr=None)
    written, _, message = done.stdout.decode().partition(" ")
    assert "cannot be used" in message
    async with SqliteStore(path) as store:
        assert len(flat(await store.entries("c_1"))) == int(written) > 3


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Another process writes to the file, and does not stop."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        yield


@requirement("store:locked")
async def test_a_file_that_stays_locked_is_an_error_in_bounds(path: Path) -> None:
    async with SqliteStore(path, lock_wait_seconds=0.05) as store:
        _, epoch = await store.create(record())
        with locked(path), anyio.fail_after(5):
            with pytest.raises(Internal, match="locked"):
                await store.append("c_1", epoch or 0, [delta(1)], Summary())
            assert await store.entries("c_1") == [], "reading goes on"
        await store.append("c_1", epoch or 0, [delta(1)], Summary())
        assert flat(await store.entries("c_1")) == [delta(1)]


@requirement("store:locked")
async def test_a_file_that_is_locked_for_a_moment_is_waited_for(path: Path) -> None:
    async with SqliteStore(path) as store:
        _, epoch = await store.create(record())
        async with anyio.create_task_group() as group:
            with locked(path):
                group.start_soon(store.append, "c_1", epoch or 0, [delta(1)], Summary())
                await anyio.lowlevel.checkpoint()
                await anyio.lowlevel.checkpoint()
        assert flat(await store.entries("c_1")) == [delta(1)]


@requirement("store:full", "journal:failure:ends-turn")
@pytest.mark.parametrize("trouble", ["full", "locked"])
async def test_a_journal_that_cannot_be_written_ends_the_turn_and_loses_nothing_accepted(
    path: Path, trouble: str
) -> None:
    peer = Peer()
    store = SqliteStore(path, lock_wait_seconds=0.05)
    async with open_house({"turns": [CALLS], "repeat": True}, peer, store=store) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        await llm.submit_responses(*ids, results(["c"], "kept"))
        with broken(store, path, trouble):
            with pytest.raises(Internal, match="journal"):
                await llm.submit_responses(*ids, results(["d"], "z" * 100_000))
            state, _ = await until(llm, ids, is_over)
            assert state.status == "failed"
            assert state.error is not None and "journal" in state.error.message
            await peer.has_seen("interrupt")
            with pytest.raises(Internal):
                await say(llm, ids[0], "again " * 20_000)
        # the medium is back: the same conversation goes on
        second = ids[0], await say(llm, ids[0], "go on")
        await until(llm, second, is_waiting)
        await llm.cancel_turn(*second)
    assert "kept" in {text_of(answer.content) for answer in peer.answers}
    async with SqliteStore(path) as store:
        kept = await store.entries(ids[0])
    assert "kept" in repr(kept)


@contextmanager
def broken(store: SqliteStore, path: Path, trouble: str) -> Generator[None]:
    if trouble == "locked":
        with locked(path):
            yield
    else:
        make_room = fill(store)
        yield
        make_room()


@requirement("store:several-processes")
async def test_two_processes_write_to_one_file_at_the_same_time(path: Path) -> None:
    async def write(number: int) -> None:
        async with SqliteStore(path) as store:
            name = f"c_{number}"
            _, epoch = await store.create(record(name))
            for count in range(50):
                await store.append(name, epoch or 0, [delta(count + 1, "x" * (count % 2) * 70_000)], Summary())

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(write, number)
    async with SqliteStore(path) as store:
        for number in range(3):
            assert len(flat(await store.entries(f"c_{number}"))) == 50


async def test_a_file_is_not_closed_under_a_read_that_runs(path: Path) -> None:
    goes_on, done = threading.Event(), list[int]()

    def read(db: sqlite3.Connection) -> None:
        goes_on.wait(10)
        done.append(db.execute("SELECT 1").fetchone()[0])

    async with anyio.create_task_group() as group:
        async with Database(path, "process") as database:
            group.start_soon(partial(database.read, read, heavy=True))
            await anyio.wait_all_tasks_blocked()
            threading.Timer(0.1, goes_on.set).start()
        assert done == [1]
