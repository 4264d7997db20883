"""The loop guard: pure over rounds, and what a turn makes of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract_tests.core.scripted_chat_model import (
    ScriptedChatModel,
    answered,
    calls,
    says,
    talk_with,
)
from contract_tests.core.test_model_loop import results_in
from contract_tests.requirements import requirement
from harness.contract import HostRequest, HostResponse, TurnStatus
from harness.errors import LoopGuard
from harness.model_loop import guard
from harness.model_loop.guard import FinishedCall

OK = FinishedCall("look", '{"a":1,"b":2}', "same", False)
SAME = FinishedCall("look", '{"b": 2, "a": 1}', "same", False)
BAD = FinishedCall("look", "{}", "boom 1", True)
BAD_AGAIN = FinishedCall("look", "{ }", "boom 2", True)


@requirement("model-loop:guard")
def test_the_same_result_in_three_rounds_running_is_a_repetition() -> None:
    assert guard.repetition([[OK], [SAME]], SAME) is None
    assert guard.repetition([[OK], [SAME], [OK]], OK) == "repeated_call"
    assert guard.repetition([[OK], [FinishedCall("other", "{}", "x", False)], [OK], [OK]], OK) is None


@requirement("model-loop:guard")
def test_the_same_failing_call_in_two_rounds_is_a_repetition_whatever_it_says() -> None:
    assert guard.repetition([[BAD]], BAD) is None
    assert guard.repetition([[BAD], [BAD_AGAIN]], BAD_AGAIN) == "repeated_error"


@requirement("model-loop:guard")
def test_only_the_next_one_after_the_warning_ends_the_turn() -> None:
    guard.check_next_calls([[OK], [OK]], [("look", OK.arguments_json)])
    with pytest.raises(LoopGuard, match="'look'"):
        guard.check_next_calls([[OK], [OK], [OK]], [("look", SAME.arguments_json)])
    guard.check_next_calls([[OK], [OK], [OK], [BAD]], [("look", OK.arguments_json)])


@requirement("model-loop:guard")
def test_three_failed_rounds_in_a_row_end_the_turn() -> None:
    guard.check_failures([[BAD], [BAD, OK], [BAD]])
    with pytest.raises(LoopGuard):
        guard.check_failures([[OK], [BAD], [BAD], [BAD, BAD]])


@given(st.lists(st.lists(st.sampled_from([OK, BAD]), max_size=3), max_size=6), st.sampled_from([OK, BAD]))
def test_identical_calls_of_one_round_never_count_against_each_other(
    rounds: list[list[FinishedCall]], call: FinishedCall
) -> None:
    one, many = [*rounds, [call]], [*rounds, [call, call, call]]
    assert guard.repetition(one, call) == guard.repetition(many, call)


@requirement("model-loop:guard")
async def test_a_model_in_a_circle_hears_so_and_then_its_turn_fails() -> None:
    model = ScriptedChatModel(*[calls((f"c{i}", "look", "{}")) for i in range(9)])
    async with talk_with(model) as talk:
        state = await talk.run()
        assert state.error is not None and state.error.code == "loop_guard"
        assert len(talk.opened) == 3 and len(model.requests) == 4
        call_id, text, is_error = results_in(model)[-1]
        assert (call_id, is_error) == ("c2", True) and text.startswith("repeated_call: 'look'") and text.endswith("{}")
        assert results_in(model)[1] == ("c1", "{}", False)
        model.steps.clear()
        assert (await talk.run("else")).status == TurnStatus.COMPLETED
    model.check_pairs()


@requirement("model-loop:guard")
async def test_a_failing_call_is_warned_of_at_the_second_and_stopped_at_the_third() -> None:
    model = ScriptedChatModel(*[calls((f"c{i}", "look", "{}")) for i in range(9)])

    def boom(request: HostRequest) -> HostResponse:
        return answered(request, f"boom {request.call_id}", is_error=True)

    async with talk_with(model) as talk:
        state = await talk.run(tool=boom)
    assert state.error is not None and state.error.code == "loop_guard"
    assert len(talk.opened) == 2
    assert results_in(model)[-1][1].startswith("repeated_error: 'look'")


@requirement("model-loop:guard")
async def test_the_guard_can_be_switched_off() -> None:
    model = ScriptedChatModel(*[calls((f"c{i}", "look", "{}")) for i in range(9)], says("at last"))
    async with talk_with(model, connector_options_json='{"loop_guard": false}') as talk:
        assert (await talk.run()).status == TurnStatus.COMPLETED
    assert len(talk.opened) == 9
    assert not any(is_error for _, _, is_error in results_in(model))
