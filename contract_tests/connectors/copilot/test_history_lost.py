"""A Copilot that no longer has the session of a conversation: the host is told, and the conversation goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract_tests.connectors.standins import COPILOT_ACP, COPILOT_SDK, Standin, open_standin
from contract_tests.requirements import requirement
from harness.store.memory import MemoryStore
from harness.testing.talk import Talk


@requirement("R-F2")
@pytest.mark.parametrize("standin", [COPILOT_SDK, COPILOT_ACP], ids=["sdk", "acp"])
async def test_a_session_that_copilot_does_not_have_any_more_is_told_once(standin: Standin, tmp_path: Path) -> None:
    journal = MemoryStore()
    async with open_standin(standin, tmp_path, journal=journal) as talk:
        assert (await talk.say("Answer.")).notices("history_lost") == []
        conversation = talk.conversation_id
    for kept in (tmp_path / "home").glob("*-*-*"):
        kept.unlink()
    async with open_standin(standin, tmp_path, journal=journal) as other:
        talk = Talk(other.llm, conversation)
        turn = await talk.say("Answer.")
        assert turn.end == ("completed", "end_turn")
        [told] = turn.notices("history_lost")
        assert "does not have the session" in told
        assert (await talk.say("Answer.")).notices("history_lost") == []


@requirement("R-F2")
async def test_a_session_that_copilot_has_is_taken_up_and_nothing_is_told(tmp_path: Path) -> None:
    journal = MemoryStore()
    async with open_standin(COPILOT_SDK, tmp_path, journal=journal) as talk:
        await talk.say("Answer.")
        conversation = talk.conversation_id
    async with open_standin(COPILOT_SDK, tmp_path, journal=journal) as other:
        turn = await Talk(other.llm, conversation).say("Answer.")
    assert (turn.end, turn.notices("history_lost")) == (("completed", "end_turn"), [])
