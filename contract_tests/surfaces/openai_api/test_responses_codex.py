"""The real Codex on our surface: its own tools are the caller's tools, whoever the model is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract_tests.connectors.claude.cli import MODEL, has_cli
from contract_tests.peers_installed import needs_peer
from contract_tests.requirements import requirement
from contract_tests.surfaces.openai_api import test_live_claude as claude
from contract_tests.surfaces.openai_api.chat import open_place
from contract_tests.surfaces.openai_api.codex import Codex, ran, said
from harness.contract import text_of
from harness.surfaces.compatible.settings import CompatibleSettings

pytestmark = needs_peer("codex")

PATIENT = CompatibleSettings(quiet_seconds=1.0)


def shell(call_id: str, command: str) -> dict[str, Any]:
    return {"name": "exec_command", "id": call_id, "arguments": {"cmd": command}}


@requirement("responses:codex")
async def test_its_shell_is_called_and_a_second_run_continues_the_conversation(tmp_path: Path) -> None:
    turns: list[Any] = [
        [
            {"thinking": "Hm."},
            {"text": "I write."},
            {"calls": [shell("w", "echo hello > note.txt")]},
            {"text": "I look."},
            {"calls": [shell("r", "cat note.txt"), shell("k", "echo $((6 * 7))")]},
            {"usage": {"input_tokens": 500, "cached_input_tokens": 100, "output_tokens": 20}},
            {"text": "It is 42."},
        ],
        [{"text": "Still here."}],
    ]
    async with open_place(turns, compatible=PATIENT) as place:
        codex = Codex(place.server, "fake", tmp_path)
        first = await codex.ask("Write a note, read it and reckon.")
        second = await codex.ask("And?", resumes=True)

    assert said(first) == ["I write.", "I look.", "It is 42."]
    assert sorted(ran(first)) == ["", "42", "hello"]
    assert said(second)[-1:] == ["Still here."]
    assert [one.request_id for one in place.peer.answers] == ["w", "r", "k"]
    assert ["42\n" in text_of(one.content) for one in place.peer.answers] == [False, False, True]
    assert [one.what for one in place.peer.seen if one.what != "answer"] == ["opened", "message", "message", "closed"]
    usage = first[-1]["usage"]
    assert (usage["input_tokens"], usage["cached_input_tokens"], usage["output_tokens"]) == (500, 100, 20)


@requirement("responses:codex")
@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([{"error": {"code": "context_overflow"}}], "ran out of room in the model's context window"),
        ([{"text": "So"}, {"error": {"code": "context_overflow"}}], "ran out of room in the model's context window"),
        ([{"error": {"code": "provider_error", "message": "No.", "detail": {"reason": "request"}}}], "No."),
    ],
)
async def test_a_user_reads_what_went_wrong(steps: list[Any], told: str, tmp_path: Path) -> None:
    async with open_place([steps]) as place:
        printed = await Codex(place.server, "fake", tmp_path).ask("Hi")

    assert printed[-1]["type"] == "turn.failed"
    assert told in printed[-1]["error"]["message"]
    assert place.count("message") == 1


@pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'")
@requirement("responses:codex")
async def test_its_shell_serves_the_real_claude_cli_in_one_process(tmp_path: Path) -> None:
    script = [
        {"text": "I write.", "calls": [shell("toolu_w", "echo hello > note.txt")]},
        {"text": "I look.", "calls": [shell("toolu_r", "cat note.txt"), shell("toolu_k", "echo $((6 * 7))")]},
        {"text": "It is 42."},
        {"text": "Still here."},
    ]
    user = tmp_path / "user"
    user.mkdir()
    async with claude.open_place(script, tmp_path) as place:
        codex = Codex(place.server, f"claude/{MODEL}", user)
        first = await codex.ask("Write a note, read it and reckon.")
        second = await codex.ask("And?", resumes=True)
        pids = await place.pids()
        past = [request.past_calls for request in place.model.requests if request.is_model_call]

    assert said(first) == ["I write.", "I look.", "It is 42."]
    assert sorted(ran(first)) == ["", "42", "hello"]
    assert said(second)[-1:] == ["Still here."]
    assert [len(calls) for calls in past] == [0, 1, 3, 3]
    assert len(pids) == 1
