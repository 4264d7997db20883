"""The turn, door by door: what a direct look explains better than a search."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract_tests.core.turn_machine import answer, request
from contract_tests.core.turn_model import effect_fact, fact
from contract_tests.requirements import requirement
from harness.contract import (
    HostResponse,
    RequestKind,
    RequestOpened,
    RequestResolved,
    StopReason,
    TextBlock,
    TextDelta,
    UsageInfo,
)
from harness.errors import AlreadyAnswered, PeerLost, PeerProtocolError, TurnTimeout
from harness.turn import (
    Deliver,
    Interrupt,
    RequestRaised,
    RequestWithdrawn,
    Turn,
    TurnEnded,
    TurnFailed,
    UsageReported,
)
from harness.turn.events import internal_tool_finished, message, notice, text_delta

CALL, APPROVAL, QUESTION = RequestKind.TOOL_CALL, RequestKind.APPROVAL, RequestKind.USER_QUESTION


def facts(turn: Turn) -> list[tuple[Any, ...]]:
    return [fact(item) for item in turn.items_after(0)]


def test_a_walk_through_a_turn_with_one_call() -> None:
    turn = Turn(at=100)
    turn.receive(text_delta("Let me look."), at=101)
    call = request(1, CALL, None, "p1")
    turn.receive(RequestRaised(call), at=102)

    waiting = turn.state(since=1)
    assert (waiting.status, waiting.pending_requests, waiting.sequence_no) == ("awaiting_host", [call], 2)

    response = answer(call, is_no=False)
    turn.respond(response, at=103)
    assert turn.take_effects() == [Deliver(call, response)]
    assert turn.take_effects() == []
    turn.receive(text_delta("Done."), TurnEnded("end_turn", '{"ok":true}'), at=104)

    over = turn.state(since=2)
    assert (over.status, over.stop_reason, over.pending_requests) == ("completed", "end_turn", [])
    assert (over.started_at, over.ended_at, over.last_activity_at) == (100, 104, 104)
    assert over.structured_output_json == '{"ok":true}'
    assert [item.sequence_no for item in over.new_output_items] == [3, 4, 5]


@requirement("turn:deltas:merged-per-read")
def test_adjacent_deltas_of_one_item_in_one_read_are_one_item() -> None:
    turn = Turn(at=0)
    turn.receive(text_delta("a", item_id="m"), text_delta("b", item_id="m"), text_delta("c", item_id="n"), at=1)
    turn.receive(text_delta("d", item_id="n"), at=2)
    turn.receive(text_delta("e", item_id="n", parent_call_id="sub"), text_delta("f", item_id="n"), at=3)

    assert facts(turn) == [
        ("text_delta", "m", "ab"),
        ("text_delta", "n", "c"),
        ("text_delta", "n", "d"),
        ("text_delta", "n", "e"),
        ("text_delta", "n", "f"),
    ]


@requirement("turn:stream:numbered-and-complete")
@given(cuts=st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=40))
def test_polls_in_pieces_give_the_same_stream_even_when_answers_are_lost(cuts: list[tuple[int, bool]]) -> None:
    turn = Turn(at=0)
    for number in range(9):
        turn.receive(text_delta(str(number)), at=number)
        turn.receive(UsageReported(UsageInfo(output_tokens=number)), at=number)
    turn.receive(TurnEnded(), at=10)

    got: list[Any] = []
    since = 0
    for max_items, is_lost in cuts:
        state = turn.state(since, max_items=max_items)
        assert state.status == ("completed" if state.sequence_no == turn.head else "running")
        if not is_lost:
            got += state.new_output_items
            since = state.sequence_no
    rest = turn.state(since)
    assert got + rest.new_output_items == turn.state(0).new_output_items


def test_a_poll_ahead_of_what_is_durable_shows_the_turn_as_it_was_there() -> None:
    turn = Turn(at=0)
    turn.receive(RequestRaised(request(1, CALL, None, "p1")), at=1)
    turn.receive(UsageReported(UsageInfo(output_tokens=5)), TurnEnded(), at=2)

    state = turn.state(0, upto=1)
    assert (state.status, state.sequence_no, state.has_more) == ("awaiting_host", 1, False)
    assert (state.usage, state.ended_at, state.stop_reason) == (None, None, None)
    assert [one.request_id for one in state.pending_requests] == ["r1"]


def test_a_turn_without_news_says_where_the_host_is() -> None:
    turn = Turn(at=0)
    assert turn.state().sequence_no == 0
    turn.receive(text_delta("a"), at=1)
    assert (turn.state(1).sequence_no, turn.state(1).new_output_items) == (1, [])


@requirement("turn:requests:order-of-the-model")
def test_open_requests_are_listed_in_the_order_the_model_asked() -> None:
    turn = Turn(at=0)
    for number, order in [(1, None), (2, 7), (3, 2), (4, None), (5, 0)]:
        turn.receive(RequestRaised(request(number, CALL, order, f"p{number}")), at=number)
    assert [one.request_id for one in turn.state().pending_requests] == ["r5", "r3", "r2", "r1", "r4"]


@requirement("R-G4")
def test_two_identical_parallel_calls_are_two_requests_with_two_results() -> None:
    turn = Turn(at=0)
    first, second = request(1, CALL, None, "p1"), request(2, CALL, None, "p2")
    turn.receive(RequestRaised(first), RequestRaised(second), at=1)
    turn.respond(answer(second, is_no=True), at=2)
    turn.respond(answer(first, is_no=False), at=3)

    delivered = [
        (e.request.peer_request_id, e.response.is_error) for e in turn.take_effects() if isinstance(e, Deliver)
    ]
    assert delivered == [("p2", True), ("p1", False)]


def test_a_request_without_the_name_its_peer_gives_it_is_a_protocol_error() -> None:
    turn = Turn(at=0)
    with pytest.raises(PeerProtocolError, match="came without an id"):
        turn.receive(RequestRaised(request(1, CALL, None, "p1").model_copy(update={"peer_request_id": None})), at=1)


@requirement("R-G2")
def test_a_request_raised_again_while_it_is_open_is_the_same_request() -> None:
    turn = Turn(at=0)
    first = request(1, CALL, None, "p1")
    turn.receive(RequestRaised(first), RequestRaised(first.model_copy(update={"request_id": "r2"})), at=1)
    assert turn.open_requests == (first,)
    assert turn.head == 1


@requirement("turn:answers:second-answer")
def test_an_equal_second_answer_is_a_no_op_and_another_one_is_refused() -> None:
    turn = Turn(at=0)
    call = request(1, CALL, None, "p1")
    turn.receive(RequestRaised(call), at=1)
    turn.respond(answer(call, is_no=False), at=2)
    head = turn.head

    turn.respond(answer(call, is_no=False), at=3)
    with pytest.raises(AlreadyAnswered, match="'r1' was answered differently before"):
        turn.respond(answer(call, is_no=True), at=4)
    assert turn.head == head
    assert len(turn.take_effects()) == 1


@requirement("turn:answers:second-answer")
def test_an_answer_that_crosses_a_withdrawal_is_dropped_and_the_stream_says_so() -> None:
    turn = Turn(at=0)
    call = request(1, CALL, None, "p1")
    turn.receive(RequestRaised(call), at=1)
    turn.receive(RequestWithdrawn("p1"), at=2)
    turn.respond(answer(call, is_no=False), at=3)

    assert turn.take_effects() == []
    assert facts(turn)[-1] == ("request_resolved", "r1", "withdrawn", "peer", False)
    assert turn.state().status == "running"


@requirement("R-A6", "turn:expiry:one-error-result")
@pytest.mark.parametrize(
    ("kind", "answered"),
    [
        (CALL, {"is_error": True}),
        (APPROVAL, {"selected_option": "no"}),
        (QUESTION, {"action": "decline"}),
    ],
)
def test_an_expired_request_is_answered_once_and_never_with_a_pass(kind: RequestKind, answered: dict[str, Any]) -> None:
    turn = Turn(at=0)
    asked = request(1, kind, None, "p1")
    turn.receive(RequestRaised(asked), at=1)
    turn.expire("r1", at=1001)
    turn.expire("r1", at=1002)
    turn.respond(answer(asked, is_no=False), at=1003)

    [effect] = turn.take_effects()
    assert isinstance(effect, Deliver)
    assert {name: getattr(effect.response, name) for name in answered} == answered
    assert facts(turn)[-1] == ("request_resolved", "r1", "expired", "deadline", kind == CALL)


def test_an_expired_call_tells_the_model_that_the_effect_is_unknown() -> None:
    turn = Turn(at=0)
    turn.receive(RequestRaised(request(1, CALL, None, "p1")), at=1)
    turn.expire("r1", at=1001)
    [effect] = turn.take_effects()
    assert isinstance(effect, Deliver)
    [block] = effect.response.content
    assert isinstance(block, TextBlock)
    assert block.text == "The tool 'look' gave no result within 1 s; whether it took effect is unknown."


@requirement("turn:cancel:order", "R-H1")
def test_cancel_closes_every_request_and_delivers_nothing() -> None:
    turn = Turn(at=0)
    for number, kind in enumerate((CALL, APPROVAL, QUESTION), 1):
        turn.receive(RequestRaised(request(number, kind, None, f"p{number}")), at=number)
    turn.cancel(at=5)
    turn.cancel(at=6)
    turn.respond(answer(request(1, CALL, None, "p1"), is_no=False), at=7)

    assert turn.take_effects() == [Interrupt()]
    assert facts(turn)[3:] == [
        ("notice", "cancel_requested"),
        ("request_resolved", "r1", "cancelled", None, False),
        ("request_resolved", "r2", "cancelled", None, False),
        ("request_resolved", "r3", "cancelled", None, False),
    ]
    state = turn.state()
    assert (state.status, state.cancel_requested, state.pending_requests) == ("running", True, [])


@requirement("turn:cancel:order", "R-H3")
@pytest.mark.parametrize("end", [TurnEnded("end_turn"), TurnEnded("cancelled"), TurnFailed(PeerLost("aborted"))])
def test_after_a_cancel_the_turn_ends_cancelled_whatever_the_peer_calls_it(end: TurnEnded | TurnFailed) -> None:
    turn = Turn(at=0)
    turn.cancel(at=1)
    turn.receive(RequestRaised(request(1, CALL, None, "p1")), at=2)
    turn.receive(text_delta("the rest"), end, at=3)

    state = turn.state()
    assert (state.status, state.stop_reason, state.error) == ("cancelled", "cancelled", None)
    assert not any(isinstance(item, RequestOpened) for item in state.new_output_items)


@requirement("turn:cancel:order")
def test_an_end_that_was_read_before_the_cancel_wins() -> None:
    turn = Turn(at=0)
    turn.receive(TurnEnded("end_turn"), at=1)
    turn.cancel(at=2)
    assert turn.take_effects() == []
    assert turn.state().status == "completed"


@requirement("turn:requests:one-outcome-each")
@pytest.mark.parametrize(
    ("end", "outcome"),
    [
        (TurnEnded("end_turn"), "withdrawn"),
        (TurnEnded("cancelled"), "cancelled"),
        (TurnFailed(PeerLost("gone")), "lost"),
    ],
)
def test_what_is_open_at_the_end_is_resolved_before_it(end: TurnEnded | TurnFailed, outcome: str) -> None:
    turn = Turn(at=0)
    turn.receive(RequestRaised(request(1, CALL, None, "p1")), end, at=1)
    resolved, ended = turn.items_after(1)
    assert isinstance(resolved, RequestResolved)
    assert resolved.outcome == outcome
    assert ended.sequence_no == 3


@requirement("turn:giving-up:interrupts-once")
def test_giving_up_ends_the_turn_now_and_interrupts_the_peer_once() -> None:
    turn = Turn(at=0)
    call = request(1, CALL, None, "p1")
    turn.receive(RequestRaised(call), at=1)
    turn.fail(TurnTimeout("too long", limit_ms=5), at=2)
    turn.fail(TurnTimeout("again"), at=3)

    assert turn.take_effects() == [Interrupt()]
    error = turn.state().error
    assert error is not None
    assert (error.code, error.message, error.detail_json) == ("turn_timeout", "too long", '{"limit_ms":5}')


@requirement("turn:giving-up:interrupts-once")
def test_giving_up_after_a_cancel_keeps_the_one_interrupt_that_was_asked_for() -> None:
    turn = Turn(at=0)
    turn.cancel(at=1)
    turn.fail(TurnTimeout("too long"), at=2)
    assert turn.take_effects() == [Interrupt()]
    assert turn.state().status == "cancelled"


@requirement("turn:giving-up:interrupts-once")
def test_limit_of_ours_completes_the_turn_as_it_is_and_interrupts_the_peer_once() -> None:
    turn = Turn(at=0)
    turn.receive(RequestRaised(request(1, CALL, None, "p1")), at=1)
    turn.stop(StopReason.BUDGET, at=2)
    turn.stop(StopReason.MAX_TURNS, at=3)
    assert turn.take_effects() == [Interrupt()]
    state = turn.state()
    assert (state.status, state.stop_reason, state.error) == ("completed", "budget", None)
    [resolved] = [item for item in state.new_output_items if isinstance(item, RequestResolved)]
    assert resolved.outcome == "withdrawn"


@requirement("turn:giving-up:interrupts-once")
def test_limit_of_ours_after_a_cancel_leaves_the_turn_cancelled() -> None:
    turn = Turn(at=0)
    turn.cancel(at=1)
    turn.stop(StopReason.BUDGET, at=2)
    assert turn.take_effects() == [Interrupt()]
    assert turn.state().status == "cancelled"


@requirement("turn:end:never-changes")
def test_a_late_event_is_no_activity_of_a_finished_turn() -> None:
    turn = Turn(at=0)
    turn.receive(TurnEnded(), text_delta("in the same read"), at=1)
    before = turn.state()
    turn.receive(text_delta("later"), UsageReported(UsageInfo()), at=99)
    assert turn.state() == before


def test_usage_of_the_turn_is_added_to_that_of_earlier_ones() -> None:
    turn = Turn(at=0)
    turn.receive(UsageReported(UsageInfo(output_tokens=1)), UsageReported(UsageInfo(output_tokens=3)), at=1)
    state = turn.state(earlier_usage=UsageInfo(input_tokens=10, output_tokens=4))
    assert (state.usage, state.conversation_usage) == (
        UsageInfo(output_tokens=3),
        UsageInfo(input_tokens=10, output_tokens=7),
    )


def test_an_internal_tools_result_is_cut_and_says_so() -> None:
    turn = Turn(at=0)
    turn.receive(internal_tool_finished("c", "ok", result_text="x" * 9000), at=1)
    [item] = turn.items_after(0)
    values = item.to_dict()
    assert (len(values["result_text"]), values["truncated"]) == (8192, True)


# memory stays bounded


@requirement("turn:window:only-deltas-leave")
@pytest.mark.parametrize("limit", [{"max_items": 20}, {"max_bytes": 4000}])
def test_only_deltas_leave_the_window_and_the_first_complete_number_says_so(limit: dict[str, int]) -> None:
    turn = Turn(at=0, **limit)
    call = request(1, CALL, None, "p1")
    for number in range(100):
        turn.receive(text_delta("some text " * 5, item_id=f"m{number}"), at=number)
        if number == 50:
            turn.receive(RequestRaised(call), notice("retry", ""), message([TextBlock(text="all")]), at=number)
    turn.receive(TurnEnded(), at=200)

    state = turn.state()
    kept = state.new_output_items
    deltas = [item.sequence_no for item in kept if isinstance(item, TextDelta)]
    others = [type(item).__name__ for item in kept if not isinstance(item, TextDelta)]
    assert others == ["RequestOpened", "Notice", "Message", "RequestResolved", "TurnEnded"]
    assert 0 < len(deltas) < 30
    assert deltas == list(range(state.first_sequence_no, deltas[-1] + 1))
    assert (state.sequence_no, state.has_more, state.status) == (105, False, "completed")


@requirement("turn:window:only-deltas-leave")
def test_a_host_that_polls_in_time_sees_all_of_a_long_turn() -> None:
    turn = Turn(at=0, max_items=10)
    texts: list[str] = []
    since = 0
    for number in range(60):
        turn.receive(text_delta(str(number), item_id=f"m{number}"), at=number)
        state = turn.state(since)
        assert state.first_sequence_no <= since + 1
        texts += [item.text for item in state.new_output_items if isinstance(item, TextDelta)]
        since = state.sequence_no
    assert texts == [str(number) for number in range(60)]


@requirement("turn:size:too-large-ends-it")
def test_a_turn_that_grows_over_its_limit_fails_and_takes_no_more() -> None:
    turn = Turn(at=0, max_turn_bytes=10_000, max_items=10)
    for number in range(1000):
        turn.receive(text_delta("x" * 100), at=number)
    state = turn.state()
    assert state.status == "failed"
    assert state.error is not None
    assert state.error.code == "turn_too_large"
    assert turn.take_effects() == [Interrupt()]
    assert len(state.new_output_items) < 20


@requirement("turn:size:too-large-ends-it", "turn:cancel:order")
@given(size=st.integers(0, 4000), doors=st.lists(st.sampled_from(["raise", "yes", "no", "expire", "cancel", "text"])))
def test_wherever_the_limit_strikes_every_request_has_one_outcome_and_no_delivery_follows_the_interrupt(
    size: int, doors: list[str]
) -> None:
    turn = Turn(at=0, max_turn_bytes=size)
    for number, door in enumerate(doors):
        waiting = turn.open_requests
        match door:
            case "raise":
                turn.receive(RequestRaised(request(number, CALL, None, f"p{number}")), at=number)
            case "text":
                turn.receive(text_delta("some text"), at=number)
            case "cancel":
                turn.cancel(at=number)
            case "expire" if waiting:
                turn.expire(waiting[0].request_id, at=number)
            case "yes" | "no" if waiting:
                turn.respond(answer(waiting[-1], is_no=door == "no"), at=number)
            case _:
                pass
    turn.receive(TurnEnded(), at=1000)

    stream = facts(turn)
    assert sorted(f[1] for f in stream if f[0] == "request_opened") == sorted(
        f[1] for f in stream if f[0] == "request_resolved"
    )
    assert [f[0] for f in stream].count("turn_ended") == 1
    assert stream[-1][0] == "turn_ended"
    effects = [effect_fact(effect) for effect in turn.take_effects()]
    assert effects in ([], [("interrupt",)])


def test_json_of_a_state_reads_back_as_the_same_state() -> None:
    turn = Turn(at=0)
    turn.receive(text_delta("a"), RequestRaised(request(1, APPROVAL, 0, "p1")), at=1)
    turn.respond(HostResponse(request_id="r1", selected_option="no"), at=2)
    turn.receive(TurnFailed(PeerLost("gone", exit_code=-9)), at=3)
    state = turn.state()
    assert type(state).model_validate_json(state.to_json()) == state
    assert "null" not in json.dumps(state.to_dict())


@requirement("turn:end:error-has-a-name")
def test_an_end_by_an_unnamed_error_is_a_failure() -> None:
    turn = Turn(at=0)
    turn.receive(TurnEnded("error"), at=1)
    state = turn.state()
    assert (state.status, state.stop_reason) == ("failed", "error")
    assert state.error is not None and state.error.code == "peer_protocol_error"
