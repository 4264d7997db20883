"""What Codex asks of the host -> requests, and the host's answers -> Codex's words. Pure.

`method` and `params` are those of the server's request; `item` is the thread item that it belongs to, where Codex has
told of one: the diff of a file change stands only there.
"""

from __future__ import annotations

from connectors._forms import REFUSING, form_content, form_questions
from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in
from connectors._jsonrpc import Asked
from connectors.codex.items import APPLY_PATCH, call_arguments
from connectors.codex.thread import ASK_USER, EXEC_COMMAND
from harness.contract.content import AudioBlock, ContentBlock, ImageBlock, ResourceBlock, TextBlock, text_of
from harness.contract.requests import (
    HostRequest,
    HostResponse,
    OptionKind,
    Question,
    QuestionOption,
    RequestKind,
    RequestOption,
)
from harness.contract.tools import ToolDescriptor
from harness.errors import PeerProtocolError

TOOL_CALL = "item/tool/call"
COMMAND = "item/commandExecution/requestApproval"
FILE_CHANGE = "item/fileChange/requestApproval"
PERMISSIONS = "item/permissions/requestApproval"
USER_INPUT = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"
KNOWN = frozenset({TOOL_CALL, COMMAND, FILE_CHANGE, PERMISSIONS, USER_INPUT, ELICITATION})

# `acceptWithExecpolicyAmendment` is not offered: it would write a rule that other conversations obey too
_DECISIONS = (
    RequestOption(id="accept", kind=OptionKind.ALLOW_ONCE, label="Allow once"),
    RequestOption(id="acceptForSession", kind=OptionKind.ALLOW_ALWAYS, label="Allow in this conversation"),
    RequestOption(id="decline", kind=OptionKind.DENY, label="Deny"),
    RequestOption(id="cancel", kind=OptionKind.DENY_AND_INTERRUPT, label="Deny and stop", description="the turn ends"),
)
_ACTIONS = (_DECISIONS[0], _DECISIONS[2])
ERROR_PREFIX = "Error: "
"""Codex shows the model the text of a failed call and not that it failed."""


def request_of(asked: Asked, item: JsonObject) -> HostRequest:
    """Of everything but a call of one of the host's tools."""
    params = asked.params
    match asked.method:
        case "item/tool/requestUserInput":
            return _user_input(asked)
        case "mcpServer/elicitation/request" if not _is_approval(params):
            return _elicitation(asked)
        case "mcpServer/elicitation/request":
            return _mcp_approval(asked)
        case "item/commandExecution/requestApproval":
            arguments = {name: params[name] for name in ("command", "cwd") if params.get(name) is not None}
            target = plain_text_in(params.get("command")) or None
            return _approval(asked, EXEC_COMMAND, arguments or call_arguments(item), target)
        case "item/fileChange/requestApproval":
            paths = [plain_text_in(change.get("path")) for change in objects_in(item.get("changes"))]
            return _approval(asked, APPLY_PATCH, call_arguments(item), ", ".join(paths) or None)
        case _:
            return _approval(asked, "request_permissions", {"permissions": params.get("permissions")}, None)


def answer_of(asked: Asked, request: HostRequest, response: HostResponse) -> JsonObject:
    match asked.method:
        case "item/tool/call":
            return tool_result(response)
        case "item/tool/requestUserInput":
            return _user_input_answer(request, response)
        case "mcpServer/elicitation/request":
            return _elicitation_answer(asked.params, request, response)
        case "item/permissions/requestApproval":
            allowed = response.selected_option == "accept"
            return {"permissions": asked.params.get("permissions") if allowed else {}, "scope": "turn"}
        case _:
            option = request.option(response.selected_option)
            is_as_written = response.updated_arguments_json is None
            return {"decision": option.id if option is not None and is_as_written else "decline"}


def closed(asked: Asked, reason: str) -> JsonObject:
    """The answer that nobody gave."""
    match asked.method:
        case "item/tool/call":
            return {"contentItems": [{"type": "inputText", "text": f"{ERROR_PREFIX}{reason}"}], "success": False}
        case "item/tool/requestUserInput":
            return {"answers": {}}
        case "mcpServer/elicitation/request":
            return {"action": "cancel", "content": None, "_meta": None}
        case "item/permissions/requestApproval":
            return {"permissions": {}, "scope": "turn"}
        case _:
            return {"decision": "cancel"}


def tool_result(response: HostResponse) -> JsonObject:
    """One text reaches the model as it is, several blocks as a list."""
    items = [_content_item(block) for block in response.content]
    structured = response.structured_content_json
    if structured is not None and not any(item.get("text") == structured for item in items):
        items.append({"type": "inputText", "text": structured})
    if response.is_error:
        first = next((item for item in items if item["type"] == "inputText"), None)
        if first is None:
            items.insert(0, {"type": "inputText", "text": ERROR_PREFIX.strip()})
        else:
            first["text"] = f"{ERROR_PREFIX}{first['text']}"
    return {"contentItems": items, "success": not response.is_error}


def tool_call_of(asked: Asked, tools: dict[str, ToolDescriptor], order: int, written: str | None) -> HostRequest:
    """`written` are the arguments as the model wrote them, where Codex tells them."""
    name, call_id = plain_text_in(asked.params.get("tool")), plain_text_in(asked.params.get("callId"))
    tool = tools.get(name)
    if tool is None or not call_id:
        raise PeerProtocolError(f"Codex called the tool '{name}' under the id '{call_id}': there is none")
    return HostRequest(
        kind=RequestKind.TOOL_CALL,
        call_id=call_id,
        peer_request_id=asked.key,
        order=order,
        tool_name=tool.name,
        arguments_json=written if written is not None else compact_json(asked.params.get("arguments")),
        read_only=tool.read_only,
    )


def _approval(asked: Asked, name: str, arguments: JsonObject, target: str | None) -> HostRequest:
    params = asked.params
    return HostRequest(
        kind=RequestKind.APPROVAL,
        call_id=plain_text_in(params.get("itemId")) or None,
        peer_request_id=asked.key,
        tool_name=name,
        arguments_json=compact_json(arguments),
        options=list(_ACTIONS if asked.method == PERMISSIONS else _DECISIONS),
        title=name,
        description=plain_text_in(params.get("reason")) or None,
        target=target,
        read_only=False,
    )


# --- questions -------------------------------------------------------------------------------------------------------


def _user_input(asked: Asked) -> HostRequest:
    questions = [
        Question(
            id=plain_text_in(one.get("id")),
            header=plain_text_in(one.get("header")) or None,
            text=plain_text_in(one.get("question")),
            options=[
                QuestionOption(
                    id=plain_text_in(option.get("label")),
                    label=plain_text_in(option.get("label")),
                    description=plain_text_in(option.get("description")) or None,
                )
                for option in objects_in(one.get("options"))
            ],
            allow_free_text=one.get("isOther") is True or not objects_in(one.get("options")),
            secret=one.get("isSecret") is True,
        )
        for one in objects_in(asked.params.get("questions"))
    ]
    return HostRequest(
        kind=RequestKind.USER_QUESTION,
        call_id=plain_text_in(asked.params.get("itemId")) or None,
        peer_request_id=asked.key,
        tool_name=ASK_USER,
        questions=questions,
    )


def _user_input_answer(request: HostRequest, response: HostResponse) -> JsonObject:
    if response.action in REFUSING:
        return {"answers": {}}
    given = {
        answer.question_id: [*answer.selected, *([answer.text] if answer.text is not None else [])]
        for answer in response.answers
    }
    if not given and request.questions:
        given = {request.questions[0].id: [text_of(response.content) or response.structured_content_json or ""]}
    return {"answers": {question: {"answers": texts} for question, texts in given.items()}}


# --- MCP servers -----------------------------------------------------------------------------------------------------


def _is_approval(params: JsonObject) -> bool:
    """Codex asks for permission to call a tool of a delegated server in the words of an elicitation."""
    return object_in(params.get("_meta")).get("codex_approval_kind") is not None


def _mcp_approval(asked: Asked) -> HostRequest:
    meta = object_in(asked.params.get("_meta"))
    name, server = plain_text_in(meta.get("tool_name")), plain_text_in(asked.params.get("serverName"))
    return HostRequest(
        kind=RequestKind.APPROVAL,
        peer_request_id=asked.key,
        tool_name=name,
        arguments_json=compact_json(object_in(meta.get("tool_params"))),
        options=list(_ACTIONS),
        title=plain_text_in(asked.params.get("message")) or name,
        description=plain_text_in(meta.get("tool_description")) or None,
        target=server or None,
    )


def _elicitation(asked: Asked) -> HostRequest:
    schema = object_in(asked.params.get("requestedSchema"))
    return HostRequest(
        kind=RequestKind.USER_QUESTION,
        peer_request_id=asked.key,
        questions=form_questions(schema),
        answer_schema_json=compact_json(schema) if schema else None,
        title=f"The MCP server '{plain_text_in(asked.params.get('serverName'))}' asks",
        description=plain_text_in(asked.params.get("message")) or None,
        target=plain_text_in(asked.params.get("url")) or None,
    )


def _elicitation_answer(params: JsonObject, request: HostRequest, response: HostResponse) -> JsonObject:
    if request.kind == RequestKind.APPROVAL:
        action = "accept" if response.selected_option in ("accept", OptionKind.ALLOW_ONCE) else "decline"
        return {"action": action, "content": {} if action == "accept" else None, "_meta": None}
    if response.action in REFUSING:
        return {"action": str(response.action), "content": None, "_meta": None}
    content = form_content(object_in(params.get("requestedSchema")), request, response)
    return {"action": "accept", "content": content, "_meta": None}


def _content_item(block: ContentBlock) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "inputText", "text": block.text}
        case ImageBlock():
            return {"type": "inputImage", "imageUrl": f"data:{block.media_type};base64,{block.data}"}
        case AudioBlock():
            return {"type": "inputAudio", "audioUrl": f"data:{block.media_type};base64,{block.data}"}
        case ResourceBlock() if block.text is not None:
            return {"type": "inputText", "text": block.text}
        case _:
            return {"type": "inputText", "text": block.to_json()}
