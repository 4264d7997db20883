"""The real Codex: what the scenarios that every connector plays do not try."""

import json
import os
import subprocess
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors.codex import CodexConnector
from connectors.codex.config import CodexOptions
from connectors.codex.installed import find_program
from contract_tests.connectors.agents import ENVIRONMENT, Agent, open_agent, workplace
from contract_tests.connectors.processes import children
from contract_tests.peers_installed import PEERS, installed, needs_peer, pinned_versions
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions, ToolDescriptor, ToolSourceDescriptor
from harness.errors import ConnectorUnavailable
from harness.testing.talk import choice, result

pytestmark = needs_peer("codex")

KEY = "sk-made-up-and-secret"
LOOK = ToolDescriptor(name="look", read_only=True)


def options_for(directory: Path, **more: Any) -> Callable[[str], Mapping[str, Any]]:
    def options(url: str) -> Mapping[str, Any]:
        chosen = {
            "command": str(installed("codex")),
            "base_url": f"{url}/v1",
            "key": KEY,
            "home": str(directory / "home"),
            "env": {"HOME": str(directory), "HTTPS_PROXY": "http://127.0.0.1:9"},
            **more,
        }
        return {"model": "gpt-5.4", "cwd": workplace(directory), "connector_options_json": json.dumps(chosen)}

    return options


@asynccontextmanager
async def open_codex(script: Sequence[Mapping[str, Any]], directory: Path, **options: Any) -> AsyncGenerator[Agent]:
    made = {"tools": [LOOK], **options}
    async with open_agent(CodexConnector(ENVIRONMENT), script, options_for(directory), **made) as agent:
        yield agent


def shell(call_id: str, command: str) -> dict[str, Any]:
    return {"name": "exec_command", "id": call_id, "arguments": {"cmd": command}}


# --- what is installed -----------------------------------------------------------------------------------------------


@requirement("codex:found")
async def test_the_native_program_is_found_behind_npms_script(tmp_path: Path) -> None:
    environ = {**ENVIRONMENT, "PATH": f"{PEERS / 'codex' / 'node_modules' / '.bin'}:/usr/bin:/bin"}
    assert find_program(CodexOptions(), environ) == installed("codex").resolve()
    chosen = ConversationOptions(connector_options_json='{"key": "k", "base_url": "http://127.0.0.1:9/v1"}')
    capabilities = await CodexConnector(environ).get_capabilities(chosen)
    assert capabilities.inner is not None
    assert (capabilities.inner.version, capabilities.inner.tested) == (pinned_versions()["codex"], True)


@requirement("codex:found")
async def test_without_a_login_it_is_said_what_to_type(tmp_path: Path) -> None:
    chosen = ConversationOptions(connector_options_json=json.dumps({"command": str(installed("codex"))}))
    with pytest.raises(ConnectorUnavailable, match="type: codex login") as refused:
        await CodexConnector({**ENVIRONMENT, "HOME": str(tmp_path)}).get_capabilities(chosen)
    assert refused.value.detail["reason"] == "not_logged_in"


RELIED_ON = {
    "ThreadStartParams": {"cwd", "approvalPolicy", "approvalsReviewer", "sandbox", "config", "model"}
    | {"baseInstructions", "developerInstructions", "dynamicTools"},
    "ThreadResumeParams": {"threadId", "cwd", "approvalPolicy", "sandbox", "config", "model", "baseInstructions"},
    "TurnStartParams": {"threadId", "input", "model", "effort", "outputSchema"},
    "TurnInterruptParams": {"threadId", "turnId"},
    "ThreadTokenUsage": {"total", "last"},
    "TokenUsageBreakdown": {"inputTokens", "cachedInputTokens", "cacheWriteInputTokens", "outputTokens"},
    "Turn": {"id", "status", "error"},
    "TurnError": {"message", "codexErrorInfo"},
}
METHODS = {
    "ServerRequest": {
        *("item/tool/call", "item/commandExecution/requestApproval", "item/fileChange/requestApproval"),
        *("item/tool/requestUserInput", "mcpServer/elicitation/request", "item/permissions/requestApproval"),
    },
    "ServerNotification": {
        *("item/started", "item/completed", "item/agentMessage/delta", "thread/tokenUsage/updated", "turn/completed"),
        *("item/reasoning/summaryTextDelta", "item/reasoning/textDelta", "turn/plan/updated", "error"),
        *("serverRequest/resolved", "configWarning", "mcpServer/startupStatus/updated", "warning"),
    },
    "ClientRequest": {"initialize", "thread/start", "thread/resume", "turn/start", "turn/interrupt"},
}


@requirement("codex:types", "R-M9")
def test_the_types_we_rely_on_are_those_of_the_installed_program(tmp_path: Path) -> None:
    argv = [str(installed("codex")), "app-server", "generate-json-schema", "--experimental", "--out", str(tmp_path)]
    subprocess.run(argv, env={**ENVIRONMENT, "HOME": str(tmp_path)}, check=True, capture_output=True, timeout=30)
    text = (tmp_path / "codex_app_server_protocol.v2.schemas.json").read_text(encoding="utf-8")
    types = json.loads(text)["definitions"]
    missing = {name: fields - set(types[name]["properties"]) for name, fields in RELIED_ON.items()}
    assert {name: fields for name, fields in missing.items() if fields} == {}
    for name, methods in METHODS.items():
        found = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["oneOf"]
        assert methods - {one["properties"]["method"]["enum"][0] for one in found} == set(), name


# --- start -----------------------------------------------------------------------------------------------------------


@requirement("codex:tools-closed", "R-K1", "R-J4", "R-E5")
async def test_the_model_sees_our_tools_only_and_no_secret_is_in_a_command_line(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Always speak of the moon.")
    with anyio.fail_after(30):
        async with open_codex([{"calls": [{"name": "look", "id": "c1"}]}, {"text": "ok"}], tmp_path) as agent:
            turn_id = await agent.talk.start()
            [request] = await agent.talk.pending(turn_id)
            lines = [
                (Path("/proc") / str(pid) / "cmdline").read_bytes().decode().replace("\0", " ")
                for pid in children()
                if (Path("/proc") / str(pid) / "cmdline").exists()
            ]
            await agent.talk.answer(turn_id, result(request, "seen"))
            turn = await agent.talk.finished(turn_id)
            body: Any = agent.model.requests[0].body

    assert turn.text == "ok"
    assert {tool["name"] for tool in body["tools"]} == {"look", "request_user_input"}
    assert "moon" not in json.dumps(body)
    started = [line for line in lines if "app-server" in line]
    assert started
    assert all(KEY not in line and len(line) < 4096 for line in lines)


@requirement("codex:strict-config")
async def test_a_configuration_that_codex_does_not_take_fails_the_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('model_provider = 5\nunknown_thing = "x"\n')
    with anyio.fail_after(30):
        async with open_codex([{"text": "never"}], tmp_path) as agent:
            turn = await agent.talk.say()
            asked = len(agent.model.requests)
    assert turn.end == ("failed", "error")
    assert turn.state.error is not None
    assert (turn.state.error.code, asked) == ("connector_unavailable", 0)


# --- turns -----------------------------------------------------------------------------------------------------------


@requirement("codex:approvals", "R-D10")
async def test_a_change_of_files_and_a_command_are_decided_by_the_host(tmp_path: Path) -> None:
    patch = "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: hello.txt\n+hi\n*** End Patch\nEOF"
    script = [
        {"calls": [shell("no", patch.replace("hello", "not"))]},
        {"calls": [shell("yes", patch)]},
        {"calls": [shell("session", "touch one")]},
        {"calls": [shell("again", "touch one")]},
        {"text": "Done."},
    ]
    choices = {"no": "decline", "yes": "accept", "session": "acceptForSession"}
    with anyio.fail_after(40):
        async with open_codex(script, tmp_path, internal_tools=["exec_command"]) as agent:
            turn = await agent.talk.say(answer=lambda request: choice(request, choices[request.call_id or ""]))

    assert turn.text == "Done."
    assert [request.tool_name for request in turn.requests] == ["apply_patch", "apply_patch", "exec_command"]
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["hello.txt", "one"]
    assert [turn.internal_tool(call)[1].result for call in ("no", "yes", "session", "again")] == [
        *("refused", "ok", "ok", "ok")
    ]


@requirement("codex:delegation")
async def test_a_delegated_tool_that_changes_something_is_asked_for_and_reported(tmp_path: Path) -> None:
    server = Path(__file__).parent.parent / "small_mcp_server.py"
    source = ToolSourceDescriptor(name="small", kind="mcp_stdio", command="/usr/bin/python3", args=[str(server)])
    script = [
        {"calls": [{"name": "change", "id": "c1", "arguments": {"a": 1}}]},
        {"calls": [{"name": "change", "id": "c2", "arguments": {"a": 2}}]},
        {"text": "Done."},
    ]
    with anyio.fail_after(40):
        async with open_codex(script, tmp_path, sources=[source]) as agent:
            answers = iter(("accept", "decline"))
            turn = await agent.talk.say(answer=lambda request: choice(request, next(answers)))

    assert [(one.kind, one.tool_name, one.target) for one in turn.requests] == [("approval", "change", "small")] * 2
    started, done = turn.internal_tool("c1")
    assert (started.source, done.result, done.result_text) == ("small", "ok", "changed 1")
    assert turn.internal_tool("c2")[1].result == "failed"


@requirement("codex:turn")
async def test_a_long_result_reaches_the_model_whole_in_any_script(tmp_path: Path) -> None:
    long = "\U0001f600" * 150_000  # more would fill the context window
    script = [{"calls": [{"name": "look", "id": "c1"}]}, {"text": "ok"}]
    with anyio.fail_after(60):
        async with open_codex(script, tmp_path) as agent:
            await agent.talk.say(answer=lambda request: result(request, long))
            assert agent.results()["c1"] == long


@requirement("codex:ends")
async def test_an_empty_answer_is_no_refusal(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        async with open_codex([{"stop": "end_turn"}, {"text": "I cannot.", "stop": "refusal"}], tmp_path) as agent:
            assert (await agent.talk.say()).end == ("completed", "end_turn")
            assert (await agent.talk.say("And?")).end == ("completed", "refusal")


# --- its end, and after it -------------------------------------------------------------------------------------------


@requirement("codex:resume", "R-F1")
async def test_a_killed_codex_loses_its_call_and_the_next_message_goes_on_with_the_thread(tmp_path: Path) -> None:
    script = [
        {"text": "I remember blue."},
        {"calls": [{"name": "look", "id": "open"}]},
        {"text": "It was blue.", "calls": []},
    ]
    with anyio.fail_after(60):
        async with open_codex(script, tmp_path) as agent:
            first = await agent.talk.say("Remember blue.")
            pid = int(first.notices("peer_started")[0].split("pid ")[1].split(",")[0])
            turn_id = await agent.talk.start("Look.")
            await agent.talk.pending(turn_id)
            os.kill(pid, 9)
            lost = await agent.talk.unanswered(turn_id)
            after = await agent.talk.say("Which colour?")
            body = agent.model.requests[-1].body_text

    assert lost.state.error is not None
    assert (lost.end, lost.state.error.code) == (("failed", "error"), "peer_lost")
    assert lost.outcomes() == {"open": "lost"}
    assert (after.text, after.notices("history_lost")) == ("It was blue.", [])
    assert "Remember blue." in body and "Look." in body
    assert agent.results().keys() == {"open"}, "what Codex itself makes of the call that was open"
