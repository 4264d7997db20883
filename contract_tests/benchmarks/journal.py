"""What the journal costs, and how long a large one takes to come back.

    python -m contract_tests.benchmarks.journal [--events 20000] [--rounds 1000] [--repeats 5] [--directory DIR]

The four ways to keep a conversation take turns, so that a busy machine troubles all alike: compare the ratios, not the
times. `power` waits for the disk: it depends on the directory.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import anyio.lowlevel

from contract_tests.core.conversations import FunctionConnector
from contract_tests.core.stores import delta, record
from contract_tests.llm_suite import results
from harness.connector import TurnSink
from harness.contract import TERMINAL, ConversationOptions, HostRequest, RequestKind, TurnOptions, as_content
from harness.local import LOCAL_OWNER, LocalHarness
from harness.registry import Registry
from harness.store import MemoryStore, SqliteStore, Store, Summary, TurnBegun
from harness.turn import RequestRaised, TurnEnded
from harness.turn.events import text_delta

MODES = ("none", "memory", "process", "power")
TEXT = "x" * 120


def store_of(mode: str, directory: Path) -> Store | None:
    match mode:
        case "none":
            return None
        case "memory":
            return MemoryStore()
        case "process":
            return SqliteStore(directory / "process.db", "process")
        case _:
            return SqliteStore(directory / "power.db", "power")


@asynccontextmanager
async def harness_with(connector: FunctionConnector, store: Store | None) -> AsyncGenerator[LocalHarness]:
    registry = Registry({"function": connector})
    async with LocalHarness(registry, default_connector="function", store=store) as llm:
        yield llm


async def seconds_for_turn(connector: FunctionConnector, store: Store | None) -> float:
    """One turn, followed to its end; every call of the peer is answered as soon as it is seen."""
    async with harness_with(connector, store) as llm:
        conversation_id = await llm.begin_conversation(ConversationOptions())
        began = time.perf_counter()
        turn_id = await llm.submit_user_message(conversation_id, as_content("go"))
        since = 0
        while True:
            state = await llm.poll_turn(conversation_id, turn_id, since, 60_000)
            since = state.sequence_no
            if state.status in TERMINAL:
                return time.perf_counter() - began
            if state.pending_requests:
                ids = [request.request_id for request in state.pending_requests]
                await llm.submit_responses(conversation_id, turn_id, results(ids))


def streaming(events: int) -> FunctionConnector:
    """A peer that says much, each piece in a read of its own."""

    async def run(sink: TurnSink) -> None:
        for _ in range(events):
            sink.emit(text_delta(TEXT, item_id="m"))
            await anyio.lowlevel.checkpoint()
        sink.emit(TurnEnded())

    return FunctionConnector(run)


def calling(rounds: int) -> FunctionConnector:
    """A peer that makes one call after the other."""
    answered = anyio.Event()

    async def run(sink: TurnSink) -> None:
        nonlocal answered
        for number in range(rounds):
            answered = anyio.Event()
            name = f"c{number}"
            sink.emit(
                RequestRaised(
                    HostRequest(kind=RequestKind.TOOL_CALL, call_id=name, peer_request_id=name, tool_name="clock")
                )
            )
            await answered.wait()
        sink.emit(TurnEnded())

    return FunctionConnector(run, deliver=lambda *_: answered.set())


async def rates(peer: Callable[[], FunctionConnector], count: int, repeats: int, directory: Path) -> dict[str, float]:
    """Per second, the median of interleaved runs."""
    found: dict[str, list[float]] = {mode: [] for mode in MODES}
    for repeat in range(repeats):
        for mode in MODES:
            place = directory / f"{count}-{repeat}"
            place.mkdir(exist_ok=True)
            found[mode].append(count / await seconds_for_turn(peer(), store_of(mode, place)))
    return {mode: statistics.median(values) for mode, values in found.items()}


async def write_conversations(path: Path, count: int, items: int) -> None:
    """As a process leaves them that was killed: open, idle, each with a turn of so many items."""
    async with SqliteStore(path) as store:
        for number in range(count):
            name = f"c_{number}"
            _, epoch = await store.create(record(name, owner=LOCAL_OWNER))
            begun = TurnBegun("t1", as_content("hello"), TurnOptions(), 1)
            pieces = [delta(one + 1, TEXT) for one in range(items)]
            await store.append(name, epoch or 0, [begun, *pieces], Summary(turns=1, first_message="hello"))
    mark_killed(path)


def mark_killed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE conversations SET holder = 'killed'")


async def seconds_to_open(path: Path, *, reads: str | None = None) -> float:
    """Until the list is there, or until the first poll of a conversation has all of its items."""
    mark_killed(path)
    began = time.perf_counter()
    async with LocalHarness(Registry({"fake": streaming(0)}), store=SqliteStore(path)) as llm:
        if reads is None:
            await llm.list_conversations()
        else:
            await llm.poll_turn(reads, "t1", 0, 0, 2**31)
        return time.perf_counter() - began


async def measure(events: int, rounds: int, repeats: int, directory: Path) -> None:
    streamed = await rates(lambda: streaming(events), events, repeats, directory)
    called = await rates(lambda: calling(rounds), rounds, repeats, directory)
    print(f"{'':8} {'events/s':>10} {'x none':>7} {'calls/s':>9} {'x none':>7}")
    for mode in MODES:
        ratio, call_ratio = streamed[mode] / streamed["none"], called[mode] / called["none"]
        print(f"{mode:8} {streamed[mode]:10.0f} {ratio:7.2f} {called[mode]:9.0f} {call_ratio:7.2f}")
    many, long = directory / "many.db", directory / "long.db"
    await write_conversations(many, 1000, 20)
    await write_conversations(long, 1, 20_000)
    many_seconds = statistics.median([await seconds_to_open(many) for _ in range(repeats)])
    long_seconds = statistics.median([await seconds_to_open(long, reads="c_0") for _ in range(repeats)])
    print(f"1000 conversations of 20 items: {many_seconds:.2f} s until they are listed")
    print(f"one of 20000 items: {long_seconds:.2f} s until the first poll has them all")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--directory", type=Path)
    arguments = parser.parse_args()
    with TemporaryDirectory(dir=arguments.directory) as directory:
        anyio.run(measure, arguments.events, arguments.rounds, arguments.repeats, Path(directory))


if __name__ == "__main__":
    main()
