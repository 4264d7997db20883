"""What the connector knows before and between processes: versions, capabilities, programs, its memory."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors._family import ProcessRecord
from connectors._recorded import process_note
from connectors.claude import ClaudeConnector
from connectors.claude.capabilities import capabilities_of
from connectors.claude.config import ClaudeOptions
from connectors.claude.history_check import HistoryCheck
from connectors.claude.memory import Fork, forked, memory_of, session_begun, turn_ended
from connectors.claude.turn_shape import shape_of, shaped
from connectors.claude.versions import TESTED, Version, features_of, version_notices
from contract_tests.connectors.claude.cli import ENVIRONMENT, needs_cli, open_claude, result
from contract_tests.connectors.claude.test_misbehaving import open_standin, say, start
from contract_tests.requirements import requirement
from harness.contract import (
    ConversationOptions,
    Effort,
    HistoryMessage,
    HistoryRole,
    ImageBlock,
    ToolDescriptor,
    TurnOptions,
)
from harness.contract.options import SystemPromptMode
from harness.errors import ConnectorUnavailable, ContentNotSupported, NotSupported
from harness.turn.events import OutputProduced

NEW: Version = (2, 1, 332)
OLD: Version = (2, 1, 197)


# --- versions --------------------------------------------------------------------------------------------------------


@requirement("claude:start:versions")
@pytest.mark.parametrize(
    ("version", "codes"),
    [
        (NEW, []),
        (OLD, ["old_version"]),
        ((2, 1, 250), []),
        ((2, 1, 333), ["untested_version"]),
        ((3, 0, 0), ["untested_version"]),
    ],
)
def test_a_version_newer_than_tested_and_one_that_expands_texts_are_told(version: Version, codes: list[str]) -> None:
    told = version_notices(version)
    assert [code for code, _ in told] == codes
    assert all(".".join(map(str, version)) in text for _, text in told)


@requirement("claude:start:versions")
def test_the_table_says_what_each_tested_version_can_do() -> None:
    assert {OLD, NEW} == TESTED
    new, old = features_of(NEW), features_of(OLD)
    assert new.keeps_user_text and new.knows_permission_prompts and new.writes_at_once and new.knows_prompt_snapshot
    assert not (old.keeps_user_text or old.knows_permission_prompts or old.writes_at_once or old.knows_prompt_snapshot)
    assert old.takes_new_system_prompt and new.takes_new_system_prompt
    assert not features_of((2, 1, 247)).keeps_user_text and features_of((2, 1, 248)).keeps_user_text


# --- capabilities ----------------------------------------------------------------------------------------------------


@requirement("claude:start:capabilities")
def test_capabilities_are_those_of_route_version_and_options() -> None:
    plain = capabilities_of(ConversationOptions(), ClaudeOptions(), NEW)
    assert plain.routable_request_kinds == ["tool_call", "approval", "user_question"]
    assert plain.delegatable_tool_sources == ["mcp_stdio", "mcp_http"]
    assert (plain.seed_history, plain.structured_output, plain.resume, plain.fork) == (
        "as_text",
        "turn",
        "continued",
        True,
    )
    assert set(plain.turn_options) == {
        *("effort", "instructions", "max_output_tokens", "model", "output_schema_json", "tool_names"),
    }
    assert plain.inner is not None and plain.inner.tested
    assert "AskUserQuestion" in plain.internal_tools and not plain.web_search

    assert capabilities_of(ConversationOptions(internal_tools=["WebSearch"]), ClaudeOptions(), NEW).web_search
    bridge = capabilities_of(ConversationOptions(), ClaudeOptions(route="bridge"), NEW)
    assert bridge == plain, "the two ways differ in nothing that a host could see"


@requirement("claude:start:capabilities")
def test_what_an_option_or_an_old_version_costs_is_told() -> None:
    bare = capabilities_of(ConversationOptions(), ClaudeOptions(bare=True), NEW)
    assert bare.internal_tools == ["Bash", "Edit", "Read"]
    assert bare.routable_request_kinds == ["tool_call", "approval"]
    alone = capabilities_of(ConversationOptions(), ClaudeOptions(permission_prompts="none"), NEW)
    assert alone.routable_request_kinds == ["tool_call"]
    assert "AskUserQuestion" not in alone.internal_tools
    old = capabilities_of(ConversationOptions(), ClaudeOptions(), OLD)
    assert not old.fork
    between = capabilities_of(ConversationOptions(), ClaudeOptions(), (2, 1, 300))
    assert "instructions" not in between.turn_options
    assert between.inner is not None and not between.inner.tested


@requirement("claude:start:capabilities")
async def test_what_a_version_does_not_know_is_refused_before_anything_starts(tmp_path: Path) -> None:
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho '2.1.197 (Claude Code)'\n")
    program.chmod(0o755)
    options = {"command": str(program), "key": "x", "permission_prompts": "none"}
    asked = ConversationOptions(connector="claude", connector_options_json=json.dumps(options))
    with pytest.raises(NotSupported, match="permission_prompts=none"):
        await ClaudeConnector(ENVIRONMENT).get_capabilities(asked)


@requirement("claude:life:history")
async def test_a_history_that_cannot_be_told_as_text_is_refused_at_begin() -> None:
    picture = HistoryMessage(role=HistoryRole.USER, content=[ImageBlock(data="", media_type="image/png")])
    options = ConversationOptions(connector="claude", history=[picture])
    with pytest.raises(ContentNotSupported, match="'image'"):
        await ClaudeConnector(ENVIRONMENT | {"ANTHROPIC_API_KEY": "x"}).get_capabilities(options)


# --- programs --------------------------------------------------------------------------------------------------------


@requirement("R-J5")
@pytest.mark.parametrize("name", ["claude.cmd", "claude.BAT", "claude.ps1"])
async def test_a_shim_that_needs_a_shell_is_refused(tmp_path: Path, name: str) -> None:
    shim = tmp_path / name
    shim.write_text("@echo 2.1.332\n")
    shim.chmod(0o755)
    options = json.dumps({"command": str(shim), "key": "x"})
    with pytest.raises(ConnectorUnavailable, match="no program"):
        await ClaudeConnector(ENVIRONMENT).get_capabilities(
            ConversationOptions(connector="claude", connector_options_json=options)
        )


@requirement("R-J5")
async def test_what_a_message_or_an_option_says_is_never_read_by_a_shell(tmp_path: Path) -> None:
    odd = tmp_path / "a; touch made & $(touch made) 'x"
    odd.mkdir()
    with anyio.fail_after(10):
        async with open_standin(odd) as claude:
            assert (await say(claude, "text:fine; touch made")).text == "fine; touch made"
    assert not list(tmp_path.rglob("made"))


# --- memory ----------------------------------------------------------------------------------------------------------


def begun(session_id: str) -> Any:
    return session_begun(session_id, cwd="/work", home="", version="2.1.332")


@requirement("R-F1")
def test_the_memory_is_that_of_the_session_begun_last() -> None:
    totals: dict[str, Any] = {"m": {"inputTokens": 5}}
    records = [
        {"strange": 1},
        begun("one"),
        turn_ended("u1", "a1", {}),
        begun("two"),
        turn_ended("u2", "a2", totals),
        turn_ended("u3", "a3", totals),
        None,
    ]
    memory = memory_of(records)
    assert (memory.session_id, memory.turns, memory.last_message) == ("two", ("u2", "u3"), "a3")
    assert memory.totals == totals
    assert memory_of([]).session_id is None


@requirement("claude:life:fork")
def test_a_fork_begins_where_the_other_stands_and_a_fork_of_an_unused_fork_with_it() -> None:
    fork = memory_of(forked([begun("one"), turn_ended("u1", "a1", {})]))
    assert (fork.session_id, fork.fork) == (None, Fork("one", "a1"))
    assert memory_of(forked(forked([begun("one")]))).fork == Fork("one", None)
    assert forked([]) == []


@requirement("R-F2")
@pytest.mark.parametrize(
    ("found", "words"), [(["u1", "u2"], None), (["u2"], None), (["u1"], "newest turns"), ([], "every turn so far")]
)
def test_a_history_is_checked_once_and_by_our_own_messages(found: list[str], words: str | None) -> None:
    looked: list[str] = []

    def finds_in(path: str, wanted: Any) -> list[str]:
        looked.append(path)
        return [one for one in wanted if one in found]

    check = HistoryCheck(["u1", "u2"], finds_in)
    events = check.hook_called({"input": {"transcript_path": "/t.jsonl"}})
    assert check.hook_called({"input": {}}) == [] and check.turn_over() == []
    assert looked == ["/t.jsonl"]
    said = [event.fields["text"] for event in events if isinstance(event, OutputProduced)]
    assert (words is None and said == []) or (words is not None and words in said[0])


@requirement("R-F2")
def test_a_history_that_could_not_be_checked_is_told() -> None:
    [event] = HistoryCheck(["u1"], lambda path, wanted: wanted).turn_over()
    assert isinstance(event, OutputProduced) and event.fields["code"] == "history_unverified"
    assert HistoryCheck([], lambda path, wanted: wanted).turn_over() == []


@requirement("claude:life:turn-options")
def test_one_turns_options_are_laid_over_those_of_the_conversation() -> None:
    options = ConversationOptions(
        model="a", system_prompt="S.", tools=[ToolDescriptor(name="x"), ToolDescriptor(name="y")]
    )
    turn = TurnOptions(client_key="k", model="b", effort=Effort.LOW, tool_names=[], instructions="Now.")
    changed = shaped(options, shape_of(turn))
    assert (changed.model, changed.effort, changed.tools, changed.system_prompt) == ("b", "low", [], "S.\n\nNow.")
    assert shaped(options, shape_of(TurnOptions(client_key="other"))) == options
    appended = options.model_copy(update={"system_prompt": None, "system_prompt_mode": SystemPromptMode.APPEND})
    assert shaped(appended, {"instructions": "Now."}).system_prompt == "Now."


@requirement("claude:reap")
async def test_what_the_processes_of_a_dead_server_left_is_ended(tmp_path: Path) -> None:
    mark = "0123456789abcdef0123456789abcdef"
    sleeper = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(60)"]
    left = subprocess.Popen(sleeper, env={"HARNESS_PROCESS_MARK": mark}, start_new_session=True)
    stat = Path(f"/proc/{left.pid}/stat").read_text().rpartition(")")[2].split()
    try:
        with anyio.fail_after(10):
            await ClaudeConnector(ENVIRONMENT).reap([None, process_note(ProcessRecord(mark, left.pid, int(stat[19])))])
            await anyio.to_thread.run_sync(left.wait)
    finally:
        left.kill()
    assert left.returncode is not None and left.returncode < 0
    assert os.getpid() != left.pid


# --- several conversations -------------------------------------------------------------------------------------------


@requirement("R-E4")
async def test_two_conversations_have_processes_and_tools_of_their_own(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    with anyio.fail_after(15):
        async with open_standin(one) as first, open_standin(two) as second:
            turns = [await start(first, "call:1"), await start(second, "call:1")]
            for claude, turn_id, said in ((second, turns[1], "b"), (first, turns[0], "a")):
                seen = await claude.finished(turn_id, lambda request, said=said: result(request, said))
                assert seen.text == f"results: {said}"
            again = await say(second, "call:1", answer=lambda request: result(request, "c"))
    assert again.text == "results: c"


@pytest.mark.live
@requirement("claude:life:lost-continues")
@needs_cli[1]
async def test_a_conversation_that_is_to_go_on_after_a_crash_does_so_once_and_says_so(tmp_path: Path) -> None:
    script: list[dict[str, Any]] = [{"calls": [{"name": "save", "id": "toolu_1"}]}, {"text": "I go on."}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, connector_options={"on_peer_lost": "continue"}) as claude:
            turn_id = await claude.start("Go.")
            _, items = await claude.until(turn_id, lambda state, _: state.pending_requests)
            [told] = [i.text for i in items if getattr(i, "code", "") == "peer_started"]  # type: ignore[union-attr]
            os.kill(int(told.split("pid ")[1].split(",")[0]), 9)
            lost = await claude.finished(turn_id)
            following = await claude.finished("t2")
    assert lost.state.error is not None and lost.state.error.code == "peer_lost"
    assert following.notices("continued_after_loss")
    assert following.text == "I go on."
