"""A CLI that misbehaves, as a host sees it: a separate process over real pipes, driven through `ConversationalLLM`."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors.claude import ClaudeConnector
from contract_tests.connectors.claude.cli import ENVIRONMENT, Claude, Seen, result
from contract_tests.connectors.processes import is_alive, living, until_gone
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions, HostRequest, HostResponse, Timeouts, ToolDescriptor, TurnStatus
from harness.errors import TurnInProgress
from harness.local import LocalHarness
from harness.registry import Registry
from harness.scripted_model import open_scripted_model
from harness.settings import Settings

STANDIN = Path(__file__).parents[2] / "peers" / "claude_standin.py"
MIB = 1024 * 1024
LOOK = ToolDescriptor(name="look", read_only=True)


def program(directory: Path) -> Path:
    path = directory / "claude"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {STANDIN} "$@"\n')
    path.chmod(0o755)
    return path


@asynccontextmanager
async def open_standin(
    directory: Path, *, timeouts: Timeouts | None = None, settings: Settings | None = None, **connector_options: Any
) -> AsyncGenerator[Claude]:
    chosen = {
        "command": str(program(directory)),
        "key": "sk-made-up",
        "home": str(directory),
        "grace_seconds": 0.3,
        "interrupt_seconds": 0.5,
        **connector_options,
    }
    options = ConversationOptions(
        connector="claude",
        tools=[LOOK],
        timeouts=timeouts or Timeouts(),
        cwd=str(directory),
        connector_options_json=json.dumps(chosen),
    )
    registry = Registry({"claude": ClaudeConnector(ENVIRONMENT)})
    # the scripted model is never asked: the stand-in is its own model
    async with open_scripted_model([]) as model, LocalHarness(registry, settings=settings) as harness:
        yield Claude(harness, model, await harness.begin_conversation(options))


async def say(claude: Claude, *steps: str, answer: Callable[[HostRequest], HostResponse] | None = None) -> Seen:
    return await claude.say(json.dumps(steps), answer)


async def start(claude: Claude, *steps: str) -> str:
    return await claude.start(json.dumps(steps))


def pid_of(seen: Seen) -> int:
    """The CLI's process, from the notice of its start."""
    [text] = seen.notices("peer_started")
    return int(text.partition("pid ")[2].partition(",")[0])


def descendants_of_ours() -> list[int]:
    """Living processes below this one, apart from the reaper, which serves every conversation of the event loop."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
                command = (entry / "cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
            if stat[0] not in "ZX" and b"_reaper" not in command:
                children.setdefault(int(stat[1]), []).append(int(entry.name))
    found, queue = [], [os.getpid()]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


@requirement("claude:misbehaving:long-line")
@pytest.mark.parametrize("mib", [1, 50])
async def test_a_line_of_fifty_mebibytes_arrives_whole(tmp_path: Path, mib: int) -> None:
    with anyio.fail_after(60):
        async with open_standin(tmp_path) as claude:
            seen = await say(claude, f"line:{mib * MIB - 4096}", "text:after")
    assert seen.state.status == TurnStatus.COMPLETED
    pattern = "\u2028\u2029\u0085\U0001f600 x"
    long = pattern * ((mib * MIB - 4096) // len(pattern.encode()))
    assert seen.text == long + "after"


@requirement("claude:misbehaving:line-limit")
async def test_a_line_over_the_limit_fails_the_turn_and_the_next_message_works(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path, max_line_bytes=MIB) as claude:
            failed = await say(claude, f"line:{2 * MIB}")
            worked = await say(claude, "text:still here")
    assert failed.state.status == TurnStatus.FAILED
    assert failed.state.error is not None and failed.state.error.code == "peer_protocol_error"
    assert worked.text == "still here"


@requirement("claude:misbehaving:stderr")
async def test_ten_megabytes_of_stderr_before_the_answer_block_nobody(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            seen = await say(claude, "stderr:10000000", "text:done")
    assert seen.text == "done"


@requirement("claude:misbehaving:garbage")
async def test_stray_lines_never_end_a_turn(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            seen = await say(claude, "garbage", "text:done", "garbage")
    assert seen.text == "done"
    assert len(seen.notices("unknown_peer_event")) == 2


@requirement("claude:misbehaving:pieces")
async def test_characters_cut_anywhere_arrive_whole(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            seen = await say(
                claude, "pieces", "text:😀\u2028\v\f\r😀", "line:2000", "call:2", answer=lambda r: result(r, "😀")
            )
    assert seen.state.status == TurnStatus.COMPLETED
    assert seen.text.startswith("😀\u2028\v\f\r😀") and seen.text.endswith("results: 😀 😀")


@requirement("claude:misbehaving:identical-calls")
async def test_identical_parallel_calls_each_get_their_own_answer(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            seen = await say(claude, "call:3", answer=lambda request: result(request, request.request_id))
    ids = [request.request_id for request in seen.requests]
    assert len(set(ids)) == 3
    assert seen.text == "results: " + " ".join(ids)


@requirement("claude:misbehaving:dies")
@pytest.mark.parametrize(("steps", "code"), [(("half-line-die",), -9), (("text:x", "exit:7"), 7)])
async def test_a_cli_that_dies_fails_the_turn_at_once_and_the_next_message_works(
    tmp_path: Path, steps: tuple[str, ...], code: int
) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            failed = await say(claude, *steps)
            worked = await say(claude, "text:back")
    error = failed.state.error
    assert error is not None and error.code == "peer_lost" and error.detail_json is not None
    assert json.loads(error.detail_json)["exit_code"] == code
    assert worked.text == "back"


@requirement("claude:misbehaving:dies-with-a-call-open")
async def test_one_dead_cli_leaves_the_other_conversation_alone(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with anyio.fail_after(20):
        async with open_standin(tmp_path / "a") as dying, open_standin(tmp_path / "b") as living_one:
            turn = await start(living_one, "call:1")
            state, _ = await living_one.until(turn, lambda state, _: state.pending_requests)
            failed = await say(dying, "exit:1")
            await living_one.answer(turn, result(state.pending_requests[0], "ok"))
            seen = await living_one.finished(turn)
    assert failed.state.status == TurnStatus.FAILED
    assert seen.text == "results: ok"


@requirement("claude:misbehaving:cancel")
@pytest.mark.parametrize("steps", [("hang",), ("call:2",), ("deaf", "hang"), ("deaf", "call:2")])
async def test_a_cancel_ends_every_turn_and_the_next_message_works(tmp_path: Path, steps: tuple[str, ...]) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            turn = await start(claude, "text:begun", *steps)
            await claude.until(turn, lambda state, items: any(getattr(i, "text", "") for i in items) or len(items) > 1)
            await claude.cancel(turn)
            seen = await claude.finished(turn)
            worked = await say(claude, "text:still usable")
    assert seen.state.status == TurnStatus.CANCELLED
    assert seen.state.pending_requests == []
    assert worked.text == "still usable"


@requirement("claude:misbehaving:tool-deadline")
async def test_a_call_nobody_answers_expires_with_one_error_result(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path, timeouts=Timeouts(tool_ms=200)) as claude:
            seen = await say(claude, "call:1")
    assert seen.state.status == TurnStatus.COMPLETED
    assert "no result within 0.2 s" in seen.text


@requirement("claude:misbehaving:stalls")
async def test_a_cli_that_never_answers_stalls_and_is_replaced(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path, timeouts=Timeouts(idle_ms=400)) as claude:
            seen = await say(claude, "deaf", "hang")
            worked = await say(claude, "text:new")
    assert seen.state.error is not None and seen.state.error.code == "turn_stalled"
    assert worked.text == "new"


@requirement("claude:misbehaving:second-message")
async def test_a_second_message_is_refused_and_disturbs_nothing(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            turn = await start(claude, "call:1")
            state, _ = await claude.until(turn, lambda state, _: state.pending_requests)
            with pytest.raises(TurnInProgress):
                await claude.start("another")
            await claude.answer(turn, result(state.pending_requests[0], "ok"))
            seen = await claude.finished(turn)
    assert seen.text == "results: ok"


@requirement("claude:misbehaving:stdin-stays-open")
async def test_input_stays_open_between_turns_until_the_conversation_ends(tmp_path: Path) -> None:
    """At the end of its input the stand-in leaves: one process over several turns proves that it never came."""
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            first = await say(claude, "text:one")
            second = await say(claude, "text:two")
            assert is_alive(pid_of(first))
            await claude.harness.end_conversation(claude.conversation_id)
            assert not is_alive(pid_of(first))
    assert second.notices("peer_started") == []


@requirement("claude:misbehaving:grandchild")
@pytest.mark.parametrize("steps", [("grandchild",), ("deaf", "grandchild")])
async def test_nothing_survives_the_end_of_a_conversation(tmp_path: Path, steps: tuple[str, ...]) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path) as claude:
            seen = await say(claude, *steps)
            family = [pid_of(seen), int(seen.text)]
            assert living(family) == family
            await claude.harness.end_conversation(claude.conversation_id)
            assert living(family) == []


@requirement("claude:misbehaving:time-to-live")
async def test_an_idle_conversation_lets_its_processes_go(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with open_standin(tmp_path, settings=Settings(idle_ttl_seconds=0.5)) as claude:
            seen = await say(claude, "grandchild")
            await until_gone([pid_of(seen), int(seen.text)])


@requirement("claude:misbehaving:cancelled-anywhere")
async def test_a_harness_cancelled_anywhere_leaves_no_process_and_no_descriptor(tmp_path: Path) -> None:
    async def life(seconds: float) -> None:
        with anyio.move_on_after(seconds):
            async with open_standin(tmp_path) as claude:
                await say(claude, "text:x", "call:1")

    await life(2.0)  # whatever is opened once per process is open from here on
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(12):
        with anyio.fail_after(10):
            await life(0.04 * number)
        assert descendants_of_ours() == []
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
