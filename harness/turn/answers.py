"""Judges one answer against its request, and makes the answer nobody gave (pure)."""

from __future__ import annotations

import json

from harness.contract.content import TextBlock
from harness.contract.requests import (
    REFUSING,
    HostRequest,
    HostResponse,
    OptionKind,
    QuestionAction,
    RequestKind,
    RequestOutcome,
)
from harness.errors import InvalidArgument


def judge(request: HostRequest, response: HostResponse) -> RequestOutcome:
    """`ANSWERED` or `REFUSED`.

    Raises:
        InvalidArgument: an option that was not offered, an answer that does not fit, text that is not JSON.
    """
    _check_json(response)
    if request.kind == RequestKind.APPROVAL:
        return _judge_approval(request, response)
    if request.kind == RequestKind.USER_QUESTION:
        return _judge_question(request, response)
    if response.selected_option is not None or response.answers:
        raise InvalidArgument(
            f"'{request.request_id}' is a tool call: answer it with 'content' and 'is_error', not with an option"
        )
    return RequestOutcome.ANSWERED


def expired(request: HostRequest) -> HostResponse:
    """The answer of the deadline: an error result for a tool, a denial or a decline for the others, never a pass."""
    seconds = ((request.expires_at or request.opened_at) - request.opened_at) / 1000
    reason = f"No answer within {seconds:g} s."
    if request.kind == RequestKind.APPROVAL:
        return HostResponse(request_id=request.request_id, selected_option=denying_option(request), reason=reason)
    if request.kind == RequestKind.USER_QUESTION:
        return HostResponse(request_id=request.request_id, action=QuestionAction.DECLINE, reason=reason)
    text = f"The tool '{request.tool_name}' gave no result within {seconds:g} s; whether it took effect is unknown."
    return HostResponse(request_id=request.request_id, content=[TextBlock(text=text)], is_error=True)


def cancelled(request: HostRequest) -> HostResponse:
    """What a session tells the peer, or its own history, about a request that the host cancelled."""
    reason = "The turn was cancelled by the host."
    if request.kind == RequestKind.APPROVAL:
        return HostResponse(request_id=request.request_id, selected_option=denying_option(request), reason=reason)
    if request.kind == RequestKind.USER_QUESTION:
        return HostResponse(request_id=request.request_id, action=QuestionAction.CANCEL, reason=reason)
    return HostResponse(request_id=request.request_id, content=[TextBlock(text=reason)], is_error=True)


def denying_option(request: HostRequest) -> str | None:
    """The id of the mildest option that refuses, null when the peer offers none."""
    for kind in (OptionKind.DENY, OptionKind.DENY_AND_INTERRUPT):
        for option in request.options:
            if option.kind == kind:
                return option.id
    return None


def _judge_approval(request: HostRequest, response: HostResponse) -> RequestOutcome:
    offered = ", ".join(f"'{option.id}'" for option in request.options) or "none"
    if response.selected_option is None:
        raise InvalidArgument(f"approval '{request.request_id}' needs 'selected_option', one of: {offered}")
    option = request.option(response.selected_option)
    if option is None:
        raise InvalidArgument(
            f"option '{response.selected_option}' was not offered by '{request.request_id}'; offered: {offered}"
        )
    return RequestOutcome.REFUSED if option.kind in REFUSING else RequestOutcome.ANSWERED


def _judge_question(request: HostRequest, response: HostResponse) -> RequestOutcome:
    if response.action in (QuestionAction.DECLINE, QuestionAction.CANCEL):
        return RequestOutcome.REFUSED
    questions = {question.id: question for question in request.questions}
    for answer in response.answers:
        question = questions.get(answer.question_id)
        if question is None:
            raise InvalidArgument(f"'{request.request_id}' has no question '{answer.question_id}'")
        offered = {option.id for option in question.options}
        unknown = [selected for selected in answer.selected if selected not in offered]
        if unknown:
            raise InvalidArgument(f"question '{question.id}' does not offer '{unknown[0]}'")
        if len(answer.selected) > 1 and not question.multi_select:
            raise InvalidArgument(f"question '{question.id}' takes one option, not {len(answer.selected)}")
        if answer.text is not None and question.options and not question.allow_free_text:
            raise InvalidArgument(f"question '{question.id}' takes no free text")
    is_answerable = bool(questions) or request.answer_schema_json is not None
    has_answer = response.answers or response.content or response.structured_content_json is not None
    if is_answerable and not has_answer:
        raise InvalidArgument(f"question '{request.request_id}' needs 'answers', or action 'decline'")
    return RequestOutcome.ANSWERED


def _check_json(response: HostResponse) -> None:
    for field in ("structured_content_json", "updated_arguments_json"):
        text: str | None = getattr(response, field)
        if text is None:
            continue
        try:
            value: object = json.loads(text)
        except ValueError as error:
            raise InvalidArgument(f"'{field}' of '{response.request_id}' is not JSON: {error}") from error
        if field == "updated_arguments_json" and not isinstance(value, dict):
            raise InvalidArgument(f"'{field}' of '{response.request_id}' must be a JSON object: arguments are one")
