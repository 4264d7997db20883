"""What is particular to the way over HTTP: the rest of it is proved together with the tunnel."""

import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.connectors.claude.cli import SAVE, WEATHER, needs_cli, open_claude, result
from contract_tests.connectors.claude.test_misbehaving import open_standin, say
from contract_tests.connectors.processes import until_gone
from contract_tests.requirements import requirement
from harness.contract import HostRequest, HostResponse, RequestResolved, ToolDescriptor


def bash(command: str, call_id: str) -> dict[str, Any]:
    return {"name": "Bash", "arguments": {"command": command}, "id": call_id}


def config_of(pid: int) -> Path:
    """The file of MCP servers that the process was started with."""
    argv = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    return Path(argv[argv.index("--mcp-config") + 1])


@pytest.mark.live
@requirement("R-K1", "claude:bridge:config")
@needs_cli[1]
async def test_the_token_stands_in_a_file_of_the_user_alone_which_goes_with_the_process(tmp_path: Path) -> None:
    script = [{"calls": [{"name": "save", "id": "toolu_1"}]}, {"text": "one"}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, route="bridge") as claude:
            turn_id = await claude.start("Go.")
            await claude.until(turn_id, lambda state, _: state.pending_requests)
            seen = await claude.finished(turn_id, lambda request: result(request, "ok"))
            pid = int(seen.notices("peer_started")[0].split("pid ")[1].split(",")[0])
            config = config_of(pid)
            server = json.loads(config.read_text())["mcpServers"]["host"]
            token = server["headers"]["Authorization"].removeprefix("Bearer ")
            assert stat.S_IMODE(config.stat().st_mode) == 0o600
            assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700
            for place in ("cmdline", "environ"):
                assert token.encode() not in Path(f"/proc/{pid}/{place}").read_bytes()
            assert server["alwaysLoad"] is True and server["timeout"] > 24 * 3600 * 1000
        assert not config.exists()
    assert len(token) >= 32 and token not in seen.state.to_json()


@pytest.mark.live
@requirement("claude:bridge:interrupt", "R-H1", "R-H3")
@needs_cli[1]
async def test_an_interrupt_while_a_call_waits_over_http_keeps_the_conversation(tmp_path: Path) -> None:
    script = [
        {"calls": [{"name": "get_weather", "id": "toolu_1"}, {"name": "get_weather", "id": "toolu_2"}]},
        {"text": "Next."},
    ]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, route="bridge") as claude:
            turn_id = await claude.start("Go.")
            state, _ = await claude.until(turn_id, lambda state, _: len(state.pending_requests) == 2)
            await claude.cancel(turn_id)
            seen = await claude.finished(turn_id)
            await claude.answer(turn_id, *(result(request, "late") for request in state.pending_requests))
            again = await claude.say("And now?")
            body: Any = claude.model.requests[1].body
    assert seen.state.stop_reason == "cancelled"
    assert [item.outcome for item in seen.items if isinstance(item, RequestResolved)] == ["cancelled", "cancelled"]
    assert again.text == "Next."
    blocks = [b for m in body["messages"] if m["role"] == "user" for b in m["content"] if b["type"] == "tool_result"]
    assert [(b["tool_use_id"], b["is_error"]) for b in blocks] == [("toolu_1", True), ("toolu_2", True)]


@pytest.mark.live
@requirement("claude:bridge:lost")
@needs_cli[1]
async def test_a_cli_killed_with_a_call_open_loses_it_and_the_next_message_goes_on(tmp_path: Path) -> None:
    script = [{"text": "First."}, {"calls": [{"name": "save", "id": "toolu_1"}]}, {"text": "Back."}]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, route="bridge") as claude:
            first = await claude.say("Remember 42.")
            pid = int(first.notices("peer_started")[0].split("pid ")[1].split(",")[0])
            turn_id = await claude.start("Go.")
            await claude.until(turn_id, lambda state, _: state.pending_requests)
            os.kill(pid, signal.SIGKILL)
            lost = await claude.finished(turn_id)
            await until_gone([pid])
            again = await claude.say("Continue.")
    assert lost.state.error is not None and lost.state.error.code == "peer_lost"
    assert [item.outcome for item in lost.items if isinstance(item, RequestResolved)] == ["lost"]
    assert (again.text, again.state.status) == ("Back.", "completed")


@pytest.mark.live
@requirement("claude:bridge:names", "R-I1")
@needs_cli[1]
async def test_a_tool_of_the_host_may_be_called_like_the_one_that_approves(tmp_path: Path) -> None:
    script = [
        {"calls": [{"name": "approve", "arguments": {"a": 1}, "id": "toolu_1"}]},
        {"calls": [bash("touch made", "toolu_2")]},
        {"text": "Done."},
    ]

    def answer(request: HostRequest) -> HostResponse:
        if request.kind == "approval":
            return HostResponse(request_id=request.request_id, selected_option="allow_once")
        return result(request, "mine")

    tools = [SAVE, WEATHER, ToolDescriptor(name="approve")]
    with anyio.fail_after(30):
        async with open_claude(script, tmp_path, route="bridge", tools=tools, internal_tools=["Bash"]) as claude:
            seen = await claude.say(answer=answer)
            assert "mcp__host__approve_2" not in claude.model.requests[0].tools
    assert [(request.kind, request.tool_name) for request in seen.requests] == [
        ("tool_call", "approve"),
        ("approval", "Bash"),
    ]
    assert (tmp_path / "work" / "made").exists()


@requirement("R-E1", "R-E3")
async def test_a_cli_that_never_asks_for_the_tools_gets_no_message(tmp_path: Path) -> None:
    with anyio.fail_after(10):
        async with open_standin(tmp_path, route="bridge", tools_seconds=0.2) as claude:
            state = (await say(claude, "text:I have no tools.")).state
    assert state.error is not None and state.error.code == "connector_unavailable"
    assert json.loads(state.error.detail_json or "{}")["reason"] == "tools_unavailable"
    assert "2.1.332" in state.error.message and "route=tunnel" in state.error.message
