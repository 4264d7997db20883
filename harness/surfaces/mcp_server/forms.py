"""An approval or a question as the form of MCP's elicitation, and what a person filled in as the answer (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from harness.contract.requests import (
    Answer,
    HostRequest,
    HostResponse,
    Question,
    QuestionAction,
    RequestKind,
    RequestOption,
)
from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.policy import PolicyCall, call_text

SHOWN_ARGUMENT_CHARS = 4000
_DECISION = "decision"
_REASON = "reason"
_OWN_WORDS = "_own_words"
_WITHOUT_TITLED_ENUMS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18"})


@dataclass(frozen=True, slots=True)
class Form:
    """What a person is shown."""

    request: HostRequest
    message: str
    schema: dict[str, JsonValue]

    def filled_in(self, content: Mapping[str, JsonValue] | None) -> HostResponse:
        """The answer that this content stands for.

        Raises:
            InvalidArgument: nothing was chosen, or something that was not offered.
        """
        given = content or {}
        if self.request.kind == RequestKind.APPROVAL:
            return _decided(self.request, given)
        if self.request.answer_schema_json is not None:
            text = json.dumps(given)
            accepted = QuestionAction.ACCEPT
            return HostResponse(request_id=self.request.request_id, action=accepted, structured_content_json=text)
        answers = [_answer(_key(number), question, given) for number, question in enumerate(self.request.questions)]
        known = [answer for answer in answers if answer is not None]
        if not known:
            raise InvalidArgument("no question was answered")
        return HostResponse(request_id=self.request.request_id, action=QuestionAction.ACCEPT, answers=known)


def form_of(request: HostRequest, protocol_version: str) -> Form | None:
    """Null where no form may ask this: a secret is never asked for in one."""
    if request.kind == RequestKind.APPROVAL:
        return Form(request, _about_call(request), _approval_schema(request.options, protocol_version))
    if any(question.secret for question in request.questions):
        return None
    schema = _own_schema(request) or _question_schema(request.questions, protocol_version)
    return Form(request, _about_questions(request), schema)


def _about_call(request: HostRequest) -> str:
    """What would be done, with which arguments, and why it is asked."""
    call = PolicyCall.of(request)
    lines = [f"{request.title or 'The agent asks for leave'}: {call_text(call)}"]
    arguments = request.arguments_json or "{}"
    if arguments != "{}" and lines[0].endswith(f": {call.tool}"):
        lines.append(arguments[:SHOWN_ARGUMENT_CHARS])
        if len(arguments) > SHOWN_ARGUMENT_CHARS:
            lines.append(f"(the arguments have {len(arguments)} characters, not all are shown)")
    lines += [detail for detail in (request.description, request.target) if detail]
    return "\n".join(lines)


def _about_questions(request: HostRequest) -> str:
    told = [request.title, request.description]
    if len(request.questions) == 1:
        told.append(request.questions[0].text)
    return "\n".join(dict.fromkeys(one for one in told if one)) or "The agent has questions."


def _approval_schema(options: list[RequestOption], protocol_version: str) -> dict[str, JsonValue]:
    labels = {option.id: _label(option.label or str(option.kind), option.description) for option in options}
    return {
        "type": "object",
        "properties": {
            _DECISION: {"title": "Decision", **_one_of(labels, protocol_version)},
            _REASON: {"type": "string", "title": "Reason", "description": "What the agent is told if you refuse."},
        },
        "required": [_DECISION],
    }


def _question_schema(questions: list[Question], protocol_version: str) -> dict[str, JsonValue]:
    properties: dict[str, JsonValue] = {}
    required: list[str] = []
    for number, question in enumerate(questions):
        key = _key(number)
        properties[key] = _field(question, protocol_version)
        if question.options and question.allow_free_text:
            properties[key + _OWN_WORDS] = {"type": "string", "title": "Or in your own words"}
        else:
            required.append(key)
    return {"type": "object", "properties": properties, "required": required}


def _field(question: Question, protocol_version: str) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {"title": question.header or question.text, "description": question.text}
    if not question.options:
        return {**told, "type": "string"}
    labels = {option.id: _label(option.label, option.description) for option in question.options}
    if not question.multi_select:
        return {**told, **_one_of(labels, protocol_version)}
    if protocol_version in _WITHOUT_TITLED_ENUMS:  # these had no lists either
        offered = "; ".join(f"{id_} ({label})" if label != id_ else id_ for id_, label in labels.items())
        return {**told, "type": "string", "description": f"{question.text} Any of these, with commas: {offered}"}
    items = {"anyOf": [{"const": id_, "title": label} for id_, label in labels.items()]}
    return {**told, "type": "array", "items": items}


def _one_of(labels: Mapping[str, str], protocol_version: str) -> dict[str, JsonValue]:
    if protocol_version in _WITHOUT_TITLED_ENUMS:
        return {"type": "string", "enum": list(labels), "enumNames": list(labels.values())}
    return {"type": "string", "oneOf": [{"const": id_, "title": label} for id_, label in labels.items()]}


def _own_schema(request: HostRequest) -> dict[str, JsonValue] | None:
    """The schema that whoever asks brought along, untouched."""
    if request.answer_schema_json is None:
        return None
    return cast(dict[str, JsonValue], json.loads(request.answer_schema_json))


def _decided(request: HostRequest, given: Mapping[str, JsonValue]) -> HostResponse:
    option = request.option(given.get(_DECISION))
    if option is None:
        raise InvalidArgument(f"'{given.get(_DECISION)}' is no decision that was offered")
    reason = given.get(_REASON)
    return HostResponse(
        request_id=request.request_id,
        selected_option=option.id,
        reason=reason if isinstance(reason, str) and reason else None,
    )


def _answer(key: str, question: Question, given: Mapping[str, JsonValue]) -> Answer | None:
    own_words = given.get(key + _OWN_WORDS) if question.options else given.get(key)
    if isinstance(own_words, str) and own_words and (question.allow_free_text or not question.options):
        return Answer(question_id=question.id, text=own_words)
    chosen = given.get(key)
    if not question.options or chosen in (None, "", []):
        return None
    listed = cast(list[JsonValue], chosen) if isinstance(chosen, list) else [chosen]
    if question.multi_select and isinstance(chosen, str):
        listed = [one.strip() for one in chosen.split(",")]
    ids = {name: option.id for option in question.options for name in (option.label, option.id)}
    unknown = [one for one in listed if one not in ids]
    if unknown:
        raise InvalidArgument(f"'{unknown[0]}' is no answer that was offered")
    return Answer(question_id=question.id, selected=[ids[one] for one in listed])


def _key(number: int) -> str:
    """Questions' own ids may be anything; the names of a form's fields had better be words."""
    return f"answer_{number + 1}"


def _label(label: str, description: str | None) -> str:
    text = label.replace("_", " ")
    return f"{text}: {description}" if description else text
