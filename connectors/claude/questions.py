"""The CLI's questions to the user, and those of delegated MCP servers -> requests of kind user_question. Pure.

`AskUserQuestion` comes as a permission to be given, with the answers in its input; `elicitation` as a message of its
own, with a JSON schema of the answer or an address to visit.
"""

from __future__ import annotations

from connectors._forms import REFUSING, form_content, form_questions
from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in
from connectors.claude.messages import ModelCall
from harness.contract.content import text_of
from harness.contract.requests import Answer, HostRequest, HostResponse, Question, QuestionOption, RequestKind

ASK_TOOL = "AskUserQuestion"


# --- AskUserQuestion -------------------------------------------------------------------------------------------------


def questions_of(ask: JsonObject, peer_request_id: str, written: ModelCall | None) -> HostRequest:
    """All questions of one call; an option is named by its label."""
    return HostRequest(
        kind=RequestKind.USER_QUESTION,
        call_id=plain_text_in(ask.get("tool_use_id")) or None,
        peer_request_id=peer_request_id,
        order=written.order if written else None,
        tool_name=ASK_TOOL,
        questions=[_question(f"q{number}", asked) for number, asked in enumerate(_asked(ask), 1)],
        parent_call_id=written.parent_call_id if written else None,
    )


def answered_input(ask: JsonObject, request: HostRequest, response: HostResponse) -> JsonObject:
    """The permission that carries the answers; a denial where there are none to carry."""
    if response.action in REFUSING:
        declined = "The user declined to answer the questions."
        return {"behavior": "deny", "message": response.reason or declined, "interrupt": False}
    given = {answer.question_id: _answer_text(answer) for answer in response.answers}
    if not given and request.questions:
        given = {request.questions[0].id: text_of(response.content) or response.structured_content_json or ""}
    # the CLI finds the answers by the question's own text
    texts = {f"q{number}": asked.get("question") for number, asked in enumerate(_asked(ask), 1)}
    answers: JsonObject = {
        text: given[question_id]
        for question_id, text in texts.items()
        if isinstance(text, str) and given.get(question_id)
    }
    return {"behavior": "allow", "updatedInput": {**object_in(ask.get("input")), "answers": answers}}


def _asked(ask: JsonObject) -> list[JsonObject]:
    return objects_in(object_in(ask.get("input")).get("questions"))


def _question(question_id: str, asked: JsonObject) -> Question:
    labels: dict[str, str | None] = {}
    for option in objects_in(asked.get("options")):
        label = plain_text_in(option.get("label"))
        if label:
            labels.setdefault(label, plain_text_in(option.get("description")) or None)
    return Question(
        id=question_id,
        header=plain_text_in(asked.get("header")) or None,
        text=plain_text_in(asked.get("question")),
        options=[QuestionOption(id=label, label=label, description=told) for label, told in labels.items()],
        multi_select=asked.get("multiSelect") is True,
        allow_free_text=True,
    )


def _answer_text(answer: Answer) -> str:
    return ", ".join(part for part in (*answer.selected, answer.text) if part)


# --- elicitation -----------------------------------------------------------------------------------------------------


def elicitation_of(body: JsonObject, peer_request_id: str) -> HostRequest:
    """One question per property of a form; of an address only whether the user will visit it."""
    schema = object_in(body.get("requested_schema"))
    server = plain_text_in(body.get("mcp_server_name"))
    return HostRequest(
        kind=RequestKind.USER_QUESTION,
        peer_request_id=peer_request_id,
        questions=form_questions(schema),
        answer_schema_json=compact_json(schema) if schema else None,
        title=f"The MCP server '{server}' asks",
        description=plain_text_in(body.get("message")) or None,
        target=plain_text_in(body.get("url")) or None,
    )


def elicited(body: JsonObject, request: HostRequest, response: HostResponse) -> JsonObject:
    """What the server is told."""
    if response.action in REFUSING:
        return {"action": str(response.action)}
    if body.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": form_content(object_in(body.get("requested_schema")), request, response)}
