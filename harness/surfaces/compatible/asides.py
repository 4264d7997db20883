"""Approvals and questions, which a provider's wire has no word for: refused, or calls of two reserved tools (pure)."""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic import ValidationError

from harness.contract.content import text_of
from harness.contract.requests import REFUSING, HostRequest, HostResponse, QuestionAction, RequestKind
from harness.contract.tools import ToolCall, ToolResult
from harness.contract.value import JsonValue
from harness.surfaces.compatible.refusals import refused
from harness.turn.answers import denying_option

APPROVAL_TOOL = "harness_approval"
QUESTION_TOOL = "harness_question"
_REASON = "Nobody could be asked, and the policy of this server does not allow it."
_SHOWN: dict[str, tuple[str, ...]] = {
    RequestKind.APPROVAL: ("tool_name", "title", "description", "target", "call_id", "options"),
    RequestKind.USER_QUESTION: ("title", "description", "questions", "answer_schema_json"),
}


def is_aside(request: HostRequest) -> bool:
    return request.kind != RequestKind.TOOL_CALL


def refusal_of(request: HostRequest) -> HostResponse | None:
    """What a request gets that nobody will look at; null where the peer offers no way to say no."""
    if request.kind == RequestKind.APPROVAL:
        option = denying_option(request)
        if option is None:
            return None
        return HostResponse(request_id=request.request_id, selected_option=option, reason=_REASON)
    return HostResponse(request_id=request.request_id, action=QuestionAction.DECLINE, reason=_REASON)


def wire_id(request: HostRequest, conversation_id: str) -> str:
    """The id of the call that a client sees: the model's own; for the others one that is unique on this server."""
    return f"{conversation_id}_{request.request_id}" if is_aside(request) else request.request_id


def call_of(request: HostRequest, conversation_id: str) -> ToolCall:
    """The request as a call of one of the client's tools, or of a reserved one."""
    if not is_aside(request):
        return ToolCall(
            call_id=wire_id(request, conversation_id),
            tool_name=request.tool_name or "",
            arguments_json=request.arguments_json or "{}",
        )
    is_approval = request.kind == RequestKind.APPROVAL
    shown = request.to_dict()
    arguments: dict[str, Any] = {
        name: shown[name] for name in _SHOWN.get(request.kind, ()) if shown.get(name) not in (None, [])
    }
    if is_approval and request.arguments_json is not None:
        arguments["arguments"] = _parsed(request.arguments_json)
    return ToolCall(
        call_id=wire_id(request, conversation_id),
        tool_name=APPROVAL_TOOL if is_approval else QUESTION_TOOL,
        arguments_json=json.dumps(arguments),
    )


def response_of(request: HostRequest, result: ToolResult) -> HostResponse:
    """What the client's tool result means for the request that its call stood for.

    Raises:
        InvalidArgument: the result of a reserved tool that answers nothing.
    """
    if not is_aside(request):
        return HostResponse(request_id=request.request_id, content=result.content, is_error=result.is_error)
    text = text_of(result.content).strip()
    if request.kind == RequestKind.APPROVAL:
        return _approval(request, text)
    return _question(request, text)


def _approval(request: HostRequest, text: str) -> HostResponse:
    """`{"selected_option": ...}`, or the option alone."""
    given = _object(text)
    response = _read(request, given) if given is not None else HostResponse(request_id=request.request_id)
    option = request.option(response.selected_option if given is not None else text.strip('"'))
    if option is None:
        offered = ", ".join(f"'{one.id}'" for one in request.options)
        raise refused(f"the result of '{APPROVAL_TOOL}' must name one of its options: {offered}", param="messages")
    if option.kind in REFUSING:
        response = response.model_copy(update={"updated_arguments_json": None})
    return response.model_copy(update={"selected_option": option.id})


def _question(request: HostRequest, text: str) -> HostResponse:
    """`{"action": ..., "answers": [...]}`."""
    given = _object(text)
    if given is None:
        raise refused(f"the result of '{QUESTION_TOOL}' must be a JSON object with 'answers' or 'action'")
    return _read(request, given)


def _read(request: HostRequest, given: dict[str, Any]) -> HostResponse:
    try:
        return HostResponse.model_validate({**given, "request_id": request.request_id})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise refused(f"the result for '{request.request_id}' cannot be used: '{where}': {first['msg']}") from None


def _parsed(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _object(text: str) -> dict[str, Any] | None:
    value = _parsed(text)
    return cast(dict[str, Any], value) if isinstance(value, dict) else None
