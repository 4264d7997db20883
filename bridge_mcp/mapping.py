"""Our tools as MCP tools, and the host's answers as MCP results. Pure; plain dicts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from bridge_mcp.protocol import JsonObject
from harness.contract.content import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
)
from harness.contract.requests import HostResponse
from harness.contract.tools import ToolDescriptor
from harness.errors import InvalidArgument

MAX_NAME_CHARS = 64
MAX_RESULT_CHARS = 500_000
_HINTS = (
    ("read_only", "readOnlyHint"),
    ("destructive", "destructiveHint"),
    ("idempotent", "idempotentHint"),
    ("open_world", "openWorldHint"),
)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A change of a tool that the peer made necessary; `rule` is its name, the same for every tool."""

    tool_name: str
    rule: str


@dataclass(frozen=True, slots=True)
class MappedTools:
    """The tools as the peer gets them, which name there is which of ours, and what had to be changed."""

    tools: list[JsonObject]
    ours: Mapping[str, ToolDescriptor]
    """Name on the wire -> our tool."""
    rewrites: list[Rewrite]


def map_tools(tools: Sequence[ToolDescriptor], *, prefix: str = "") -> MappedTools:
    """Every tool as an MCP tool; names fit 64 characters together with the prefix that the peer puts before them.

    Raises:
        InvalidArgument: a schema that a peer would drop the tool, or the whole list, for.
    """
    names = wire_names((tool.name for tool in tools), MAX_NAME_CHARS - len(prefix))
    mapped: list[JsonObject] = []
    rewrites: list[Rewrite] = []
    for tool in tools:
        schema, rule = input_schema(tool)
        name = names[tool.name]
        if name != tool.name:
            rewrites.append(Rewrite(tool.name, "name_shortened"))
        if rule is not None:
            rewrites.append(Rewrite(tool.name, rule))
        mapped.append(_mcp_tool(tool, name, schema))
    return MappedTools(mapped, {names[tool.name]: tool for tool in tools}, rewrites)


def wire_names(names: Iterable[str], room: int) -> dict[str, str]:
    """Our name -> the name on the wire, unique and no longer than `room`.

    A longer one keeps its beginning and gets a digest of the whole, so it is the same in every process.
    """
    names = list(names)
    taken = {name for name in names if len(name) <= room}
    chosen = {name: name for name in taken}
    for name in names:
        digest = hashlib.sha256(name.encode()).hexdigest()
        digits = 8
        while name not in chosen:
            short = f"{name[: room - digits - 1]}_{digest[:digits]}"
            if short not in taken:
                taken.add(short)
                chosen[name] = short
            digits += 1
    return chosen


def input_schema(tool: ToolDescriptor) -> tuple[JsonObject, str | None]:
    """The parsed schema, keys in their order, and the name of the rewrite if it had to be changed.

    A root without `"type": "object"` makes peers drop the tool, or the server's whole list: where the root says no
    type it gets one (`root_type_added`), any other type is no schema of arguments.

    Raises:
        InvalidArgument: not an object schema; names the tool.
    """
    try:
        schema = json.loads(tool.input_schema_json)
    except ValueError as error:
        raise InvalidArgument(f"the input schema of tool '{tool.name}' is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise InvalidArgument(f"the input schema of tool '{tool.name}' must be a JSON object")
    schema = cast(JsonObject, schema)
    if schema.get("type") == "object":
        return schema, None
    if "type" not in schema:
        return {"type": "object", **schema}, "root_type_added"
    raise InvalidArgument(
        f"the input schema of tool '{tool.name}' has the type {json.dumps(schema['type'])} at its root; "
        'arguments are an object: make it "object"'
    )


def _mcp_tool(tool: ToolDescriptor, name: str, schema: JsonObject) -> JsonObject:
    mapped: JsonObject = {"name": name, "description": tool.description, "inputSchema": schema}
    hints = {theirs: value for ours, theirs in _HINTS if (value := getattr(tool, ours)) is not None}
    if hints:
        mapped["annotations"] = hints
    # without it Claude Code replaces results over 50 000 characters by a preview
    mapped["_meta"] = {"anthropic/maxResultSizeChars": MAX_RESULT_CHARS}
    return mapped


def result_of(response: HostResponse) -> JsonObject:
    """The host's answer as an MCP result.

    Structured content becomes a text block, because `structuredContent` would replace the content on its way.
    """
    content = [_mcp_block(block) for block in response.content]
    structured = response.structured_content_json
    if structured is not None and not any(block.get("text") == structured for block in content):
        content.append({"type": "text", "text": structured})
    result: JsonObject = {"content": content}
    if response.is_error:
        result["isError"] = True
    return result


def error_result(text: str) -> JsonObject:
    """An answer of our own that tells the model why there is none of the host."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _mcp_block(block: ContentBlock) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock() | AudioBlock():
            return {"type": block.type, "data": block.data, "mimeType": block.media_type}
        case ResourceBlock():
            body = {"uri": block.uri, "mimeType": block.media_type, "text": block.text, "blob": block.data}
            return {"type": "resource", "resource": _present(body)}
        case ResourceLinkBlock():
            # `name` is required in MCP and optional with us
            link = {
                "uri": block.uri,
                "name": block.name or block.uri,
                "title": block.title,
                "description": block.description,
                "mimeType": block.media_type,
            }
            return {"type": "resource_link", **_present(link)}
        case _:
            return {"type": "text", "text": block.to_json()}


def _present(fields: Mapping[str, str | None]) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None}
