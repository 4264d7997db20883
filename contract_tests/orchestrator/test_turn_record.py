"""From a stream to a completion: text, calls, exit codes (pure)."""

from __future__ import annotations

from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.contract import (
    AnsweredBy,
    ErrorInfo,
    HostRequest,
    HostResponse,
    ItemDiscarded,
    Message,
    OutputItem,
    RequestKind,
    RequestOpened,
    RequestOutcome,
    RequestResolved,
    StopReason,
    TextBlock,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnStatus,
    Usage,
    UsageInfo,
)
from harness.errors import ConnectorUnavailable, PeerLost
from harness.orchestrator.completion import Completion
from harness.orchestrator.exit_codes import exit_code
from harness.orchestrator.refusals import Refusal, RefusalKind
from harness.orchestrator.turn_record import TurnRecord, completion_of


def record_of(*items: OutputItem) -> TurnRecord:
    record = TurnRecord("c_1", "t1")
    for item in items:
        record.add(item)
    return record


class Stream:
    """Numbers the items."""

    def __init__(self) -> None:
        self.items: list[Any] = []

    def add(self, kind: type[Any], **fields: Any) -> Stream:
        number = len(self.items) + 1
        self.items.append(kind(sequence_no=number, at=1000 * number, **fields))
        return self

    def message(self, text: str, **fields: Any) -> Stream:
        return self.add(Message, content=[TextBlock(text=text)], **fields)

    def request(
        self, outcome: RequestOutcome | None, kind: RequestKind = RequestKind.TOOL_CALL, **fields: Any
    ) -> Stream:
        request = HostRequest(
            request_id="r1", kind=kind, call_id="r1", tool_name="find", arguments_json='{"x":1}', peer_request_id="p"
        )
        self.add(RequestOpened, request=request)
        if outcome is not None:
            self.add(RequestResolved, request_id="r1", outcome=outcome, **fields)
        return self

    def end(self, status: TurnStatus, stop_reason: StopReason, error: ErrorInfo | None = None) -> Stream:
        return self.add(TurnEnded, status=status, stop_reason=stop_reason, error=error)

    @property
    def record(self) -> TurnRecord:
        return record_of(*self.items)


def completion(stream: Stream) -> Completion:
    return completion_of([stream.record], duration_ms=5)


@requirement("orchestrator:completion:text")
def test_final_messages_win_over_others_and_both_over_deltas() -> None:
    stream = Stream().add(TextDelta, text="streamed", item_id="m1")
    assert stream.record.text == "streamed"
    stream.message("thinking aloud", phase="commentary")
    assert stream.record.text == "streamed"
    stream.message("plain").message("and more")
    assert stream.record.text == "plain\n\nand more"
    stream.message("final", phase="final")
    assert stream.record.text == "final"


@requirement("orchestrator:completion:text")
def test_deltas_of_one_item_belong_together_and_discarded_ones_do_not_count() -> None:
    stream = Stream()
    for text, item in (("a", "m1"), ("b", "m1"), ("x", "m2")):
        stream.add(TextDelta, text=text, item_id=item)
    stream.add(ItemDiscarded, item_id="m2", reason="restarted")
    stream.add(TextDelta, text="again", item_id="m2")
    assert stream.record.text == "ab\n\nagain"


@requirement("orchestrator:completion:text")
def test_what_a_subagent_says_is_not_the_turns_text() -> None:
    stream = Stream().message("inside", parent_call_id="c1").add(TextDelta, text="inside too", parent_call_id="c1")
    stream.add(ThinkingDelta, text="mine").add(ThinkingDelta, text="theirs", parent_call_id="c1")
    assert (stream.record.text, stream.record.thinking) == ("", "mine")


TOOL, APPROVAL, QUESTION = RequestKind.TOOL_CALL, RequestKind.APPROVAL, RequestKind.USER_QUESTION


@requirement("orchestrator:completion:outcomes")
@pytest.mark.parametrize(
    ("kind", "outcome", "fields", "expected", "refusal_kind"),
    [
        (TOOL, RequestOutcome.ANSWERED, {}, "ok", None),
        (TOOL, RequestOutcome.ANSWERED, {"is_error": True}, "failed", None),
        (TOOL, RequestOutcome.EXPIRED, {"is_error": True}, "failed", RefusalKind.TIMED_OUT),
        (TOOL, RequestOutcome.WITHDRAWN, {}, "unknown", None),
        (TOOL, RequestOutcome.CANCELLED, {}, "unknown", None),
        (TOOL, RequestOutcome.LOST, {}, "unknown", None),
        (TOOL, None, {}, "unknown", None),
        (APPROVAL, RequestOutcome.ANSWERED, {}, "ok", None),
        (APPROVAL, RequestOutcome.REFUSED, {"answered_by": AnsweredBy.POLICY}, "refused", RefusalKind.DENIED),
        (APPROVAL, RequestOutcome.REFUSED, {"answered_by": AnsweredBy.HOST}, "refused", RefusalKind.REJECTED),
        (APPROVAL, RequestOutcome.EXPIRED, {}, "refused", RefusalKind.APPROVAL_TIMEOUT),
        (QUESTION, RequestOutcome.EXPIRED, {}, "refused", RefusalKind.APPROVAL_TIMEOUT),
    ],
)
def test_outcome_of_a_call_follows_from_its_resolution(
    kind: RequestKind,
    outcome: RequestOutcome | None,
    fields: dict[str, Any],
    expected: str,
    refusal_kind: RefusalKind | None,
) -> None:
    [call] = completion(Stream().request(outcome, kind, **fields)).calls
    assert (call.outcome, call.refusal_kind) == (expected, refusal_kind)
    assert (call.refusal is None) == (refusal_kind is None)
    assert call.duration_ms == (None if outcome is None else 1000)


@requirement("orchestrator:completion:outcomes")
def test_answer_that_came_too_late_has_no_result() -> None:
    record = Stream().request(RequestOutcome.WITHDRAWN).record
    late = HostResponse(request_id="r1", content=[TextBlock(text="late")], is_error=True)
    record.add_reply(late, Refusal(RefusalKind.INVALID_ARGUMENTS, "no"))
    [call] = record.calls
    assert (call.outcome, call.result, call.refusal) == ("unknown", None, None)


@requirement("orchestrator:completion:outcomes")
def test_counts_are_those_of_the_list() -> None:
    both = [
        Stream().request(RequestOutcome.ANSWERED, is_error=True).record,
        Stream().request(RequestOutcome.REFUSED, APPROVAL).record,
        Stream().request(RequestOutcome.REFUSED, QUESTION).record,
        Stream().request(RequestOutcome.ANSWERED).add(Usage, usage=UsageInfo(input_tokens=3)).record,
    ]
    counted = completion_of([*both, record_of()], duration_ms=1)
    assert (counted.tool_calls, counted.failed_tool_calls, counted.refused_tool_calls) == (2, 1, 1)
    assert counted.usage == UsageInfo(input_tokens=3)


@requirement("orchestrator:completion:exit-codes")
@pytest.mark.parametrize(
    ("status", "stop_reason", "code", "expected"),
    [
        (TurnStatus.COMPLETED, StopReason.END_TURN, None, 0),
        (TurnStatus.COMPLETED, "something_new", None, 0),
        (TurnStatus.COMPLETED, StopReason.MAX_TOKENS, None, 4),
        (TurnStatus.COMPLETED, StopReason.MAX_TURNS, None, 4),
        (TurnStatus.COMPLETED, StopReason.BUDGET, None, 4),
        (TurnStatus.COMPLETED, StopReason.REFUSAL, None, 5),
        (TurnStatus.FAILED, StopReason.ERROR, "provider_error", 1),
        (TurnStatus.FAILED, StopReason.ERROR, "connector_unavailable", 3),
        (TurnStatus.FAILED, StopReason.ERROR, "turn_timeout", 124),
        (TurnStatus.FAILED, StopReason.ERROR, "turn_stalled", 124),
        (TurnStatus.CANCELLED, StopReason.CANCELLED, None, 130),
    ],
)
def test_exit_code_follows_the_table(status: TurnStatus, stop_reason: str, code: str | None, expected: int) -> None:
    assert exit_code(status, stop_reason, code) == expected


@requirement("orchestrator:completion:exit-codes")
def test_failed_and_cancelled_runs_have_the_error_shape() -> None:
    error = ErrorInfo(code="peer_lost", message="gone", detail_json='{"exit_code":9}')
    failed = completion(Stream().message("half").end(TurnStatus.FAILED, StopReason.ERROR, error))
    assert (failed.error, failed.exit_code, failed.content) == (error, 1, "half")
    with pytest.raises(PeerLost, match="gone") as caught:
        failed.raise_for_error()
    assert caught.value.detail == {"exit_code": 9}

    cancelled = completion(Stream().end(TurnStatus.CANCELLED, StopReason.CANCELLED))
    assert cancelled.error is not None
    assert (cancelled.error.code, cancelled.exit_code) == ("cancelled", 130)
    cancelled.raise_for_error()

    broken = completion_of([], duration_ms=1, error=ConnectorUnavailable("type this"))
    assert (broken.status, broken.stop_reason, broken.exit_code) == (TurnStatus.FAILED, StopReason.ERROR, 3)

    refused = completion(Stream().message("no").end(TurnStatus.COMPLETED, StopReason.REFUSAL))
    assert (refused.error, refused.exit_code) == (None, None)


@requirement("orchestrator:completion:nulls-omitted")
def test_json_leaves_out_nulls_of_ours_and_keeps_those_of_the_answer() -> None:
    record = Stream().request(RequestOutcome.ANSWERED).end(TurnStatus.COMPLETED, StopReason.END_TURN).record
    record.add_reply(HostResponse(request_id="r1", content=[TextBlock(text="7")]), None)
    done = completion_of([record], duration_ms=5, structured_output={"rain": None})
    assert done.to_dict() == {
        "content": "",
        "status": "completed",
        "stop_reason": "end_turn",
        "conversation_id": "c_1",
        "turn_id": "t1",
        "structured_output": {"rain": None},
        "calls": [
            {
                "request_id": "r1",
                "call_id": "r1",
                "kind": "tool_call",
                "tool": "find",
                "arguments": '{"x":1}',
                "outcome": "ok",
                "duration_ms": 1000,
            }
        ],
        "tool_calls": 1,
        "failed_tool_calls": 0,
        "refused_tool_calls": 0,
        "duration_ms": 5,
    }
    assert done.to_dict(full=True)["calls"][0]["result"] == [{"type": "text", "text": "7"}]


@requirement("orchestrator:completion:nulls-omitted")
def test_long_arguments_are_cut_unless_all_is_asked_for() -> None:
    long = '{"text":"' + "x" * 400 + '"}'
    request = HostRequest(request_id="r1", kind=TOOL, tool_name="f", arguments_json=long, peer_request_id="p")
    done = completion(Stream().add(RequestOpened, request=request))
    assert len(done.to_dict()["calls"][0]["arguments"]) == 300
    assert done.to_dict()["calls"][0]["arguments"].endswith("...")
    assert done.to_dict(full=True)["calls"][0]["arguments"] == long
