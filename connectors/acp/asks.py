"""What an agent asks of its client -> requests for the host, and the host's answers -> the agent's words. Pure."""

from __future__ import annotations

from connectors._forms import REFUSING, form_content, form_questions
from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in
from connectors._jsonrpc import Asked
from harness.contract.requests import HostRequest, HostResponse, OptionKind, Question, RequestKind, RequestOption
from harness.contract.value import JsonValue

PERMISSION = "session/request_permission"
ELICITATION = "elicitation/create"
KNOWN = frozenset({PERMISSION, ELICITATION})
_KINDS = {
    "allow_once": OptionKind.ALLOW_ONCE,
    "allow_always": OptionKind.ALLOW_ALWAYS,
    "reject_once": OptionKind.DENY,
    "reject_always": OptionKind.OTHER,
}
_READS = frozenset({"read", "search", "think"})
_WRITES = frozenset({"edit", "delete", "move", "execute"})
_CUSTOM = "_custom"
_OPTION = "_claude/askUserQuestionOption"
_CANCELLED: JsonObject = {"outcome": {"outcome": "cancelled"}}


def approval_of(asked: Asked, call: JsonObject, *, call_id: str, tool_name: str) -> HostRequest:
    """`call` is all that the agent has told of the call that it asks for."""
    raw = object_in(call.get("rawInput"))
    locations = [plain_text_in(one.get("path")) for one in objects_in(call.get("locations"))]
    title = plain_text_in(call.get("title"))
    command = plain_text_in(raw.get("command"))
    kind = plain_text_in(call.get("kind"))
    return HostRequest(
        kind=RequestKind.APPROVAL,
        call_id=call_id or None,
        peer_request_id=asked.key,
        tool_name=tool_name,
        arguments_json=compact_json(raw or _shown(call, title)),
        options=[_option(one) for one in objects_in(asked.params.get("options"))],
        title=title or tool_name,
        target=command or ", ".join(locations) or title or None,
        read_only=True if kind in _READS else False if kind in _WRITES else None,
    )


def _shown(call: JsonObject, title: str) -> JsonObject:
    """What an agent shows of a call whose arguments it does not tell: the host decides over no less."""
    changes: list[JsonValue] = [
        {name: one.get(name) for name in ("path", "oldText", "newText")}
        for one in objects_in(call.get("content"))
        if one.get("type") == "diff"
    ]
    return {"title": title, "changes": changes} if changes else {"title": title}


def permission_of(request: HostRequest, response: HostResponse) -> tuple[JsonObject, bool]:
    """What the agent is told, and whether that lets the call run. Other arguments than the model's are a denial."""
    option = request.option(response.selected_option)
    if option is not None and response.updated_arguments_json is not None and _allows(option):
        option = next((one for one in request.options if one.kind == OptionKind.DENY), None)
    if option is None:
        return _CANCELLED, False
    return {"outcome": {"outcome": "selected", "optionId": option.id}}, _allows(option)


def allowance_of(asked: Asked) -> JsonObject:
    """For the host's own tools: the host decides over them when they are to run."""
    for option in objects_in(asked.params.get("options")):
        if option.get("kind") == "allow_once":
            return {"outcome": {"outcome": "selected", "optionId": option.get("optionId")}}
    return _CANCELLED


def question_of(asked: Asked, call_id: str) -> HostRequest:
    schema = object_in(asked.params.get("requestedSchema"))
    message = plain_text_in(asked.params.get("message"))
    return HostRequest(
        kind=RequestKind.USER_QUESTION,
        call_id=call_id or None,
        peer_request_id=asked.key,
        questions=_asked([_told(one, schema) for one in _with_free_text(form_questions(schema))], message),
        answer_schema_json=compact_json(schema) if schema else None,
        description=message or None,
        target=plain_text_in(asked.params.get("url")) or None,
    )


def elicited(asked: Asked, request: HostRequest, response: HostResponse) -> JsonObject:
    if response.action in REFUSING:
        return {"action": str(response.action)}
    schema = object_in(asked.params.get("requestedSchema"))
    content = form_content(schema, request, response)
    for answer in response.answers:
        custom = f"{answer.question_id}{_CUSTOM}"
        if answer.text is not None and not answer.selected and custom in object_in(schema.get("properties")):
            content.pop(answer.question_id, None)
            content[custom] = answer.text
    return {"action": "accept", "content": content}


def _told(question: Question, schema: JsonObject) -> Question:
    """claude-agent-acp puts an option's description behind its label, and tells it apart in a member of its own."""
    rule = object_in(object_in(schema.get("properties")).get(question.id))
    choices = [*objects_in(rule.get("oneOf")), *objects_in(object_in(rule.get("items")).get("anyOf"))]
    described = {
        plain_text_in(one.get("const")): plain_text_in(
            object_in(object_in(one.get("_meta")).get(_OPTION)).get("description")
        )
        for one in choices
    }
    options = [
        option.model_copy(update={"label": option.label.removesuffix(f" — {told}"), "description": told})
        if (told := described.get(option.id))
        else option
        for option in question.options
    ]
    return question.model_copy(update={"options": options})


def _asked(questions: list[Question], message: str) -> list[Question]:
    """The one question of a form is what the form's message asks."""
    if len(questions) != 1 or not message or questions[0].text != questions[0].header:
        return questions
    return [questions[0].model_copy(update={"text": message})]


def _with_free_text(questions: list[Question]) -> list[Question]:
    """claude-agent-acp asks for an answer of one's own as a field beside the choice: it is one question."""
    custom = {question.id for question in questions if question.id.endswith(_CUSTOM)}
    return [
        question.model_copy(update={"allow_free_text": True}) if f"{question.id}{_CUSTOM}" in custom else question
        for question in questions
        if question.id not in custom
    ]


def closed(asked: Asked) -> JsonObject:
    """The answer that nobody gave."""
    return _CANCELLED if asked.method == PERMISSION else {"action": "cancel"}


def _allows(option: RequestOption) -> bool:
    return option.kind in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS)


def _option(offered: JsonObject) -> RequestOption:
    kind = plain_text_in(offered.get("kind"))
    return RequestOption(
        id=plain_text_in(offered.get("optionId")),
        kind=_KINDS.get(kind, OptionKind.OTHER),
        label=plain_text_in(offered.get("name")) or None,
    )
