"""What Copilot's server mode asks of the host -> requests, and the host's answers -> Copilot's words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from connectors._forms import REFUSING
from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in
from connectors._jsonrpc import Asked
from connectors.copilot.agent import ASK_USER
from connectors.copilot.sdk_reader import WrittenCall
from harness.contract.content import ImageBlock, TextBlock, text_of
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
from harness.contract.value import JsonValue
from harness.errors import PeerProtocolError

NO_ANSWER: JsonObject = {"answer": "The user did not answer.", "wasFreeform": True}
_ONCE = RequestOption(id="approve-once", kind=OptionKind.ALLOW_ONCE, label="Allow once")
_DENY = RequestOption(id="reject", kind=OptionKind.DENY, label="Deny")
_FOR_SESSION = "approve-for-session"
_TOOLS = {"shell": "bash", "write": "edit", "read": "view", "url": "web_fetch"}
_SHOWN = ("fullCommandText", "path", "fileName", "url", "diff", "toolName", "args", "intention")
_QUESTION_ID = "q1"
_NO_REASON = "The host denied this tool use."


def tool_call_of(
    key: str, data: JsonObject, tools: dict[str, ToolDescriptor], written: Mapping[str, WrittenCall]
) -> HostRequest:
    name, call_id = plain_text_in(data.get("toolName")), plain_text_in(data.get("toolCallId"))
    tool = tools.get(name)
    if tool is None or not call_id:
        raise PeerProtocolError(f"Copilot called the tool '{name}' under the id '{call_id}': there is none")
    call = written.get(call_id)
    return HostRequest(
        kind=RequestKind.TOOL_CALL,
        call_id=call_id,
        peer_request_id=key,
        order=call.order if call else None,
        tool_name=tool.name,
        arguments_json=compact_json(object_in(data.get("arguments"))),
        read_only=tool.read_only,
    )


def tool_result(response: HostResponse) -> JsonObject:
    texts = [
        block.text if isinstance(block, TextBlock) else block.to_json()
        for block in response.content
        if not isinstance(block, ImageBlock)
    ]
    if response.structured_content_json is not None and response.structured_content_json not in texts:
        texts.append(response.structured_content_json)
    result: JsonObject = {"textResultForLlm": "\n".join(texts), "resultType": "success"}
    images = [block for block in response.content if isinstance(block, ImageBlock)]
    if images:
        result["binaryResultsForLlm"] = [
            {"type": "image", "data": image.data, "mimeType": image.media_type} for image in images
        ]
    if response.is_error:
        # the model gets the text alone
        result["textResultForLlm"] = f"Error: {result['textResultForLlm']}"
        result["resultType"] = "failure"
    return result


def approval_of(key: str, asked: JsonObject, written: Mapping[str, WrittenCall]) -> HostRequest:
    call_id, kind = plain_text_in(asked.get("toolCallId")), plain_text_in(asked.get("kind"))
    call = written.get(call_id)
    shown = {name: asked[name] for name in _SHOWN if asked.get(name) is not None}
    told = plain_text_in(asked.get("toolName"))
    named = ("fullCommandText", "path", "fileName", "url")
    return HostRequest(
        kind=RequestKind.APPROVAL,
        call_id=call_id or None,
        peer_request_id=key,
        order=call.order if call else None,
        tool_name=call.name if call else told or _TOOLS.get(kind, kind),
        arguments_json=compact_json(call.arguments if call else shown),
        options=_options(asked),
        title=plain_text_in(asked.get("intention")) or kind,
        target=next((text for name in named if (text := plain_text_in(asked.get(name)))), None),
        read_only=True if kind == "read" else False if kind in ("shell", "write") else None,
    )


def permission_of(asked: JsonObject, request: HostRequest, response: HostResponse) -> JsonObject:
    """Other arguments than the model's are a denial."""
    option = request.option(response.selected_option)
    if option is not None and option.id != _DENY.id and response.updated_arguments_json is None:
        return {"kind": option.id, "approval": _lasting(asked)} if option.id == _FOR_SESSION else {"kind": option.id}
    # without feedback it would end the turn, as if it were done
    return {"kind": _DENY.id, "feedback": response.reason or _NO_REASON}


def _options(asked: JsonObject) -> list[RequestOption]:
    lasting = _lasting(asked)
    if lasting is None:
        return [_ONCE, _DENY]
    told = ", ".join(lasting.get("commandIdentifiers", [])) or f"{lasting.get('serverName')}/{lasting.get('toolName')}"
    always = RequestOption(
        id=_FOR_SESSION, kind=OptionKind.ALLOW_ALWAYS, label="Allow in this conversation", description=told
    )
    return [_ONCE, always, _DENY]


def _lasting(asked: JsonObject) -> JsonObject | None:
    """What an allowance for the rest of the session would cover: these commands, or this tool, and nothing wider."""
    match asked.get("kind"):
        case "shell":
            commands = [plain_text_in(one.get("identifier")) for one in objects_in(asked.get("commands"))]
            return {"kind": "commands", "commandIdentifiers": commands} if all(commands) and commands else None
        case "mcp":
            return {"kind": "mcp", "serverName": asked.get("serverName"), "toolName": asked.get("toolName")}
        case _:
            return None


def question_of(asked: Asked, call_id: str | None) -> HostRequest:
    choices: JsonValue = asked.params.get("choices")
    labels = [plain_text_in(one) for one in cast(list[JsonValue], choices)] if isinstance(choices, list) else []
    question = Question(
        id=_QUESTION_ID,
        text=plain_text_in(asked.params.get("question")),
        options=[QuestionOption(id=label, label=label) for label in labels if label],
        allow_free_text=asked.params.get("allowFreeform") is not False or not labels,
    )
    return HostRequest(
        kind=RequestKind.USER_QUESTION,
        call_id=call_id,
        peer_request_id=asked.key,
        tool_name=ASK_USER,
        questions=[question],
    )


def answer_of(response: HostResponse) -> JsonObject:
    if response.action in REFUSING:
        return {"answer": response.reason or "The user declined to answer.", "wasFreeform": True}
    for answer in response.answers:
        if answer.text is not None:
            return {"answer": answer.text, "wasFreeform": True}
        if answer.selected:
            return {"answer": answer.selected[0], "wasFreeform": False}
    text = text_of(response.content) or response.structured_content_json or ""
    return {"answer": text, "wasFreeform": True}


def tool_specs(tools: list[JsonObject]) -> list[JsonObject]:
    """The host's tools as external tools; the host decides over them when they are to run."""
    return [
        {
            "name": tool["name"],
            "description": tool["description"],
            "parameters": tool["inputSchema"],
            "skipPermission": True,
        }
        for tool in objects_in(tools)
    ]
