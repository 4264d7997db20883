"""A tool call as a client shows it: title, kind, place, and an edit as a diff (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.contract.content import AudioBlock, ContentBlock, ImageBlock, ResourceBlock, ResourceLinkBlock, TextBlock
from harness.contract.value import JsonValue
from harness.policy import PolicyCall, call_text
from harness.policy.shapes import Sort, shape_of, sort_of
from harness.surfaces.acp_agent.names import META
from harness.wire.json_rpc import JsonObject

_SHOWN_TITLE = 200


def described(tool: str, arguments_json: str | None, title: str | None = None) -> JsonObject:
    """The members of a tool call that tell what it is."""
    call = PolicyCall(tool, arguments_json or "{}")
    arguments = call.arguments or {}
    path = _path(tool, arguments)
    told: JsonObject = {
        "title": (title or _title(call, arguments))[:_SHOWN_TITLE],
        "kind": _kind(tool, arguments),
        "rawInput": dict(arguments),
        "_meta": {META: {"toolName": tool}},
    }
    if path is not None:
        told["locations"] = [{"path": path}]
        told |= _change(path, arguments)
    return told


def content_of(block: ContentBlock) -> JsonObject:
    """A block as the protocol has it; one of a newer contract as its JSON."""
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock() | AudioBlock():
            return {"type": block.type, "data": block.data, "mimeType": block.media_type}
        case ResourceBlock():
            held = {"text": block.text} if block.text is not None else {"blob": block.data or ""}
            kind = {} if block.media_type is None else {"mimeType": block.media_type}
            return {"type": "resource", "resource": {"uri": block.uri, **kind, **held}}
        case ResourceLinkBlock():
            more = {"title": block.title, "description": block.description, "mimeType": block.media_type}
            known = {name: value for name, value in more.items() if value is not None}
            return {"type": "resource_link", "uri": block.uri, "name": block.name or block.uri, **known}
        case _:
            return {"type": "text", "text": block.to_json()}


def shown(content: Sequence[ContentBlock]) -> list[JsonObject]:
    """A tool's result."""
    return [{"type": "content", "content": content_of(block)} for block in content]


def _title(call: PolicyCall, arguments: Mapping[str, JsonValue]) -> str:
    """With what the call is about: a person decides by it."""
    if shape_of(call.tool) is not None:
        return call_text(call)
    about = _about(arguments)
    return call.tool if about is None else f"{call.tool}({about[1]})"


def _kind(tool: str, arguments: Mapping[str, JsonValue]) -> str:
    shape = shape_of(tool)
    about = _about(arguments)
    sort = shape.sort if shape is not None else about[0] if about is not None else Sort.TEXT
    if sort == Sort.COMMAND:
        return "execute"
    if sort == Sort.URL:
        return "fetch"
    if shape is None or sort != Sort.PATH:
        return "other"  # of an unknown tool nobody knows what it does with a path
    if shape.is_edit:
        return "edit"
    return "read" if shape.default is None else "search"


def _about(arguments: Mapping[str, JsonValue]) -> tuple[Sort, str] | None:
    """The command, address or path of a tool that is not known, by the names of its arguments."""
    for sort in (Sort.COMMAND, Sort.URL, Sort.PATH):
        for name, value in arguments.items():
            if isinstance(value, str) and sort_of(name) == sort and name != "cwd":
                return sort, value
    return None


def _path(tool: str, arguments: Mapping[str, JsonValue]) -> str | None:
    """The protocol wants absolute paths."""
    shape = shape_of(tool)
    if shape is None or shape.sort != Sort.PATH:
        return None
    value = arguments.get(shape.argument)
    return value if isinstance(value, str) and value.startswith("/") else None


def _change(path: str, arguments: Mapping[str, JsonValue]) -> JsonObject:
    """What an edit replaces, or the whole of a file that is written."""
    old, new, whole = arguments.get("old_string"), arguments.get("new_string"), arguments.get("content")
    if isinstance(old, str) and isinstance(new, str):
        return {"content": [{"type": "diff", "path": path, "oldText": old, "newText": new}]}
    if isinstance(whole, str):
        return {"content": [{"type": "diff", "path": path, "newText": whole}]}
    return {}
