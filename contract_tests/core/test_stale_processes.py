"""What a crashed server's peers left running is ended by the next one, by what the journal has of them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from connectors._recorded import recorded_processes
from contract_tests.connectors.processes import ENVIRONMENT, kill, living
from contract_tests.llm_suite import is_over, until
from contract_tests.peers.journaling_owner import StandInConnector
from contract_tests.requirements import requirement
from harness.local import LocalHarness
from harness.registry import Registry
from harness.store import SqliteStore

OWNER = Path(__file__).parent.parent / "peers" / "journaling_owner.py"
ROOT = OWNER.parent.parent.parent
HARD_TO_END = ("deaf", "child:session+empty+orphan", "sleep")


def harness_on(journal: Path, *, takes_up_turns: bool = True) -> LocalHarness:
    registry = Registry({"standin": StandInConnector("echo")})
    return LocalHarness(registry, store=SqliteStore(journal), takes_up_turns=takes_up_turns)


@asynccontextmanager
async def crashed(journal: Path) -> AsyncGenerator[dict[str, Any]]:
    """A server was killed, and its reaper with it: nobody has ended its peers."""
    command = [sys.executable, str(OWNER), str(journal), *HARD_TO_END]
    process = await anyio.open_process(command, stderr=None, env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)})
    told: dict[str, Any] = {"pids": []}
    async with process:
        try:
            output = BufferedByteReceiveStream(process.stdout)  # pyright: ignore[reportArgumentType]
            with anyio.fail_after(20):
                told = json.loads(await output.receive_until(b"\n", 1 << 20))
            os.kill(reaper_of(process, told["pids"]), signal.SIGKILL)
            process.kill()
            await process.wait()
            yield told
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            kill(told["pids"])


def reaper_of(process: Process, peers: list[int]) -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    [reaper] = {int(pid) for pid in children} - set(peers)
    return reaper


@requirement("R-C6")
@pytest.mark.parametrize("takes_up_turns", [True, False])
async def test_the_next_server_ends_what_a_crashed_one_left(tmp_path: Path, takes_up_turns: bool) -> None:
    journal = tmp_path / "journal.db"
    async with crashed(journal) as told:
        assert living(told["pids"]) == told["pids"]
        with anyio.fail_after(10):
            async with harness_on(journal, takes_up_turns=takes_up_turns) as llm:
                assert living(told["pids"]) == []
                state, _ = await until(llm, (told["conversation"], told["turn"]), is_over)
        assert state.error is not None and state.error.code == "peer_lost"


@requirement("R-C6")
async def test_what_a_live_server_runs_is_left_alone(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    command = [sys.executable, str(OWNER), str(journal), *HARD_TO_END]
    process = await anyio.open_process(command, stderr=None, env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)})
    async with process:
        output = BufferedByteReceiveStream(process.stdout)  # pyright: ignore[reportArgumentType]
        with anyio.fail_after(20):
            told = json.loads(await output.receive_until(b"\n", 1 << 20))
            async with harness_on(journal):
                assert living(told["pids"]) == told["pids"]
            process.kill()
            await process.wait()
    kill(told["pids"])


@requirement("R-C6")
async def test_an_innocent_process_with_the_recorded_number_is_left_alone(tmp_path: Path) -> None:
    """The journal names this test's own process, as after a restart of the machine."""
    journal = tmp_path / "journal.db"
    async with crashed(journal) as told:
        async with SqliteStore(journal) as store:
            records = await store.remembered(told["conversation"])
        [record] = recorded_processes(records)
        assert record.pid == told["pids"][0]
        changed = json.loads(
            json.dumps(records).replace(record.mark, "f" * 32).replace(str(record.pid), str(os.getpid()))
        )
        await StandInConnector().reap(changed)
        assert living(told["pids"]) == told["pids"]


@requirement("R-C8")
async def test_the_memory_of_a_conversation_is_that_of_its_living_processes(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    async with crashed(journal) as told, SqliteStore(journal) as store:
        records = await store.remembered(told["conversation"])
        alive = StandInConnector().resident_bytes(records)
        assert 5_000_000 < alive < 500_000_000, "two Python processes"
        kill(told["pids"])
    assert StandInConnector().resident_bytes(records) == 0
