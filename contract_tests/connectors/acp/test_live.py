"""The real ACP agents: what the scenarios that every connector plays do not try."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.connectors.acp.live import ROWS, open_live
from contract_tests.connectors.agents import workplace
from contract_tests.connectors.processes import children, until_gone
from contract_tests.peers_installed import needs_peer
from contract_tests.requirements import requirement
from harness.contract import HostRequest, HostResponse
from harness.contract.output import Raw
from harness.testing.scenario import call, pid_in
from harness.testing.talk import choice, result


def agents(*names: str) -> list[Any]:
    return [pytest.param(name, marks=needs_peer(name)) for name in names or ROWS]


def allow(request: HostRequest) -> HostResponse:
    return choice(request, "allow_once")


# --- the bridge ------------------------------------------------------------------------------------------------------


@requirement("acp:relay")
@pytest.mark.parametrize("name", agents())
async def test_the_hosts_tools_reach_the_agent_through_the_relay_on_stdio(name: str, tmp_path: Path) -> None:
    script = [{"calls": [call("save", "call_1", n=1)]}, {"text": "Saved."}]
    async with open_live(name, script, tmp_path, chosen={"bridge": "relay"}) as agent:
        turn_id = await agent.talk.start("Go.")
        [asked] = await agent.talk.pending(turn_id)
        assert (asked.tool_name, asked.call_id, asked.arguments_json) == ("save", "call_1", '{"n":1}')
        assert any("relay.py" in line for line in command_lines()), "no relay runs"
        await agent.talk.answer(turn_id, result(asked, "kept in the house"))
        assert (await agent.talk.unanswered(turn_id)).text == "Saved."
        assert "kept in the house" in str(agent.results()["call_1"])


def command_lines() -> list[str]:
    """Of everything that runs below this process."""
    lines: list[str] = []
    left = [*children()]
    while left:
        process = Path(f"/proc/{left.pop()}")
        with suppress(FileNotFoundError, ProcessLookupError):
            lines.append((process / "cmdline").read_text())
            for task in (process / "task").iterdir():
                left += [int(pid) for pid in (task / "children").read_text().split()]
    return lines


# --- after a kill ----------------------------------------------------------------------------------------------------

OUTCOMES: dict[str, tuple[str | None, bool]] = {
    "opencode": ("[Tool execution was interrupted]", False),
    "codex-acp": ("aborted", False),
    "claude-agent-acp": (None, True),
    "gemini": (None, True),
}
"""What the model reads as the result of a call that was open, null where it does not know of the call; whether that is
told as lost history."""


@requirement("acp:killed", "R-F1")
@pytest.mark.parametrize("name", agents())
async def test_after_a_kill_an_open_call_is_what_was_seen_of_the_agent(name: str, tmp_path: Path) -> None:
    script = [{"text": "Noted."}, {"text": "I save.", "calls": [call("save", "call_1", n=1)]}, {"text": "Back."}]
    async with open_live(name, [*script, {"text": "Still."}], tmp_path) as agent:
        first = await agent.talk.say("One.")
        turn_id = await agent.talk.start("Two.")
        [asked] = await agent.talk.pending(turn_id)
        pid = pid_in(first.notices("peer_started"))
        assert pid is not None
        os.killpg(pid, signal.SIGKILL)
        turn = await agent.talk.unanswered(turn_id)
        assert turn.state.error is not None
        assert (turn.state.error.code, turn.outcomes()) == ("peer_lost", {asked.request_id: "lost"})
        after = await agent.talk.say("Three.")
        assert after.text == "Back."
        known, is_told = OUTCOMES[name]
        assert agent.results().get("call_1") == known
        told = after.notices("history_lost")
        assert bool(told) == is_told
        # gemini keeps no session for another process, and Claude Code may be killed before it has written its own
        is_told_of_all = any("starts afresh" in text for text in told)
        assert is_told_of_all or name != "gemini"
        assert ("One." in agent.model.requests[-1].body_text) == (not is_told_of_all)
        assert (await agent.talk.say("Four.")).notices("history_lost") == [], "told once"


@requirement("acp:killed")
@pytest.mark.parametrize("name", agents("claude-agent-acp"))
async def test_calls_that_were_answered_or_cancelled_are_not_forgotten(name: str, tmp_path: Path) -> None:
    calls = [{"calls": [call("save", f"call_{number}", n=number)]} for number in (1, 2)]
    script = [calls[0], {"text": "Saved."}, calls[1], {"text": "Back."}]
    async with open_live(name, script, tmp_path) as agent:
        first = await agent.talk.say("One.", answer=lambda request: result(request, "kept"))
        turn_id = await agent.talk.start("Two.")
        await agent.talk.pending(turn_id)
        await agent.talk.llm.cancel_turn(agent.talk.conversation_id, turn_id)
        await agent.talk.unanswered(turn_id)
        pid = pid_in(first.notices("peer_started"))
        assert pid is not None
        os.killpg(pid, signal.SIGKILL)
        await until_gone([pid])
        await anyio.wait_all_tasks_blocked()
        after = await agent.talk.say("Three.")
        assert (after.text, after.notices("history_lost")) == ("Back.", [])


# --- what the client does for the agent ------------------------------------------------------------------------------

WRITES = {
    "gemini": ("write_file", {"file_path": "{work}/a.txt", "content": "new"}),
    "opencode": ("write", {"filePath": "{work}/a.txt", "content": "new"}),
}


@requirement("acp:client:files")
@pytest.mark.parametrize("name", agents(*WRITES))
async def test_an_agent_that_writes_through_its_client_is_asked_for_once(name: str, tmp_path: Path) -> None:
    tool, named = WRITES[name]
    work = Path(workplace(tmp_path))
    (work / "a.txt").write_text("old")
    arguments = json.loads(json.dumps(named).replace("{work}", str(work)))
    read, place = ("read_file", "file_path") if name == "gemini" else ("read", "filePath")
    script = [
        {"calls": [{"name": read, "id": "call_0", "arguments": {place: f"{work}/a.txt"}}]},
        {"calls": [{"name": tool, "id": "call_1", "arguments": arguments}]},
        {"text": "Written."},
    ]
    chosen = {"client_files": "write"}
    async with open_live(
        name, script, tmp_path, chosen=chosen, internal_tools=[tool, read], output_detail="raw"
    ) as agent:
        turn = await agent.talk.say("Go.", answer=allow)
        wire = "".join(item.text for item in turn.items if isinstance(item, Raw))
        assert '"fs/write_text_file"' in wire, "it wrote by itself"
        assert [one.kind for one in turn.requests if one.tool_name == "fs/write_text_file"] == []
        assert turn.text == "Written."
        assert (work / "a.txt").read_text() == "new"
