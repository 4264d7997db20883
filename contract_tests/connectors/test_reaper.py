"""When our own process dies without a word, its peers end: the reaper sees to it."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream

from connectors._family import ProcessRecord, read_stat, reap_stale
from connectors._process import open_process
from connectors._reaper_link import current_reaper
from contract_tests.connectors.processes import (
    ENVIRONMENT,
    children,
    kill,
    living,
    next_line,
    standin,
    told_pids,
    until_gone,
)
from contract_tests.requirements import requirement

OWNER = Path(__file__).parent.parent / "peers" / "owner.py"
ROOT = OWNER.parent.parent.parent


class Owner:
    """A process of ours that a test may kill, and what it has told about its peers."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.records: list[ProcessRecord] = []
        self.pids: list[int] = []

    async def listen(self, pids: int) -> None:
        output = BufferedByteReceiveStream(self.process.stdout)  # pyright: ignore[reportArgumentType]
        while len(self.pids) < pids:
            told = json.loads(await output.receive_until(b"\n", 1 << 20))
            self.pids.append(told["pid"])
            if "mark" in told:
                self.records.append(ProcessRecord(**told))

    @property
    def reaper(self) -> int:
        """Its one child that is no peer."""
        own = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        [reaper] = {int(pid) for pid in own} - set(self.pids)
        return reaper


@asynccontextmanager
async def owner_of(*peers: list[str], pids: int) -> AsyncGenerator[Owner]:
    """An owner whose peers have told `pids` process ids, their own included."""
    command = [sys.executable, str(OWNER), *map(json.dumps, peers)]
    process = await anyio.open_process(command, stderr=None, env={**ENVIRONMENT, "PYTHONPATH": str(ROOT)})
    async with process:
        owner = Owner(process)
        try:
            with anyio.fail_after(20):
                await owner.listen(pids)
                yield owner
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            kill(owner.pids)


@requirement("process:reaper:kill-9")
@pytest.mark.parametrize("way", ["child:session", "child:session+empty", "child:session+empty+orphan"])
async def test_kill_9_of_the_owner_leaves_nothing_after_five_seconds(way: str) -> None:
    async with owner_of(standin(way, "echo"), standin("deaf", way, "sleep"), pids=4) as owner:
        everything = [*owner.pids, owner.reaper]
        assert living(everything) == everything
        owner.process.kill()
        with anyio.fail_after(5):
            await until_gone(everything)


@requirement("process:reaper:kill-9")
async def test_kill_9_of_the_owner_ends_wrapper_cli_and_server() -> None:
    async with owner_of(standin("chain:2", "child:session+empty", "echo"), pids=4) as owner:
        everything = [*owner.pids, owner.reaper]
        owner.process.kill()
        with anyio.fail_after(5):
            await until_gone(everything)


@requirement("process:end:sigterm-before-eof")
async def test_no_peer_of_a_dead_owner_sees_the_end_of_its_input_before_sigterm(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with owner_of(standin(f"note:{notes}", "child", "echo"), pids=2) as owner:
        owner.process.kill()
        with anyio.fail_after(5):
            await until_gone(owner.pids)
    assert notes.read_text().splitlines() == ["sigterm"]


@requirement("process:reaper:kill-9")
async def test_the_reaper_survives_what_a_terminal_or_supervisor_signals() -> None:
    async with owner_of(standin("child:session", "echo"), pids=2) as owner:
        reaper = owner.reaper
        assert os.getsid(reaper) == reaper
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(reaper, number)
        assert living([reaper, *owner.pids]) == [reaper, *owner.pids]
        owner.process.kill()
        with anyio.fail_after(5):
            await until_gone([*owner.pids, reaper])


@requirement("process:reaper:shared")
async def test_all_peers_of_a_loop_share_one_reaper_which_leaves_with_the_last() -> None:
    before = children()
    with anyio.fail_after(5):
        async with open_process(standin("echo"), env=ENVIRONMENT) as first:
            reaper = current_reaper().pid
            async with open_process(standin("echo"), env=ENVIRONMENT) as second:
                assert current_reaper().pid == reaper
                assert children() - before == {first.pid, second.pid, reaper}
            assert children() - before == {first.pid, reaper}
    assert children() == before


@requirement("process:reaper:shared")
async def test_a_reaper_that_somebody_killed_is_replaced_and_knows_the_older_peers() -> None:
    with anyio.fail_after(10):
        async with open_process(standin("child:session", "echo"), env=ENVIRONMENT) as first:
            pids = [first.pid, *await told_pids(first, 1)]
            killed = current_reaper().pid
            assert killed is not None
            os.kill(killed, signal.SIGKILL)
            await until_gone([killed])
            async with open_process(standin("say:up", "echo"), env=ENVIRONMENT) as second:
                await next_line(second)
                reaper = current_reaper()
                assert reaper.pid not in (None, killed)
                reaper.hang_up()  # what our death looks like from there
                await until_gone([*pids, second.pid])


@requirement("process:reaper:idle")
async def test_the_reaper_sleeps_until_something_happens() -> None:
    with anyio.fail_after(5):
        async with open_process(standin("say:up", "echo"), env=ENVIRONMENT) as process:
            await next_line(process)
            reaper = current_reaper().pid
            assert reaper is not None
            before = switches(reaper)
            for _ in range(200):  # round trips take their time: a reaper that looks around would show
                process.write(b"hello\n")
                await next_line(process)
            assert switches(reaper) - before <= 1


def switches(pid: int) -> int:
    """How often the process gave up the processor because it waited."""
    [line] = [one for one in Path(f"/proc/{pid}/status").read_text().splitlines() if one.startswith("voluntary_ctxt")]
    return int(line.split()[1])


@requirement("process:reaper:stale")
async def test_records_of_a_dead_process_are_enough_to_end_what_it_left() -> None:
    async with owner_of(standin("deaf", "child:session+empty+orphan", "sleep"), pids=2) as owner:
        os.kill(owner.reaper, signal.SIGKILL)
        owner.process.kill()
        await owner.process.wait()
        assert living(owner.pids) == owner.pids
        ended = await anyio.to_thread.run_sync(lambda: reap_stale(owner.records, grace_seconds=0.1))
        assert ended == 2
        assert living(owner.pids) == []


@requirement("process:reaper:stale")
async def test_a_process_that_only_has_the_number_of_a_stale_record_is_left_alone() -> None:
    with anyio.fail_after(5):
        async with await anyio.open_process(standin("sleep"), stdin=None) as innocent:
            stat = read_stat(innocent.pid)
            assert stat is not None
            for start_time in (stat.start_time, stat.start_time - 1):
                record = ProcessRecord("0123456789abcdef" * 2, innocent.pid, start_time)
                assert await anyio.to_thread.run_sync(lambda record=record: reap_stale([record])) == 0
            assert innocent.returncode is None
            innocent.kill()


@requirement("process:reaper:light")
async def test_the_reaper_needs_the_standard_library_only() -> None:
    program = "import sys; sys.path.append(sys.argv[1]); import connectors._reaper; print(*sys.modules)"
    with anyio.fail_after(5):
        done = await anyio.run_process([sys.executable, "-I", "-S", "-c", program, str(ROOT)])
    modules = {name.partition(".")[0] for name in done.stdout.decode().split()}
    assert modules - sys.stdlib_module_names - {"__main__"} == {"connectors"}
    assert modules & {"asyncio", "json", "subprocess", "logging", "inspect"} == set()
