"""The life of a conversation with the real CLI: interrupts, its start, its death, and what it can be told apart by."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors._exits import until_exit
from connectors.claude import ClaudeConnector
from contract_tests.connectors.claude.cli import (
    ENVIRONMENT,
    Claude,
    Seen,
    claude_options,
    needs_cli,
    newest_only,
    open_claude,
    result,
)
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions, OutputItem, RequestResolved, TextDelta, TurnState
from harness.errors import ConnectorUnavailable
from harness.local import LocalHarness
from harness.registry import Registry
from harness.scripted_model import open_scripted_model
from harness.settings import Settings

pytestmark = needs_cli


def has_text(_: TurnState, items: list[OutputItem]) -> bool:
    return any(isinstance(item, TextDelta) for item in items)


def is_waiting(state: TurnState, _: list[OutputItem]) -> bool:
    return bool(state.pending_requests)


def pid_of(seen: Seen) -> int:
    return int(seen.notices("peer_started")[0].split("pid ")[1].split(",")[0])


async def until_gone(pid: int) -> None:
    await until_exit(pid, lambda: Path(f"/proc/{pid}").exists())


def outcomes(items: list[OutputItem]) -> list[str]:
    return [item.outcome for item in items if isinstance(item, RequestResolved)]


async def cancelled(claude: Claude, turn_id: str) -> Seen:
    await claude.cancel(turn_id)
    return await claude.finished(turn_id)


@requirement("R-H3")
async def test_an_interrupt_while_the_model_speaks_keeps_what_it_said_and_the_conversation(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with open_claude([{"text": "Once upon", "hang": True}, {"text": "Yes."}], tmp_path) as claude:
            turn_id = await claude.start("Go.")
            await claude.until(turn_id, has_text)
            seen = await cancelled(claude, turn_id)
            again = await claude.say("Still there?")
            assert claude.model.requests[0].ending == "client_left"
            body: Any = claude.model.requests[1].body

    assert (seen.state.status, seen.state.stop_reason) == ("cancelled", "cancelled")
    assert seen.state.error is None
    assert seen.deltas == "Once upon"
    assert (again.state.status, again.text) == ("completed", "Yes.")
    assert "Once upon" in json.dumps(body["messages"])


@requirement("R-H1", "R-H3")
async def test_an_interrupt_while_a_call_is_blocked_cancels_it_and_keeps_the_conversation(tmp_path: Path) -> None:
    script = [
        {"calls": [{"name": "get_weather", "id": "toolu_1"}, {"name": "get_weather", "id": "toolu_2"}]},
        {"text": "Next."},
    ]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            turn_id = await claude.start("Go.")
            state, _ = await claude.until(turn_id, lambda state, _: len(state.pending_requests) == 2)
            seen = await cancelled(claude, turn_id)
            await claude.answer(turn_id, *(result(request, "late") for request in state.pending_requests))
            assert len(claude.model.requests) == 1
            again = await claude.say("And now?")
            body: Any = claude.model.requests[1].body

    assert seen.state.stop_reason == "cancelled"
    assert outcomes(seen.items) == ["cancelled", "cancelled"]
    assert again.text == "Next."
    blocks = [b for m in body["messages"] if m["role"] == "user" for b in m["content"] if b["type"] == "tool_result"]
    assert [(b["tool_use_id"], b["is_error"]) for b in blocks] == [("toolu_1", True), ("toolu_2", True)]
    assert "late" not in json.dumps(blocks)


@requirement("R-H3")
async def test_an_interrupt_right_after_the_message_stops_it_before_the_model_is_asked(tmp_path: Path) -> None:
    script = [{"text": "one"}, {"text": "two", "delay_seconds": 0.3}, {"text": "three"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            assert (await claude.say("One.")).text == "one"
            turn_id = await claude.start("Two.")
            seen = await cancelled(claude, turn_id)
            assert seen.state.status == "cancelled"
            again = await claude.say("Three.")
    assert again.state.status == "completed"
    assert again.text in ("two", "three")


@requirement("R-H2")
async def test_a_cli_that_ignores_the_interrupt_is_ended_and_the_next_message_resumes(tmp_path: Path) -> None:
    script = [{"text": "First."}, {"text": "Once upon", "hang": True}, {"text": "Yes."}]
    with anyio.fail_after(30):
        options = {"interrupt_seconds": 0.3, "grace_seconds": 0.3}
        async with open_claude(script, tmp_path, connector_options=options) as claude:
            first = await claude.say("Remember 42.")
            turn_id = await claude.start("Go.")
            await claude.until(turn_id, has_text)
            os.kill(pid_of(first), signal.SIGSTOP)
            seen = await cancelled(claude, turn_id)
            await until_gone(pid_of(first))
            again = await claude.say("Still there?")
            body: Any = claude.model.requests[2].body

    assert (seen.state.status, seen.state.stop_reason) == ("cancelled", "cancelled")
    assert (again.state.status, again.text) == ("completed", "Yes.")
    assert pid_of(again) != pid_of(first)
    assert "Remember 42." in json.dumps(body["messages"])


@newest_only
@requirement("claude:life:killed")
async def test_a_cli_killed_in_a_turn_fails_it_as_lost_and_the_next_message_resumes(tmp_path: Path) -> None:
    script = [{"text": "First."}, {"calls": [{"name": "save", "id": "toolu_1"}]}, {"text": "Back."}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path) as claude:
            first = await claude.say("Remember 42.")
            turn_id = await claude.start("Go.")
            await claude.until(turn_id, is_waiting)
            os.kill(pid_of(first), signal.SIGKILL)
            lost = await claude.finished(turn_id)
            again = await claude.say("Continue.")
            body: Any = claude.model.requests[2].body

    assert lost.state.error is not None and lost.state.error.code == "peer_lost"
    assert json.loads(lost.state.error.detail_json or "{}")["exit_code"] == -9
    assert outcomes(lost.items) == ["lost"]
    assert again.text == "Back."
    assert again.notices("history_lost") == []
    assert "Remember 42." in json.dumps(body["messages"])


@newest_only
@requirement("claude:life:killed")
async def test_a_cli_killed_between_turns_is_resumed_by_the_same_message(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with open_claude([{"text": "First."}, {"text": "Second."}], tmp_path) as claude:
            first = await claude.say("Remember 42.")
            os.kill(pid_of(first), signal.SIGKILL)
            await until_gone(pid_of(first))
            second = await claude.say("And?")
            body: Any = claude.model.requests[1].body
    assert (second.state.status, second.text) == ("completed", "Second.")
    assert "Remember 42." in json.dumps(body["messages"])


@newest_only
@requirement("claude:life:history-lost")
async def test_a_session_that_is_not_there_any_more_starts_afresh_and_says_so(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with open_claude([{"text": "First."}, {"text": "Second."}], tmp_path) as claude:
            first = await claude.say("Remember 42.")
            os.kill(pid_of(first), signal.SIGKILL)
            await until_gone(pid_of(first))
            [session] = (tmp_path / "home" / ".claude" / "projects").glob("*/*.jsonl")
            session.unlink()
            second = await claude.say("And?")
            body: Any = claude.model.requests[1].body
    assert second.text == "Second."
    assert second.notices("history_lost")
    assert "Remember 42." not in json.dumps(body["messages"])


@requirement("claude:life:one-process", "R-M4")
async def test_a_conversation_has_one_process_until_it_ends(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with open_claude([{"text": "one"}, {"text": "two"}], tmp_path) as claude:
            first = await claude.say("One.")
            second = await claude.say("Two.")
            assert second.notices("peer_started") == []
            assert Path(f"/proc/{pid_of(first)}").exists()
            await claude.harness.end_conversation(claude.conversation_id)
            assert not Path(f"/proc/{pid_of(first)}").exists()
            assert len(claude.model.requests) == 2


@requirement("R-F6")
async def test_a_conversation_whose_process_was_closed_for_idleness_goes_on(tmp_path: Path) -> None:
    registry = Registry({"claude": ClaudeConnector(ENVIRONMENT)})
    with anyio.fail_after(30):
        async with (
            open_scripted_model([{"text": "First."}, {"text": "Second."}]) as model,
            LocalHarness(registry, settings=Settings(idle_ttl_seconds=3600)) as harness,
        ):
            begun = await harness.begin_conversation(claude_options(model, tmp_path))
            claude = Claude(harness, model, begun)
            first = await claude.say("Remember 42.")
            await harness.end_conversation(begun)
            await until_gone(pid_of(first))
            second = await claude.say("And?")
            body: Any = model.requests[1].body
    assert second.text == "Second."
    assert "Remember 42." in json.dumps(body["messages"])


@requirement("claude:start:isolated", "R-J7", "R-K1")
async def test_the_cli_sees_a_clean_environment_and_no_secret_stands_on_its_command_line(tmp_path: Path) -> None:
    polluted = ENVIRONMENT | {
        "ANTHROPIC_API_KEY": "sk-of-the-user",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_SESSION_ID": "outer",
        "OPENAI_API_KEY": "sk-other",
        "HTTPS_PROXY": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }
    prompt = "The system prompt. " * 1000
    with anyio.fail_after(30):
        async with open_claude([{"text": "ok"}], tmp_path, environ=polluted, system_prompt=prompt) as claude:
            seen = await claude.say("The user's words.")
            process = Path("/proc") / str(pid_of(seen))
            argv = process.joinpath("cmdline").read_bytes()
            variables = process.joinpath("environ").read_bytes().split(b"\0")
            headers = claude.model.requests[0].headers

    assert seen.text == "ok"
    assert len(argv) < 4096
    for kept_out in (b"sk-made-up", b"system prompt", b"The user", b"get_weather"):
        assert kept_out not in argv
    names = {variable.split(b"=")[0].decode() for variable in variables if variable}
    assert not names & {"CLAUDECODE", "CLAUDE_CODE_SESSION_ID", "OPENAI_API_KEY"}
    assert b"ANTHROPIC_API_KEY=sk-made-up" in variables
    assert headers["x-api-key"] != "sk-of-the-user"


@requirement("claude:start:not-logged-in")
async def test_without_a_login_the_turn_fails_at_once_and_says_what_to_type(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        options = {"login": "user", "key": None, "isolated_home": True}
        async with open_claude([], tmp_path, connector_options=options) as claude:
            state = (await claude.say()).state
            assert claude.model.requests == []
    assert state.error is not None
    assert state.error.code == "connector_unavailable"
    assert json.loads(state.error.detail_json or "{}")["reason"] == "not_logged_in"
    assert "claude /login" in state.error.message


@requirement("claude:start:capabilities")
async def test_capabilities_name_the_cli_and_its_version() -> None:
    capabilities = await ClaudeConnector(ENVIRONMENT | {"ANTHROPIC_API_KEY": "x"}).get_capabilities(
        ConversationOptions(connector="claude")
    )
    assert capabilities.inner is not None
    assert capabilities.inner.name == "claude-code"
    assert (capabilities.inner.version or "").startswith("2.1.")
    assert (capabilities.parallel, capabilities.resume, capabilities.call_ids) == ("read_only", "continued", "exact")


@requirement("claude:start:refused")
@pytest.mark.parametrize(
    ("script", "reason", "words"),
    [
        ("echo '2.1.100 (Claude Code)'", "wrong_version", "at least 2.1.197"),
        ("echo 'GNU bash, or so'", "wrong_version", "no Claude Code"),
        ("echo 'cannot load libfoo' >&2; exit 3", "not_installed", "cannot load libfoo"),
        ('test "$1" = --version && echo 2.1.300 || { echo nonsense; exit 0; }', "wrong_version", "printed 'nonsense'"),
        (
            'test "$1" = --version && echo 2.1.300 || { echo "unknown option --x" >&2; exit 1; }',
            "wrong_version",
            "unknown option",
        ),
        ('test "$1" = --version && echo 2.1.300 || exec sleep 1000', "not_installed", "was not ready within 0.5 s"),
    ],
)
async def test_a_program_that_cannot_be_used_is_refused_in_one_line_with_the_remedy(
    tmp_path: Path, script: str, reason: str, words: str
) -> None:
    program = tmp_path / "claude"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    options = {"command": str(program), "start_seconds": 0.5}
    with anyio.fail_after(30):
        try:
            async with open_claude([], tmp_path, connector_options=options) as claude:
                error = (await claude.say()).state.error
                assert error is not None
                code, message, detail = error.code, error.message, json.loads(error.detail_json or "{}")
        except ConnectorUnavailable as refusal:
            code, message, detail = refusal.code, refusal.message, refusal.detail
    assert code == "connector_unavailable"
    assert detail["reason"] == reason
    assert words in message
    assert "pip install 'level2-harness[claude]'" in message
    assert "\n" not in message


@requirement("claude:start:refused")
async def test_a_program_that_is_not_there_is_refused_by_name() -> None:
    options = json.dumps({"command": "/nowhere/claude", "key": "x"})
    with pytest.raises(ConnectorUnavailable, match="'/nowhere/claude'") as refused:
        await ClaudeConnector(ENVIRONMENT).get_capabilities(
            ConversationOptions(connector="claude", connector_options_json=options)
        )
    assert refused.value.detail["reason"] == "not_installed"
