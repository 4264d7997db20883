"""The commands that an agent has its client run: limits of their output, and their end."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors._jsonrpc import Asked
from connectors.acp.client_calls import CREATE, WRITE, Command, Refusal, approval_of, approved, command_of
from connectors.acp.terminals import MOST_TERMINALS, OutputEnd, Terminals
from contract_tests.connectors.processes import until_gone
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.contract import HostResponse

PATH = {"PATH": "/usr/bin:/bin"}


@asynccontextmanager
async def open_terminals() -> AsyncGenerator[Terminals]:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            yield Terminals(tasks, PATH, grace_seconds=2.0)
            tasks.cancel_scope.cancel()


def line(text: str, **env: str) -> Command:
    return Command(text, None, None, env)


# --- the output ------------------------------------------------------------------------------------------------------


@requirement("acp:client:terminals")
@given(text=st.text(), limit=st.integers(0, 40), cuts=st.lists(st.integers(0, 60)))
def test_what_is_kept_is_the_end_and_never_half_a_character(text: str, limit: int, cuts: list[int]) -> None:
    text = text.encode("utf-8", "ignore").decode()
    data = text.encode()
    output, at = OutputEnd(limit), 0
    for cut in [*sorted(cut for cut in cuts if cut <= len(data)), len(data)]:
        output.feed(data[at:cut])
        at = cut
    output.feed(b"", is_last=True)
    assert text.endswith(output.text)
    kept = len(output.text.encode())
    assert kept <= limit
    assert output.is_truncated == (len(data) > limit)
    assert kept > limit - 4 or output.text == text, "no more is dropped than has to be"


@requirement("acp:client:terminals")
def test_bytes_that_are_no_text_do_not_break_the_limit() -> None:
    output = OutputEnd(10)
    output.feed(b"\xff" * 20)
    assert (output.text, output.is_truncated) == ("\ufffd" * 3, True)
    half = OutputEnd(10)
    half.feed("é".encode()[:1])
    assert half.text == "", "its other half may come"
    half.feed(b"", is_last=True)
    assert half.text == "\ufffd"


# --- the commands ----------------------------------------------------------------------------------------------------


@requirement("acp:client:terminals")
@pytest.mark.parametrize(
    ("command", "text", "status"),
    [
        (line("printf é; echo err >&2; exit 3"), "éerr\n", (3, None)),
        (Command("printf", ["%s|", "a b", "*"], None, {}), "a b|*|", (0, None)),
        (Command("/no/such/program", ["x"], None, {}), "not found", (127, None)),
        (line('echo "$A"', A="$B"), "$B\n", (0, None)),
        (line("cat"), "", (0, None)),
        (line("kill -9 $$"), "", (None, "SIGKILL")),
        (line("exec >&- 2>&-; sleep 0.1; exit 4"), "", (4, None)),
    ],
)
async def test_a_command_tells_what_it_wrote_and_how_it_ended(command: Command, text: str, status: Any) -> None:
    async with open_terminals() as terminals:
        name = await terminals.create(command, Path("/tmp"))
        ended = await terminals.exit_status(name)
        assert (ended["exitCode"], ended["signal"]) == status
        output = terminals.output(name)
        assert text in str(output["output"])
        assert output["exitStatus"] == ended
        await terminals.release(name)
        with pytest.raises(Refusal, match="no terminal"):
            terminals.output(name)


@requirement("acp:client:terminals")
async def test_a_command_that_runs_is_killed_with_all_it_started_and_its_output_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with open_terminals() as terminals:
        name = await terminals.create(line(f"echo here; sleep 1000 & echo $! > {pipe}; wait"), tmp_path)
        pid = int(await anyio.to_thread.run_sync(pipe.read_text))
        assert "exitStatus" not in terminals.output(name)
        await terminals.kill(name)
        assert (terminals.output(name)["output"], await terminals.exit_status(name)) == (
            "here\n",
            {"exitCode": None, "signal": "SIGTERM"},
        )
        await until_gone([pid])


@requirement("acp:client:terminals")
async def test_an_endless_output_is_bounded_and_so_is_the_number_of_terminals(tmp_path: Path) -> None:
    async with open_terminals() as terminals:
        name = await terminals.create(line("yes | head -c 5000000"), tmp_path, limit=100)
        await terminals.exit_status(name)
        output = terminals.output(name)
        assert (len(str(output["output"])), output["truncated"]) == (100, True)
        for _ in range(MOST_TERMINALS - 1):
            await terminals.create(line("true"), tmp_path)
        with pytest.raises(Refusal, match="release one first"):
            await terminals.create(line("true"), tmp_path)
        await terminals.release("terminal-2")
        with pytest.raises(Refusal):
            await terminals.create(line("half \ud800"), tmp_path)
        await terminals.create(line("true"), tmp_path)
        await terminals.release(name)
        await terminals.create(line("true"), tmp_path)


RUNS_AND_TELLS = """
import anyio, sys
from pathlib import Path
from connectors.acp.client_calls import Command
from connectors.acp.terminals import Terminals

async def main():
    async with anyio.create_task_group() as tasks:
        terminals = Terminals(tasks, {"PATH": "/usr/bin:/bin"}, grace_seconds=2.0)
        await terminals.create(Command(sys.argv[1], None, None, {}), Path("/"))

anyio.run(main)
"""


@requirement("acp:client:terminals")
async def test_a_command_ends_though_this_program_is_killed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    argv = [sys.executable, "-c", RUNS_AND_TELLS, f"echo $$ > {pipe}; exec sleep 1000"]
    with anyio.fail_after(20):
        async with await anyio.open_process(argv, cwd=ROOT, stdin=None) as program:
            pid = int(await anyio.to_thread.run_sync(pipe.read_text))
            program.kill()
        await until_gone([pid])


# --- what is asked ---------------------------------------------------------------------------------------------------


@requirement("acp:client:terminals")
@pytest.mark.parametrize(
    "params",
    [
        *({}, {"command": " "}, {"command": 1}, {"command": "ls", "args": [1]}, {"command": "ls", "args": "x"}),
        *({"command": "ls", "cwd": 1}, {"command": "ls", "env": [{"name": "A=B", "value": ""}]}, {"command": "a\0"}),
        {"command": "ls", "env": [{"value": "x"}]},
    ],
)
def test_a_malformed_command_is_refused_before_anybody_is_asked(params: Any) -> None:
    with pytest.raises(Refusal):
        approval_of(Asked("1", CREATE, params))


@requirement("acp:client:terminals", "acp:client:files")
def test_the_host_sees_all_of_it_and_what_it_changes_is_what_is_done() -> None:
    params: dict[str, Any] = {
        "sessionId": "s",
        "command": "ls",
        "args": ["-l", "a b"],
        "cwd": "/w",
        "outputByteLimit": 5,
    }
    asked = Asked("1", CREATE, {**params, "env": [{"name": "A", "value": "1"}]})
    request = approval_of(asked)
    assert (request.target, request.read_only) == ("ls -l 'a b'", False)
    assert all(part in str(request.arguments_json) for part in ('"-l"', '"/w"', '"A"'))
    changed = HostResponse(request_id="", selected_option="allow", updated_arguments_json='{"command":"pwd"}')
    params = approved(asked, request, changed)
    assert (command_of(params), params["outputByteLimit"]) == (Command("pwd", None, None, {}), 5)
    for denied in ("deny", None, "something"):
        with pytest.raises(Refusal):
            approved(asked, request, HostResponse(request_id="", selected_option=denied))
    with pytest.raises(Refusal):
        approval_of(Asked("1", WRITE, {"path": "/a"}))
