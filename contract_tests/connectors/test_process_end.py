"""How a CLI ends: everything it started goes with it, in bounded time, whatever it does and whoever cancels whom."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from connectors._process import PeerProcess, open_process
from contract_tests.connectors.processes import (
    ENVIRONMENT,
    children,
    kill,
    living,
    next_line,
    open_descriptors,
    standin,
    told_pids,
)
from contract_tests.requirements import requirement
from harness.errors import ConnectorUnavailable, PeerLost

WAYS_TO_GET_AWAY = ["child", "child:session", "child:empty", "child:session+empty", "child:session+empty+orphan"]


@asynccontextmanager
async def opened(*steps: str, grace_seconds: float = 1) -> AsyncGenerator[PeerProcess]:
    with anyio.fail_after(5):
        async with open_process(
            standin(*steps), env=ENVIRONMENT, name="standin", grace_seconds=grace_seconds
        ) as process:
            yield process


@requirement("process:end:whole-tree")
@pytest.mark.parametrize("way", WAYS_TO_GET_AWAY)
async def test_a_grandchild_ends_with_the_peer_however_it_was_started(way: str) -> None:
    async with opened(way, "echo") as process:
        pids = [process.pid, *await told_pids(process, 1)]
        assert living(pids) == pids
    assert living(pids) == [], kill(pids)


@requirement("process:end:whole-tree")
@pytest.mark.parametrize("way", WAYS_TO_GET_AWAY)
async def test_a_grandchild_of_a_peer_that_died_by_itself_ends_too(way: str) -> None:
    async with opened(way, "die:9") as process:
        pids = await told_pids(process, 1)
        with pytest.raises(PeerLost):
            await process.receive()
    assert living(pids) == [], kill(pids)


@requirement("process:end:wrapper-chain")
async def test_wrapper_and_cli_and_its_server_all_go() -> None:
    async with opened("chain:2", "child:session", "echo") as process:
        pids = [process.pid, *await told_pids(process, 3)]
        assert living(pids) == pids
    assert living(pids) == [], kill(pids)


@requirement("process:end:wrapper-chain")
async def test_the_cli_goes_when_only_its_wrapper_was_killed() -> None:
    async with opened("chain:1", "deaf", "child:session+empty", "echo") as process:
        pids = await told_pids(process, 2)
        os.kill(process.pid, signal.SIGKILL)
        assert await process.wait() == -signal.SIGKILL
        assert living(pids) == pids
    assert living(pids) == [], kill(pids)


@requirement("process:end:bounded")
async def test_a_peer_deaf_to_sigterm_is_killed_after_the_grace() -> None:
    async with opened("deaf", "child", "echo", grace_seconds=0.2) as process:
        pids = [process.pid, *await told_pids(process, 1)]
        began = anyio.current_time()
        await process.end()
        assert anyio.current_time() - began < 1.5
        assert process.returncode == -signal.SIGKILL
    assert living(pids) == [], kill(pids)


@requirement("process:end:sigterm-before-eof")
async def test_the_peer_hears_sigterm_and_never_the_end_of_its_input(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    async with opened(f"note:{notes}", "say:up", "echo") as process:
        await next_line(process)
    assert notes.read_text().splitlines() == ["sigterm"]
    assert process.returncode == 143


async def test_a_peer_that_floods_its_output_can_be_ended() -> None:
    async with opened("flood") as process:
        await process.receive()
        await process.end()
        assert process.returncode == -signal.SIGTERM


async def test_a_peer_with_much_to_say_at_its_end_can_say_it() -> None:
    async with opened("farewell:1000000", "say:up", "echo") as process:
        await next_line(process)
        await process.end()
        assert process.returncode == 0  # it was not stuck in a full pipe until SIGKILL


async def test_lines_end_quietly_when_we_end_the_peer() -> None:
    received: list[bytes] = []
    up = anyio.Event()
    async with opened("say:up", "echo") as process, anyio.create_task_group() as tasks:

        async def read() -> None:
            async for lines in process.lines():
                received.extend(lines)
                up.set()

        tasks.start_soon(read)
        await up.wait()
        await process.end()
        with pytest.raises(PeerLost, match="'standin' was ended"):
            process.write(b"too late\n")
    assert received == [b"up"]


@requirement("process:end:whole-tree")
async def test_ending_one_peer_leaves_another_alone() -> None:
    async with opened("child:session+empty", "echo") as stays:
        pids = [stays.pid, *await told_pids(stays, 1)]
        async with opened("child:session+empty", "echo") as goes:
            gone = [goes.pid, *await told_pids(goes, 1)]
        assert living([*pids, *gone]) == pids, kill(gone)


# --- cancelled --------------------------------------------------------------------------------------------------------


@requirement("process:end:cancelled-anywhere")
async def test_cancelled_at_any_moment_nothing_is_left() -> None:
    before = children(), open_descriptors()
    pids: set[int] = set()

    async def cycle(cancel_after: float) -> None:
        with anyio.move_on_after(cancel_after):
            async with open_process(standin("child:session+empty", "echo"), env=ENVIRONMENT) as process:
                pids.add(process.pid)
                pids.update(await told_pids(process, 1))
                process.write(b"question\n")
                await next_line(process)
                await anyio.sleep_forever()

    with anyio.fail_after(30):
        for milliseconds in range(0, 100, 2):
            await cycle(milliseconds / 1000)
    assert (children(), open_descriptors()) == before
    assert living(pids) == [], kill(pids)


@requirement("process:end:cancelled-anywhere")
async def test_cancelled_before_the_block_is_entered_nothing_is_left() -> None:
    before = children(), open_descriptors()
    with anyio.CancelScope() as scope:
        scope.cancel()
        async with open_process(standin("echo"), env=ENVIRONMENT) as process:
            await process.receive()
    assert scope.cancelled_caught
    assert (children(), open_descriptors()) == before


@requirement("process:end:cancelled-anywhere")
async def test_the_ladder_is_climbed_though_its_waiter_is_cancelled() -> None:
    ended: list[PeerProcess] = []
    with anyio.fail_after(5):
        with anyio.CancelScope() as scope:
            async with open_process(standin("deaf", "say:up", "echo"), env=ENVIRONMENT, grace_seconds=0.3) as process:
                await next_line(process)
                ended.append(process)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(process.end)
                    await anyio.lowlevel.checkpoint()
                    scope.cancel()
        assert scope.cancelled_caught
        assert living(process.pid for process in ended) == []
        assert [process.returncode for process in ended] == [-signal.SIGKILL]


@requirement("process:end:cancelled-anywhere")
async def test_the_loops_own_cancellation_does_not_cut_the_ladder_short() -> None:
    before = children(), open_descriptors()
    pids: list[int] = []
    up = anyio.Event()

    async def conversation() -> None:
        steps = "deaf", "child:session", "echo"
        async with open_process(standin(*steps), env=ENVIRONMENT, grace_seconds=0.3) as process:
            pids.extend([process.pid, *await told_pids(process, 1)])
            up.set()
            await anyio.sleep_forever()

    with anyio.fail_after(5):
        task = asyncio.get_running_loop().create_task(conversation())
        await up.wait()
        for _ in range(3):  # Ctrl-C and a second Ctrl-C reach a task like this, and shields do not count
            task.cancel()
            await anyio.lowlevel.checkpoint()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert living(pids) == [], kill(pids)
    assert (children(), open_descriptors()) == before


@requirement("process:end:nothing-left")
async def test_fifty_conversations_leave_no_process_and_no_descriptor() -> None:
    before = children(), open_descriptors()
    with anyio.fail_after(30):
        for _ in range(50):
            async with open_process(standin("echo"), env=ENVIRONMENT) as process:
                process.write(b"hello\n")
                await next_line(process)
    assert (children(), open_descriptors()) == before


@requirement("process:end:nothing-left")
async def test_a_start_that_fails_leaves_nothing() -> None:
    before = children(), open_descriptors()
    for _ in range(3):
        with pytest.raises(ConnectorUnavailable):
            async with open_process(["no-such-cli"], env=ENVIRONMENT):
                pass
    assert (children(), open_descriptors()) == before
