"""Our connector and an agent made with the package `agent-client-protocol`: both sides check what the other says."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest

from connectors.acp import AcpConnector
from contract_tests.connectors.acp import package_agent
from contract_tests.connectors.acp.schema_check import check
from contract_tests.connectors.agents import ENVIRONMENT, workplace
from contract_tests.connectors.processes import is_alive, until_gone
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions, HostRequest, HostResponse, ToolDescriptor
from harness.contract.output import Plan
from harness.errors import NotSupported
from harness.local import LocalHarness
from harness.registry import Registry
from harness.store.memory import MemoryStore
from harness.testing.talk import Talk, choice, result

LOOK = ToolDescriptor(name="look", read_only=True)


@asynccontextmanager
async def open_talk(
    directory: Path, *, env: dict[str, str] | None = None, journal: MemoryStore | None = None, **chosen: Any
) -> AsyncGenerator[Talk]:
    home = directory / "home"
    home.mkdir(exist_ok=True)
    more = {"command": [sys.executable, "-P", package_agent.__file__], "home": str(home), "isolated_home": True}
    options = ConversationOptions(
        connector="acp",
        tools=[LOOK],
        cwd=workplace(directory),
        connector_options_json=json.dumps({**more, "env": env or {}, **chosen}),
    )
    registry = Registry({"acp": AcpConnector(ENVIRONMENT)})
    with anyio.fail_after(90):
        async with LocalHarness(registry, store=journal) as harness:
            yield Talk(harness, await harness.begin_conversation(options))


def steps(*told: list[Any]) -> str:
    return json.dumps(told)


def allow(request: HostRequest) -> HostResponse:
    return choice(request, "allow_once")


def looked(request: HostRequest) -> HostResponse:
    return result(request, f"seen {request.arguments_json}")


# --- the schema ------------------------------------------------------------------------------------------------------


@requirement("acp:schema")
@pytest.mark.parametrize(
    "message",
    [
        {"method": "session/cancel", "params": {"session_Id": "s"}},
        {"method": "session/prompt", "params": {"sessionId": "s", "prompt": [], "extra": 1}},
        {"id": 1, "result": {"outcome": {"outcome": "selected"}}},
        {"id": 1, "error": {"code": "x", "message": "y"}},
    ],
)
def test_a_message_that_is_not_in_the_schema_is_noticed(message: Any) -> None:
    with pytest.raises((ValueError, AssertionError)):
        check(message, {1: "session/request_permission"})


# --- turns -----------------------------------------------------------------------------------------------------------


@requirement("acp:package", "acp:relay")
@pytest.mark.parametrize("env", [{}, {"STDIO_ONLY": "1"}], ids=["http", "relay"])
async def test_a_call_of_the_hosts_tool_comes_over_mcp_with_the_streams_id(env: dict[str, str], tmp_path: Path) -> None:
    async with open_talk(tmp_path, env=env) as talk:
        turn = await talk.say(steps(["call", "look", {"at": 1}], ["call", "look", {"at": 2}]), answer=looked)
        assert [(one.call_id, one.call_id_source) for one in turn.requests] == [
            ("call_1", "matched"),
            ("call_2", "matched"),
        ]
        assert turn.text.endswith('seen {"at":2}')
        assert turn.end == ("completed", "end_turn")


@requirement("acp:package")
async def test_a_plan_and_both_answers_to_a_permission_pass(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        turn = await talk.say(steps(["plan", "first", "second"], ["ask", "ls"]), answer=allow)
        plans = [item for item in turn.items if isinstance(item, Plan)]
        assert [entry.text for entry in plans[0].entries] == ["first", "second"]
        assert turn.text.endswith("[yes]")
        turn = await talk.say(steps(["ask", "ls"]), answer=lambda request: choice(request, "deny"))
        assert turn.text.endswith("[no]")


@requirement("acp:package")
async def test_a_cancel_ends_the_turn_wherever_it_is_and_the_next_one_works(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        for step in (["wait"], ["ask", "ls"], ["call", "look", {}]):
            turn_id = await talk.start(steps(["plan", "x"], step))
            await talk.until(
                turn_id, lambda state, items: state.pending_requests or any(isinstance(i, Plan) for i in items)
            )
            await talk.llm.cancel_turn(talk.conversation_id, turn_id)
            assert (await talk.unanswered(turn_id)).end[0] == "cancelled"
            assert (await talk.say(steps(["plan", "y"]))).end == ("completed", "end_turn")


@requirement("acp:package", "acp:resume")
@pytest.mark.parametrize("resume_by", [None, "session/load"])
async def test_a_session_is_loaded_without_showing_its_history_again(resume_by: str | None, tmp_path: Path) -> None:
    journal = MemoryStore()
    async with open_talk(tmp_path, journal=journal, resume_by=resume_by) as talk:
        await talk.say(steps(["plan", "x"]))
        first = talk.conversation_id
    async with open_talk(tmp_path, journal=journal, resume_by=resume_by) as other:
        talk = Talk(other.llm, first)
        turn = await talk.say(steps(["plan", "y"]))
        assert turn.text.endswith("[planned]")
        assert "first" not in turn.text
        assert bool(turn.notices("history_lost")) == (resume_by is None)
    remembered = [path.read_text().count("\n") for path in (tmp_path / "home").glob("steps-*.txt")]
    assert sorted(remembered) == ([2] if resume_by else [1, 1])


# --- what the client does for the agent ------------------------------------------------------------------------------


@requirement("acp:client:off")
async def test_files_and_terminals_are_neither_offered_nor_done_unless_asked_for(tmp_path: Path) -> None:
    async with open_talk(tmp_path) as talk:
        turn = await talk.say(steps(["offered"], ["write", f"{workplace(tmp_path)}/a.txt", "x"]))
        assert '"terminal": false' in turn.deltas
        assert "true" not in turn.deltas
        assert "-32601" in turn.text
        assert list(Path(workplace(tmp_path)).iterdir()) == []


@requirement("acp:client:files")
async def test_a_file_is_read_at_once_and_written_when_the_host_allows_it(tmp_path: Path) -> None:
    work = Path(workplace(tmp_path))
    (work / "a.txt").write_text("old")
    outside = tmp_path / "outside.txt"
    outside.write_text("secret")
    async with open_talk(tmp_path, client_files="write") as talk:
        path = str(work / "a.txt")
        turn = await talk.say(steps(["offered"], ["read", path], ["write", path, "new"]), answer=allow)
        assert '"readTextFile": true, "writeTextFile": true' in turn.deltas
        [asked] = turn.requests
        assert (asked.kind, asked.tool_name, asked.target) == ("approval", "fs/write_text_file", path)
        assert json.loads(asked.arguments_json or "") == {"path": path, "content": "new"}
        assert turn.deltas.endswith("old[written]")
        turn = await talk.say(steps(["write", path, "newer"]), answer=lambda request: choice(request, "deny"))
        assert "denied" in turn.text
        turn_id = await talk.start(steps(["write", path, "late"]))
        await talk.pending(turn_id)
        await talk.llm.cancel_turn(talk.conversation_id, turn_id)
        assert (await talk.unanswered(turn_id)).end[0] == "cancelled"
        assert (work / "a.txt").read_text() == "new", "what nobody has answered is not done"
        changed = json.dumps({"path": path, "content": "the host's"})
        await talk.say(
            steps(["write", path, "mine"]),
            answer=lambda request: choice(request, "allow", updated_arguments_json=changed),
        )
        assert (work / "a.txt").read_text() == "the host's"
        turn = await talk.say(steps(["read", str(outside)], ["read", f"{work}/../outside.txt"]))
        assert turn.deltas.count("outside the working directory") == 2
        assert "secret" not in turn.deltas


@requirement("acp:client:files")
async def test_with_the_right_to_read_a_write_is_not_done(tmp_path: Path) -> None:
    work = Path(workplace(tmp_path))
    async with open_talk(tmp_path, client_files="read") as talk:
        turn = await talk.say(steps(["offered"], ["write", f"{work}/a.txt", "x"]))
        assert '"readTextFile": true, "writeTextFile": false' in turn.deltas
        assert "-32601" in turn.text
    assert list(work.iterdir()) == []


@requirement("acp:client:terminals")
async def test_a_command_runs_in_the_working_directory_when_the_host_allows_it(tmp_path: Path) -> None:
    async with open_talk(tmp_path, client_terminals=True) as talk:
        turn = await talk.say(steps(["run", "pwd; exit 3"], ["run", "echo", "a b"]), answer=allow)
        assert [one.target for one in turn.requests] == ["pwd; exit 3", "echo 'a b'"]
        assert turn.deltas == f"{workplace(tmp_path)}\n[3 None]a b\n[0 None]"
        turn = await talk.say(steps(["run", "touch made"]), answer=lambda request: choice(request, "deny"))
        assert "-32800" in turn.text
        assert list(Path(workplace(tmp_path)).iterdir()) == []


@requirement("acp:client:terminals")
async def test_a_cancel_ends_the_command_that_runs(tmp_path: Path) -> None:
    async with open_talk(tmp_path, client_terminals=True) as talk:
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        turn_id = await talk.start(steps(["run", f"echo $$ > {pipe}; exec sleep 1000"]))
        [asked] = await talk.pending(turn_id)
        await talk.answer(turn_id, allow(asked))
        pid = await told_pid(pipe)
        await talk.llm.cancel_turn(talk.conversation_id, turn_id)
        assert (await talk.unanswered(turn_id)).end[0] == "cancelled"
        await until_gone([pid])


@requirement("acp:client:terminals")
async def test_a_command_that_was_never_released_ends_with_the_conversation(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with open_talk(tmp_path, client_terminals=True) as talk:
        turn = await talk.say(
            steps(["start", "/bin/sh", "-c", f"echo $$ > {pipe}; sleep 1000 & wait"]),
            answer=allow,
        )
        assert turn.text == "terminal-1"
        pid = await told_pid(pipe)
        assert is_alive(pid)
    await until_gone([pid])


@requirement("acp:client:off")
async def test_an_unknown_agent_promises_to_go_on_only_where_it_is_told_how(tmp_path: Path) -> None:
    for resume_by, promised in ((None, "none"), ("session/load", "continued")):
        chosen = {"command": ["agent"], "resume_by": resume_by}
        options = ConversationOptions(connector="acp", connector_options_json=json.dumps(chosen))
        assert (await AcpConnector(ENVIRONMENT).get_capabilities(options)).resume == promised
    with pytest.raises(NotSupported):
        await AcpConnector(ENVIRONMENT).get_capabilities(options.model_copy(update={"effort": "high"}))


async def told_pid(pipe: Path) -> int:
    """What the command writes into the pipe, once it does."""
    return int(await anyio.to_thread.run_sync(pipe.read_text))
