"""Approvals and questions as forms, in the words of each version of the protocol."""

from __future__ import annotations

import json

import pytest

from contract_tests.requirements import requirement
from harness.contract.requests import (
    HostRequest,
    OptionKind,
    Question,
    QuestionOption,
    RequestKind,
    RequestOption,
)
from harness.errors import InvalidArgument
from harness.surfaces.mcp_server.forms import Form, form_of

OLD, NEW = "2025-06-18", "2025-11-25"
COLOURS = [QuestionOption(id="r", label="Red"), QuestionOption(id="g", label="Green")]


def asked(*questions: Question, schema: str | None = None) -> HostRequest:
    return HostRequest(
        request_id="q1", kind=RequestKind.USER_QUESTION, questions=list(questions), answer_schema_json=schema
    )


def form(request: HostRequest, version: str = NEW) -> Form:
    found = form_of(request, version)
    assert found is not None
    return found


@requirement("mcp-server:elicitation")
def test_older_clients_get_the_choices_as_they_know_them() -> None:
    one = Question(id="c", text="Which?", options=COLOURS)
    many = Question(id="m", text="Which ones?", options=COLOURS, multi_select=True)
    shown = form(asked(one, many), OLD)

    properties = shown.schema["properties"]
    assert properties["answer_1"] | {"title": None} == {
        "title": None,
        "description": "Which?",
        "type": "string",
        "enum": ["r", "g"],
        "enumNames": ["Red", "Green"],
    }
    assert properties["answer_2"]["type"] == "string"
    assert "r (Red); g (Green)" in properties["answer_2"]["description"]
    answers = shown.filled_in({"answer_1": "g", "answer_2": "Red, g"}).answers
    assert [(answer.question_id, answer.selected) for answer in answers] == [("c", ["g"]), ("m", ["r", "g"])]


@requirement("mcp-server:elicitation")
def test_own_words_count_where_they_are_allowed() -> None:
    shown = form(asked(Question(id="c", text="Which?", options=COLOURS, allow_free_text=True)))
    assert shown.schema["required"] == []
    [answer] = shown.filled_in({"answer_1_own_words": "Blue"}).answers
    assert (answer.text, answer.selected) == ("Blue", [])
    [chosen] = shown.filled_in({"answer_1": "r", "answer_1_own_words": ""}).answers
    assert (chosen.text, chosen.selected) == (None, ["r"])
    with pytest.raises(InvalidArgument, match="'x' is no answer"):
        shown.filled_in({"answer_1": "x"})
    with pytest.raises(InvalidArgument, match="no question was answered"):
        shown.filled_in({})


@requirement("mcp-server:elicitation")
def test_a_schema_that_came_with_the_question_is_shown_untouched() -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}
    shown = form(asked(Question(id="age", text="How old?"), schema=json.dumps(schema)))
    assert shown.schema == schema
    response = shown.filled_in({"age": 7})
    assert (response.action, json.loads(response.structured_content_json or "")) == ("accept", {"age": 7})


@requirement("mcp-server:elicitation")
def test_an_approval_shows_what_would_run_and_long_arguments_say_that_they_are_cut() -> None:
    request = HostRequest(
        request_id="a1",
        kind=RequestKind.APPROVAL,
        tool_name="mcp__x__send",
        arguments_json=json.dumps({"text": "y" * 5000}),
        options=[RequestOption(id="yes", kind=OptionKind.ALLOW_ONCE), RequestOption(id="no", kind=OptionKind.DENY)],
        title="Send it?",
    )
    lines = form(request).message.splitlines()
    assert lines[0] == "Send it?: mcp__x__send"
    assert len(lines[1]) == 4000
    assert lines[2] == "(the arguments have 5012 characters, not all are shown)"
