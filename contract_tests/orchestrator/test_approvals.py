"""Who answers approvals and questions, and how a refusal is told."""

from __future__ import annotations

import anyio
import pytest

from contract_tests.orchestrator.puppet import settle
from contract_tests.requirements import requirement
from harness.contract import (
    Answer,
    HostRequest,
    HostResponse,
    OptionKind,
    Question,
    QuestionOption,
    RequestKind,
    RequestOption,
)
from harness.errors import InvalidArgument, NotSupported
from harness.orchestrator.approvals import Asking, Prepared, approver_for
from harness.orchestrator.refusals import RefusalKind


def approval(*kinds: OptionKind) -> HostRequest:
    options = [RequestOption(id=f"id-{kind.value}", kind=kind) for kind in kinds]
    return HostRequest(request_id="a1", kind=RequestKind.APPROVAL, tool_name="Bash", options=options)


QUESTION = HostRequest(
    request_id="q1",
    kind=RequestKind.USER_QUESTION,
    questions=[
        Question(
            id="1",
            text="Which one?",
            options=[QuestionOption(id="o1", label="Red"), QuestionOption(id="o2", label="Blue")],
        ),
        Question(id="2", text="Why?", header="Reason", allow_free_text=True),
    ],
)
EVERY = (OptionKind.ALLOW_ALWAYS, OptionKind.DENY_AND_INTERRUPT, OptionKind.ALLOW_ONCE, OptionKind.DENY)


@requirement("orchestrator:approvals:modes")
async def test_allow_allows_once_where_it_can() -> None:
    decision = await approver_for("allow").decide(approval(*EVERY))
    assert decision is not None
    assert (decision.response.selected_option, decision.refusal) == ("id-allow_once", None)
    always = await approver_for("allow").decide(approval(OptionKind.ALLOW_ALWAYS, OptionKind.DENY))
    assert always is not None
    assert always.response.selected_option == "id-allow_always"


@requirement("orchestrator:approvals:modes")
async def test_deny_takes_the_mildest_refusal_and_says_why() -> None:
    decision = await approver_for("deny").decide(approval(*EVERY))
    assert decision is not None
    assert decision.response.selected_option == "id-deny"
    assert decision.response.reason
    assert decision.refusal is not None
    assert decision.refusal.kind == RefusalKind.DENIED


@requirement("orchestrator:approvals:modes")
async def test_decision_that_the_peer_does_not_offer_is_an_error_never_the_opposite() -> None:
    with pytest.raises(NotSupported, match="no way to refuse"):
        await approver_for("deny").decide(approval(OptionKind.ALLOW_ONCE))
    with pytest.raises(NotSupported, match="no way to allow"):
        await approver_for("allow").decide(approval(OptionKind.DENY))


@requirement("orchestrator:approvals:modes")
async def test_wait_leaves_it_open() -> None:
    assert await approver_for("wait").decide(approval(*EVERY)) is None
    assert await approver_for("wait").decide(QUESTION) is None


@requirement("orchestrator:approvals:modes")
async def test_a_person_is_asked_one_thing_at_a_time_and_a_refusal_is_theirs() -> None:
    asked: list[str] = []
    go_on = anyio.Event()

    async def ask(request: HostRequest) -> HostResponse:
        asked.append(request.request_id)
        await go_on.wait()
        return HostResponse(request_id=request.request_id, selected_option="deny", reason="too risky")

    approver = approver_for("ask", ask)
    assert isinstance(approver, Asking)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            group.start_soon(approver.decide, approval(*EVERY))
            group.start_soon(approver.decide, approval(*EVERY))
            await settle()
            assert asked == ["a1"]
            go_on.set()
    decision = await approver.decide(approval(*EVERY))
    assert decision is not None
    assert decision.refusal is not None
    assert (decision.refusal.kind, decision.refusal.text) == (RefusalKind.REJECTED, "too risky")


def test_mode_that_is_unknown_or_has_nobody_to_ask_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="unknown approval mode 'maybe'; known: allow, deny, ask, wait"):
        approver_for("maybe")
    with pytest.raises(InvalidArgument, match="somebody to ask"):
        approver_for("ask")


@requirement("orchestrator:questions:never-invented")
@pytest.mark.parametrize("mode", ["allow", "deny"])
async def test_question_is_declined_with_a_reason_when_nobody_is_there(mode: str) -> None:
    decision = await approver_for(mode).decide(QUESTION)
    assert decision is not None
    assert (decision.response.action, decision.response.answers) == ("decline", [])
    assert decision.response.reason
    assert decision.refusal is not None


@requirement("orchestrator:questions:never-invented")
async def test_prepared_answers_are_found_by_id_header_or_text() -> None:
    prepared = Prepared({"Which one?": "Blue", "Reason": "because"}, approver_for("deny"))
    decision = await prepared.decide(QUESTION)
    assert decision is not None
    assert decision.response.action == "accept"
    assert decision.response.answers == [
        Answer(question_id="1", selected=["o2"]),
        Answer(question_id="2", text="because"),
    ]


@requirement("orchestrator:questions:never-invented")
async def test_question_that_is_prepared_in_part_goes_to_the_approver() -> None:
    prepared = Prepared({"1": ["o1"]}, approver_for("wait"))
    assert await prepared.decide(QUESTION) is None
    assert await prepared.decide(approval(*EVERY)) is None
