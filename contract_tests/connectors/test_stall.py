"""An agent that falls silent, as a host sees it: the same for each protocol. Claude Code has tests of its own."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from contract_tests.connectors.acp.test_package_agent import LOOK, looked, open_talk, steps
from contract_tests.connectors.standins import ACP, CODEX, COPILOT_ACP, COPILOT_SDK, Standin, open_standin
from contract_tests.requirements import requirement
from harness.contract.output import Notice
from harness.testing.talk import choice

ALL = [pytest.param(one, id=one.connector) for one in (CODEX, COPILOT_SDK, COPILOT_ACP, ACP)]


@requirement("R-D6")
@pytest.mark.parametrize("standin", ALL)
async def test_an_answer_that_nothing_follows_is_told_once_and_the_turn_may_be_cancelled(
    standin: Standin, tmp_path: Path
) -> None:
    async with open_standin(standin, tmp_path, stalled_seconds=0.1) as talk:
        turn_id = await talk.start("AskAndHang.")
        [request] = await talk.pending(turn_id)
        with anyio.move_on_after(0.3):  # three times what would count as a stall
            await anyio.sleep_forever()
        assert (await talk.now(turn_id)).notices("stalled") == []
        await talk.answer(turn_id, choice(request, "allow_once"))
        await talk.until(turn_id, lambda _, items: any(isinstance(i, Notice) and i.code == "stalled" for i in items))
        with anyio.move_on_after(0.3):
            await anyio.sleep_forever()
        await talk.cancel(turn_id)
        turn = await talk.unanswered(turn_id)
        assert turn.end == ("cancelled", "cancelled")
        assert len(turn.notices("stalled")) == 1
        assert (await talk.say("Answer.")).end == ("completed", "end_turn")


@requirement("R-D6", "R-D3")
@pytest.mark.parametrize("standin", ALL)
async def test_an_approval_may_take_longer_than_what_counts_as_a_stall(standin: Standin, tmp_path: Path) -> None:
    limits = {"stalled_seconds": 1.0, "interrupt_when_stalled": True}
    async with open_standin(standin, tmp_path, **limits) as talk:
        turn_id = await talk.start("Ask.")
        [request] = await talk.pending(turn_id)
        with anyio.move_on_after(1.5):
            await anyio.sleep_forever()
        await talk.answer(turn_id, choice(request, "allow_once"))
        turn = await talk.unanswered(turn_id)
        assert turn.end == ("completed", "end_turn")
        assert turn.notices("stalled") == []


@requirement("R-D6", "R-A5")
async def test_a_call_over_the_bridge_may_take_longer_than_what_counts_as_a_stall(tmp_path: Path) -> None:
    async with open_talk(tmp_path, stalled_seconds=2.0, interrupt_when_stalled=True) as talk:
        turn_id = await talk.start(steps(["call", LOOK.name, {}]))
        [request] = await talk.pending(turn_id)
        with anyio.move_on_after(2.5):
            await anyio.sleep_forever()
        await talk.answer(turn_id, looked(request))
        turn = await talk.unanswered(turn_id)
        assert turn.end == ("completed", "end_turn")
        assert turn.notices("stalled") == []


@requirement("R-D8")
@pytest.mark.parametrize("standin", ALL)
async def test_a_call_of_which_nothing_is_heard_is_named_and_ends_the_turn_where_that_is_wanted(
    standin: Standin, tmp_path: Path
) -> None:
    async with open_standin(standin, tmp_path, stalled_seconds=0.2, interrupt_when_stalled=True) as talk:
        turn = await talk.say("Call.")
        [told] = turn.notices("stalled")
        assert "has said nothing for 0.2 s; the model has called 'call_1' of '" in told
        assert turn.state.error is not None
        assert (turn.state.error.code, turn.state.error.message) == ("turn_stalled", told)
        assert (await talk.say("Answer.")).end == ("completed", "end_turn")


@requirement("R-D6")
@pytest.mark.parametrize("standin", ALL)
async def test_a_cancel_of_the_hosts_is_no_stall_however_long_the_agent_takes(standin: Standin, tmp_path: Path) -> None:
    limits = {"stalled_seconds": 0.1, "interrupt_when_stalled": True, "interrupt_seconds": 0.5}
    async with open_standin(standin, tmp_path, **limits) as talk:
        turn_id = await talk.start("Ask.")
        await talk.pending(turn_id)
        await talk.cancel(turn_id)
        turn = await talk.unanswered(turn_id)
        assert turn.end == ("cancelled", "cancelled")
        assert turn.notices("stalled") == []
