"""The Messages API: our words into a request (pure). Events back into an answer: `reader.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from connectors._json import JsonObject, objects_in
from connectors._model_json import arguments_object
from connectors._text import without_surrogates
from connectors.anthropic.config import AnthropicConfig
from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.contract.options import Effort, ToolMode
from harness.contract.tools import ToolDescriptor
from harness.errors import ContentNotSupported, InvalidArgument, NotSupported
from harness.model_loop import AssistantMessage, ModelRequest, ToolMessage, ToolOutcome, UserMessage
from harness.model_loop.structured import instruction

ORIGIN = "anthropic.messages"
WEB_SEARCH = "web_search"
THINKING_TOKENS = {Effort.LOW: 2_048, Effort.MEDIUM: 8_192, Effort.HIGH: 16_384, Effort.EXTRA_HIGH: 32_768}
_CHOICES: dict[ToolMode, JsonObject] = {
    ToolMode.NONE: {"type": "none"},
    ToolMode.ANY: {"type": "any"},
    ToolMode.ONE: {"type": "any", "disable_parallel_tool_use": True},
}
_CACHED: JsonObject = {"cache_control": {"type": "ephemeral"}}


def check_tools(tools: Iterable[ToolDescriptor]) -> None:
    """Raises:
    InvalidArgument: a schema that the API refuses together with all the other tools.
    """
    for tool in tools:
        schema = json.loads(tool.input_schema_json)
        for member in ("oneOf", "anyOf", "allOf"):
            if member in schema:
                raise InvalidArgument(
                    f"the API takes no '{member}' at the root of an input schema: tool '{tool.name}', '$.{member}'"
                )


def request_body(request: ModelRequest, config: AnthropicConfig, internal_tools: Sequence[str] = ()) -> JsonObject:
    """Raises:
    NotSupported: options that exclude each other here; nothing was sent.
    """
    thinking = THINKING_TOKENS.get(request.effort) if request.effort is not None else None
    max_tokens = request.max_output_tokens or config.max_tokens
    body: JsonObject = {
        "model": request.model,
        "max_tokens": max_tokens + (thinking or 0),
        "stream": True,
        "messages": list(_messages(request)),
    }
    system = _system(request)
    if system:
        body["system"] = [{"type": "text", "text": system}]
    tools: list[JsonObject] = [_tool(tool) for tool in request.tools]
    if WEB_SEARCH in internal_tools:
        tools.append({"type": "web_search_20250305", "name": WEB_SEARCH})
    if tools:
        body["tools"] = tools
        if request.tool_mode in _CHOICES:
            body["tool_choice"] = _CHOICES[request.tool_mode]
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if thinking is not None:
        _check_thinking(request)
        body["thinking"] = {"type": "enabled", "budget_tokens": thinking}
    if config.cache:
        _mark_stable_parts(body)
    return body


def _check_thinking(request: ModelRequest) -> None:
    if request.temperature is not None:
        raise NotSupported("the API takes no 'temperature' together with an 'effort' that lets the model think")
    if request.tool_mode in (ToolMode.ANY, ToolMode.ONE):
        raise NotSupported(f"'tool_mode' '{request.tool_mode}' excludes an 'effort' that lets the model think")


def _system(request: ModelRequest) -> str:
    parts = [without_surrogates(request.system)]
    if request.output_schema_json is not None:
        parts.append(instruction(request.output_schema_json))
    return "\n\n".join(part for part in parts if part)


def _tool(tool: ToolDescriptor) -> JsonObject:
    schema: JsonObject = json.loads(tool.input_schema_json)
    # the one member the API insists on
    return {"name": tool.name, "description": tool.description, "input_schema": {"type": "object"} | schema}


def _mark_stable_parts(body: JsonObject) -> None:
    """Tools, system text and the conversation so far: each mark ends a prefix that the next request repeats."""
    for place in ("tools", "system"):
        parts = objects_in(body.get(place))
        if parts:
            body[place] = [*parts[:-1], parts[-1] | _CACHED]
    messages = objects_in(body["messages"])
    content = objects_in(messages[-1]["content"]) if messages else []
    if content and messages[-1]["role"] == "user":
        body["messages"] = [*messages[:-1], messages[-1] | {"content": [*content[:-1], content[-1] | _CACHED]}]


def _messages(request: ModelRequest) -> Iterator[JsonObject]:
    """Roles alternate: results and what the user says after them are one message, results first."""
    waiting: list[JsonObject] = []
    for message in request.messages:
        match message:
            case UserMessage(content):
                waiting.extend(_blocks(content))
            case ToolMessage(results, _):
                waiting.extend(_result(outcome) for outcome in results)
            case AssistantMessage():
                if waiting:
                    yield {"role": "user", "content": waiting}
                    waiting = []
                content = list(_assistant(message))
                if content:
                    yield {"role": "assistant", "content": content}
    if waiting:
        yield {"role": "user", "content": waiting}


def _blocks(content: Sequence[ContentBlock]) -> Iterator[JsonObject]:
    """In their order; empty texts, which the API refuses, are left out."""
    for block in content:
        if isinstance(block, TextBlock):
            if block.text:
                yield {"type": "text", "text": without_surrogates(block.text)}
        elif isinstance(block, ImageBlock):
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            yield {"type": "image", "source": source}
        else:
            raise ContentNotSupported(f"this connector cannot carry a block of type '{block.type}'")


def _result(outcome: ToolOutcome) -> JsonObject:
    block: JsonObject = {
        "type": "tool_result",
        "tool_use_id": outcome.call_id,
        "content": list(_blocks(outcome.content)),
    }
    return block | {"is_error": True} if outcome.is_error else block


def _assistant(message: AssistantMessage) -> Iterator[JsonObject]:
    """What this API said goes back as it came, thinking with its signature; only made-up ids replace its own."""
    if message.origin == ORIGIN and message.native is not None:
        call_ids = iter(call.call_id for call in message.calls)
        for block in objects_in(message.native):
            yield block | {"id": next(call_ids, block.get("id"))} if block.get("type") == "tool_use" else block
        return
    for said in message.said:
        if said.text.strip():
            yield {"type": "text", "text": without_surrogates(said.text)}
    for call in message.calls:
        arguments = arguments_object(call.arguments_json)
        yield {"type": "tool_use", "id": call.call_id, "name": call.tool_name, "input": arguments}
