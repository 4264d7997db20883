"""A JSON schema of an answer, as MCP's elicitation has it -> questions, and the host's answers -> the content. Pure."""

from __future__ import annotations

import json
from typing import cast

from connectors._json import JsonObject, object_in, objects_in, plain_text_in
from connectors._text import without_surrogates
from harness.contract.content import text_of
from harness.contract.requests import Answer, HostRequest, HostResponse, Question, QuestionAction, QuestionOption
from harness.contract.value import JsonValue

REFUSING = (QuestionAction.DECLINE, QuestionAction.CANCEL)


def form_questions(schema: JsonObject) -> list[Question]:
    """One question per property."""
    return [_question(name, object_in(rule)) for name, rule in _properties(schema).items()]


def form_content(schema: JsonObject, request: HostRequest, response: HostResponse) -> JsonObject:
    """`structured_content_json` as it is, else the answers by property; what was not answered is left out."""
    if response.structured_content_json is not None:
        return object_in(json.loads(response.structured_content_json))
    properties = _properties(schema)
    content: JsonObject = {
        answer.question_id: _value(object_in(properties.get(answer.question_id)), answer)
        for answer in response.answers
        if answer.selected or answer.text is not None
    }
    if not content and request.questions and response.content:
        content = {request.questions[0].id: text_of(response.content)}
    return content


def _properties(schema: JsonObject) -> dict[str, JsonValue]:
    return object_in(schema.get("properties"))


def _question(name: str, rule: JsonObject) -> Question:
    choices = _choices(rule)
    title, told = plain_text_in(rule.get("title")), plain_text_in(rule.get("description"))
    return Question(
        id=without_surrogates(name),
        header=title or None,
        text=told or title or without_surrogates(name),
        options=[QuestionOption(id=value, label=label) for value, label in choices.items()],
        multi_select=rule.get("type") == "array",
        allow_free_text=not choices,
    )


def _choices(rule: JsonObject) -> dict[str, str]:
    """Value -> what people read."""
    if rule.get("type") == "boolean":
        return {"true": "Yes", "false": "No"}
    if rule.get("type") == "array":
        rule = object_in(rule.get("items"))
    titled = {
        plain_text_in(one.get("const")): plain_text_in(one.get("title"))
        for one in (*objects_in(rule.get("oneOf")), *objects_in(rule.get("anyOf")))
    }
    values, names = _texts(rule.get("enum")), _texts(rule.get("enumNames"))
    titled |= dict(zip(values, names if len(names) == len(values) else values, strict=True))
    return {value: label or value for value, label in titled.items() if value}


def _texts(value: JsonValue) -> list[str]:
    if not isinstance(value, list):
        return []
    return [plain_text_in(one) for one in cast(list[JsonValue], value)]


def _value(rule: JsonObject, answer: Answer) -> JsonValue:
    given = [*answer.selected, *([answer.text] if answer.text is not None else [])]
    match rule.get("type"):
        case "array":
            return given
        case "boolean":
            return given[0].strip().lower() in ("true", "yes")
        case "integer" | "number":
            try:
                return json.loads(given[0])
            except ValueError:
                return given[0]  # the server says what it wanted
        case _:
            return given[0]
