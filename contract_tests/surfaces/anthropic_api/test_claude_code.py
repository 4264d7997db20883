"""The real Claude Code on our surface: its own tools are the caller's tools, whoever the model is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors.claude import ClaudeConnector
from contract_tests.connectors.claude.cli import WEATHER, needs_cli
from contract_tests.llm_suite import Peer, open_server
from contract_tests.peers_installed import path_with_peers
from contract_tests.requirements import requirement
from contract_tests.surfaces.anthropic_api.agents import conversations, open_agent, rows
from contract_tests.surfaces.anthropic_api.claude_code import SECONDS, ClaudeCode
from contract_tests.surfaces.http import client_of
from harness.contract import ConversationOptions, text_of
from harness.local import LocalHarness
from harness.registry import Registry
from harness.testing.talk import Talk, result

pytestmark = needs_cli


@pytest.fixture(autouse=True)
def agents_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of peers.txt are found as a user's are."""
    monkeypatch.setenv("PATH", path_with_peers(os.environ["PATH"]))


def call(call_id: str, name: str, **arguments: str) -> dict[str, Any]:
    return {"name": name, "id": call_id, "arguments": arguments}


def loop(work: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A call that writes a file, and two at once that read it and reckon."""
    note = str(work / "note.txt")
    write = call("w1", "Write", file_path=note, content="hello")
    return write, [call("r1", "Read", file_path=note), call("b1", "Bash", command="echo $((6 * 7))")]


def check_loop(claude: ClaudeCode, printed: list[dict[str, Any]]) -> None:
    # to a model that it knows Claude Code says more than its tools do
    assert printed[-1]["result"].startswith("It is 42"), printed[-1]
    assert (claude.work / "note.txt").read_text() == "hello"
    results = claude.results(printed)
    assert set(results) == {"w1", "r1", "b1"}
    assert (results["r1"], results["b1"]) == ("1\thello", "42")


# --- on `fake` -------------------------------------------------------------------------------------------------------


@requirement("anthropic-surface:claude-code")
async def test_its_own_tools_are_called_and_a_second_run_continues_the_conversation(tmp_path: Path) -> None:
    peer = Peer()
    write, both = loop(tmp_path / "work")
    turns = [
        [
            {"thinking": "Hm."},
            {"text": "I write."},
            {"calls": [write]},
            {"text": "I look."},
            {"calls": both},
            {"usage": {"input_tokens": 500, "cached_input_tokens": 100, "output_tokens": 20}},
            {"text": "It is {{results.b1}}."},
        ],
        [{"text": "Still here."}],
    ]
    async with open_server(turns, peer) as server:
        claude = ClaudeCode(server, "fake", tmp_path)
        first = await claude.ask("Write a note, read it and reckon.")
        second = await claude.ask("And?", "--continue")
        [conversation] = await conversations(server)

    check_loop(claude, first)
    assert second[-1]["result"] == "Still here."
    assert [one.what for one in peer.seen if one.what != "answer"] == ["opened", "message", "message", "closed"]
    assert [one.request_id for one in peer.answers] == ["w1", "r1", "b1"]
    assert conversation["turns"] == 2
    usage = first[-1]["usage"]
    assert (usage["input_tokens"], usage["cache_read_input_tokens"], usage["output_tokens"]) == (400, 100, 20)


@requirement("anthropic-surface:claude-code", "anthropic-surface:errors")
async def test_a_user_reads_what_is_wrong_with_the_model(tmp_path: Path) -> None:
    async with open_server([[{"error": {"code": "provider_error", "message": "the box is empty"}}]]) as server:
        failed = await ClaudeCode(server, "fake", tmp_path).ask("Hi")
        unknown = await ClaudeCode(server, "nobody", tmp_path).ask("Hi")
        assert len(await conversations(server)) <= 2

    assert "the box is empty" in failed[-1]["result"]
    assert unknown[-1]["is_error"] is True
    assert "nobody" in unknown[-1]["result"]


# --- on other agents -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [*rows("codex", "claude", "copilot:sdk", "acp:opencode")])
@requirement("anthropic-surface:claude-code")
async def test_its_tools_serve_a_real_agent_in_one_conversation(row: str, tmp_path: Path) -> None:
    write, both = loop(tmp_path / "work")
    script = [
        {"text": "I write.", "calls": [write]},
        {"text": "I look.", "calls": both},
        {"text": "It is {{results.b1}}."},
        {"text": "Still here."},
    ]
    inner = tmp_path / "inner"
    inner.mkdir()
    async with open_agent(row, script, inner) as agent:
        claude = ClaudeCode(agent.server, agent.name, tmp_path)
        first = await claude.ask("Write a note, read it and reckon.")
        second = await claude.ask("And?", "--continue")
        [conversation] = await conversations(agent.server)
        async with client_of(agent.server) as client:
            exported = (await client.get(f"/v1/conversations/{conversation['conversation_id']}/export")).json()

    check_loop(claude, first)
    assert second[-1]["result"] == "Still here."
    notices = [item for turn in exported["turns"] for item in turn["items"] if item["kind"] == "notice"]
    assert [one["code"] for one in notices].count("peer_started") == 1
    assert [len(request.past_calls) for request in agent.model.requests] == [0, 1, 3, 3]


# --- stacked ---------------------------------------------------------------------------------------------------------


@requirement("anthropic-surface:claude-code")
async def test_the_claude_connector_stands_on_the_surface_and_its_hosts_tools_reach_the_bottom(tmp_path: Path) -> None:
    """Host -> connector `claude` -> Claude Code -> Anthropic's wire -> our surface -> connector `fake`, and back."""
    bottom = Peer()
    turn = [
        {"calls": [{"name": "mcp__host__get_weather", "id": "oslo", "arguments": {"city": "Oslo"}}]},
        {"text": "In Oslo it is {{results.oslo}}."},
    ]
    async with (
        open_server([turn], bottom) as server,
        LocalHarness(Registry({"claude": ClaudeConnector({"PATH": "/usr/bin:/bin"})})) as harness,
    ):
        chosen = {"key": server.tokens[0].secret, "base_url": f"{server.url}/anthropic", "home": str(tmp_path / "home")}
        options = ConversationOptions(
            connector="claude",
            model="fake",
            tools=[WEATHER],
            cwd=str(tmp_path),
            connector_options_json=json.dumps(chosen),
        )
        talk = Talk(harness, await harness.begin_conversation(options))
        with anyio.fail_after(SECONDS):
            turn_id = await talk.start("How is Oslo?")
            [request] = await talk.pending(turn_id)
            await talk.answer(turn_id, result(request, "rain"))
            done = await talk.finished(turn_id)
            [conversation] = await conversations(server)
            await harness.end_conversation(talk.conversation_id)

    assert (request.call_id, request.tool_name, request.arguments_json) == ("oslo", "get_weather", '{"city":"Oslo"}')
    assert done.text == "In Oslo it is rain."
    assert [text_of(answer.content) for answer in bottom.answers] == ["rain"]
    assert conversation["turns"] == 1
