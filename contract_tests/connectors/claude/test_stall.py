"""A CLI that falls silent, as a host sees it: what was asked and answered, and what came of it."""

from pathlib import Path

import anyio

from contract_tests.connectors.claude.cli import result
from contract_tests.connectors.claude.test_misbehaving import open_standin, say, start
from contract_tests.requirements import requirement
from harness.contract import HostRequest, HostResponse


def allow(request: HostRequest) -> HostResponse:
    if request.kind == "tool_call":
        return result(request, "ok")
    return HostResponse(request_id=request.request_id, selected_option="allow_once")


@requirement("R-D6")
async def test_an_answer_that_nothing_follows_is_told_and_the_turn_may_be_cancelled(tmp_path: Path) -> None:
    with anyio.fail_after(10):
        async with open_standin(tmp_path, stalled_seconds=0.15) as claude:
            turn_id = await start(claude, "ask:Bash", "hang")
            state, _ = await claude.until(turn_id, lambda state, _: state.pending_requests)
            await claude.answer(turn_id, allow(state.pending_requests[0]))
            _, items = await claude.until(
                turn_id, lambda _, items: any(getattr(item, "code", None) == "stalled" for item in items)
            )
            await claude.cancel(turn_id)
            seen = await claude.finished(turn_id)
            again = await say(claude, "text:fine")
    assert seen.state.status == "cancelled"
    assert sum(getattr(item, "code", None) == "stalled" for item in items) == 1
    assert again.text == "fine"


@requirement("R-D6", "R-D1")
async def test_a_cli_that_waits_for_the_host_has_not_stalled_however_long_it_takes(tmp_path: Path) -> None:
    with anyio.fail_after(10):
        async with open_standin(tmp_path, stalled_seconds=0.1) as claude:
            turn_id = await start(claude, "ask:Bash", "call:1", "ask:Bash")
            for _ in range(3):
                state, _ = await claude.until(turn_id, lambda state, _: state.pending_requests)
                with anyio.move_on_after(0.3):  # three times what would count as a stall
                    await anyio.sleep_forever()
                await claude.answer(turn_id, allow(state.pending_requests[0]))
            seen = await claude.finished(turn_id)
    assert seen.text == "allowresults: okallow"
    assert seen.notices("stalled") == []


@requirement("R-D8")
async def test_a_call_that_is_never_asked_for_is_named_when_the_cli_stalls(tmp_path: Path) -> None:
    with anyio.fail_after(10):
        options = {"stalled_seconds": 0.15, "interrupt_when_stalled": True}
        async with open_standin(tmp_path, **options) as claude:
            seen = await say(claude, "unasked:Bash", "hang")
            again = await say(claude, "text:fine")
    [told] = seen.notices("stalled")
    assert "said nothing for 0.15 s" in told and "of 'Bash'" in told
    assert seen.state.error is not None and seen.state.error.code == "turn_stalled"
    assert again.text == "fine"


@requirement("R-D3", "R-A5")
async def test_an_approval_and_a_call_may_take_longer_than_any_limit_of_ours(tmp_path: Path) -> None:
    limits = {"stalled_seconds": 0.05, "interrupt_seconds": 0.05, "start_seconds": 5.0, "interrupt_when_stalled": True}
    with anyio.fail_after(10):
        async with open_standin(tmp_path, **limits) as claude:
            turn_id = await start(claude, "ask:Bash", "call:2")
            for _ in range(2):
                state, _ = await claude.until(turn_id, lambda state, _: state.pending_requests)
                with anyio.move_on_after(0.4):
                    await anyio.sleep_forever()
                await claude.answer(turn_id, *(allow(request) for request in state.pending_requests))
            seen = await claude.finished(turn_id)
    assert (seen.state.status, seen.text) == ("completed", "allowresults: ok ok")
