"""Steps that raise requests -> `HostRequest`, and what the peer makes of an answer (pure)."""

from __future__ import annotations

from typing import TypeAlias

from connectors.fake.parts import ScriptedApproval, ScriptedCall, ScriptedQuestion
from connectors.fake.steps import ApprovalStep, CallsStep, QuestionStep
from harness.contract.content import text_of
from harness.contract.requests import REFUSING, HostRequest, HostResponse, OptionKind, QuestionAction, RequestKind

Asked: TypeAlias = ScriptedCall | ScriptedApproval | ScriptedQuestion


def call_id_of(call: ScriptedCall, place: str) -> str:
    return call.id or f"call_{place}"


def call_request(call: ScriptedCall, place: str) -> HostRequest:
    return HostRequest(
        kind=RequestKind.TOOL_CALL,
        call_id=call_id_of(call, place),
        peer_request_id=call.peer_request_id or _peer_id(place),
        order=call.order,
        tool_name=call.name,
        arguments_json=call.arguments_text,
        title=call.title,
        description=call.description,
        target=call.target,
        read_only=call.read_only,
        parent_call_id=call.parent_call_id,
    )


def approval_request(approval: ScriptedApproval, place: str) -> HostRequest:
    return HostRequest(
        kind=RequestKind.APPROVAL,
        call_id=approval.call_id,
        peer_request_id=approval.id or _peer_id(place),
        tool_name=approval.tool,
        arguments_json=approval.arguments_text,
        options=list(approval.options),
        title=approval.title,
        description=approval.description,
        target=approval.target,
        read_only=approval.read_only,
        parent_call_id=approval.parent_call_id,
    )


def question_request(question: ScriptedQuestion, place: str) -> HostRequest:
    return HostRequest(
        kind=RequestKind.USER_QUESTION,
        call_id=question.call_id,
        peer_request_id=question.id or _peer_id(place),
        questions=list(question.questions),
        answer_schema_json=question.answer_schema_json,
        title=question.title,
        description=question.description,
    )


def _peer_id(place: str) -> str:
    return f"p{place}"


def requests_of(step: CallsStep | ApprovalStep | QuestionStep, place: str) -> list[tuple[Asked, HostRequest]]:
    """What a step asks; the peer's ids follow from the place in the script, so they survive a restart."""
    match step:
        case CallsStep(calls=calls):
            return [(call, call_request(call, f"{place}_{number}")) for number, call in enumerate(calls, 1)]
        case ApprovalStep(approval=approval):
            return [(approval, approval_request(approval, f"{place}_1"))]
        case QuestionStep(question=question):
            return [(question, question_request(question, f"{place}_1"))]


def is_refusal(request: HostRequest, response: HostResponse) -> bool:
    """An approval that was denied; without a denying option an answer without a choice means the same."""
    if request.kind != RequestKind.APPROVAL:
        return False
    option = request.option(response.selected_option)
    return option is None or option.kind in REFUSING


def ends_turn(request: HostRequest, response: HostResponse) -> bool:
    option = request.option(response.selected_option)
    return option is not None and option.kind == OptionKind.DENY_AND_INTERRUPT


def heard(request: HostRequest, response: HostResponse) -> str:
    """The answer as text: what a later `{{results.<id>}}` quotes."""
    if request.kind == RequestKind.APPROVAL:
        return response.selected_option or "deny"
    if request.kind == RequestKind.USER_QUESTION:
        if response.action in (QuestionAction.DECLINE, QuestionAction.CANCEL):
            return str(response.action)
        given = [", ".join([*answer.selected, *([answer.text] if answer.text else [])]) for answer in response.answers]
        return "; ".join(given) or response.structured_content_json or text_of(response.content)
    return text_of(response.content) or response.structured_content_json or ""
