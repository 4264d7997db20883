"""What a peer asks of a person <-> the protocol's permissions and forms (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from harness.contract.requests import (
    REFUSING,
    Answer,
    HostRequest,
    HostResponse,
    OptionKind,
    Question,
    QuestionAction,
    RequestOption,
)
from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.orchestrator.approvals import Decision
from harness.orchestrator.refusals import Refusal, RefusalKind
from harness.surfaces.acp_agent.calls import described
from harness.wire.json_rpc import JsonObject

_KINDS = {
    OptionKind.ALLOW_ONCE: "allow_once",
    OptionKind.ALLOW_ALWAYS: "allow_always",
    OptionKind.DENY: "reject_once",
    OptionKind.DENY_AND_INTERRUPT: "reject_once",
}
_UNKNOWN_KIND = "allow_always"
"""Of an option of which we do not know what it does: it may allow, so nobody shall take it for a refusal."""
_CUSTOM = "_custom"
"""Behind the name of a choice: the field for an answer of one's own."""


def permission_params(session_id: str, call_id: str, request: HostRequest) -> JsonObject:
    """Asks for leave with exactly the options that are offered."""
    told = described(request.tool_name or "tool", request.arguments_json, request.title)
    return {
        "sessionId": session_id,
        "toolCall": {"toolCallId": call_id, **told, "status": "pending"},
        "options": [_option(option) for option in request.options],
    }


def permission_decision(request: HostRequest, result: JsonValue) -> Decision | None:
    """What the person chose; null where the client says that the turn was cancelled.

    Raises:
        InvalidArgument: an answer that is none.
    """
    outcome = _member(_member(result, "outcome"), "outcome")
    if outcome == "cancelled":
        return None
    chosen = _member(_member(result, "outcome"), "optionId")
    option = next((one for one in request.options if one.id == chosen), None)
    if outcome != "selected" or option is None:
        raise InvalidArgument(f"the client answered a permission request with '{outcome}', option '{chosen}'")
    response = HostResponse(request_id=request.request_id, selected_option=option.id)
    refused = Refusal(RefusalKind.REJECTED, "A person rejected this.") if option.kind in REFUSING else None
    return Decision(response, refused)


def form_params(session_id: str, request: HostRequest) -> JsonObject:
    """Puts questions to the person: the peer's own form where it has one, else a field for each question."""
    schema: JsonValue = json.loads(request.answer_schema_json) if request.answer_schema_json else None
    if not isinstance(schema, dict):
        schema = _schema(request.questions)
    texts = [question.text for question in request.questions]
    message = request.description or request.title or (texts[0] if len(texts) == 1 else "Some questions")
    call = {} if request.call_id is None else {"toolCallId": request.call_id}
    return {"mode": "form", "sessionId": session_id, **call, "message": message, "requestedSchema": schema}


def form_decision(request: HostRequest, result: JsonValue) -> Decision:
    """What the person filled in.

    Raises:
        InvalidArgument: an answer that is none.
    """
    action, content = _member(result, "action"), _member(result, "content")
    if action in (QuestionAction.DECLINE, QuestionAction.CANCEL):
        response = HostResponse(request_id=request.request_id, action=QuestionAction(action))
        return Decision(response, Refusal(RefusalKind.REJECTED, "A person did not want to answer."))
    if action != QuestionAction.ACCEPT or not isinstance(content, dict):
        raise InvalidArgument(f"the client answered a form with the action '{action}'")
    filled = cast(JsonObject, content)
    answers = [answer for question in request.questions if (answer := _answer(question, filled)) is not None]
    response = HostResponse(
        request_id=request.request_id,
        action=QuestionAction.ACCEPT,
        answers=answers,
        structured_content_json=json.dumps(filled) if request.answer_schema_json else None,
    )
    return Decision(response)


def _option(option: RequestOption) -> JsonObject:
    kind = OptionKind(option.kind) if option.kind in tuple(OptionKind) else OptionKind.OTHER
    name = option.label or str(option.kind).replace("_", " ").capitalize()
    told = f"{name}: {option.description}" if option.description else name
    return {"optionId": option.id, "name": told, "kind": _KINDS.get(kind, _UNKNOWN_KIND)}


def _schema(questions: Sequence[Question]) -> JsonObject:
    properties: JsonObject = {}
    required: list[str] = []
    for question in questions:
        properties[question.id] = _field(question)
        if not question.options:
            required.append(question.id)
        elif question.allow_free_text:
            properties[f"{question.id}{_CUSTOM}"] = {
                "type": "string",
                "title": "Other",
                "description": "Your own words",
            }
        else:
            required.append(question.id)
    return {"type": "object", "properties": properties, "required": required}


def _field(question: Question) -> JsonObject:
    told: JsonObject = {"title": question.header or question.text, "description": question.text}
    choices = [{"const": one.id, "title": _choice(one.label, one.description)} for one in question.options]
    if not choices:
        return {"type": "string", **told}
    if question.multi_select:
        return {"type": "array", **told, "items": {"anyOf": choices}}
    return {"type": "string", **told, "oneOf": choices}


def _choice(label: str, description: str | None) -> str:
    return f"{label}: {description}" if description else label


def _answer(question: Question, filled: JsonObject) -> Answer | None:
    """Null where nothing was filled in."""
    own, value = filled.get(f"{question.id}{_CUSTOM}"), filled.get(question.id)
    if isinstance(own, str) and own and question.options:
        return Answer(question_id=question.id, text=own)
    given = [_text(one) for one in (cast(list[JsonValue], value) if isinstance(value, list) else [value])]
    given = [one for one in given if one is not None]
    if not given:
        return None
    if question.options:
        return Answer(question_id=question.id, selected=given)
    return Answer(question_id=question.id, text=given[0])


def _text(value: JsonValue) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def _member(value: JsonValue, name: str) -> JsonValue:
    return cast(JsonObject, value).get(name) if isinstance(value, dict) else None
