"""The Responses API: our words into a request (pure). Events back into an answer: `responses_reader.py`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from connectors._json import JsonObject, object_in, objects_in
from connectors._model_json import result_text, split_blocks
from connectors._text import without_surrogates
from connectors.openai.config import OpenAiConfig, Quirks
from connectors.openai.shared_json import EFFORTS, data_url, json_schema
from harness.contract.content import ContentBlock
from harness.contract.delegation import Delegation
from harness.contract.options import ToolMode
from harness.contract.requests import REFUSING
from harness.contract.tools import ToolDescriptor
from harness.contract.value import JsonValue
from harness.model_loop import (
    AssistantMessage,
    HistoryEntry,
    ModelRequest,
    Said,
    ToolMessage,
    ToolOutcome,
    UserMessage,
)

ORIGIN = "openai.responses"
WEB_SEARCH = "web_search"
_CHOICES = {ToolMode.NONE: "none", ToolMode.ANY: "required", ToolMode.ONE: "required"}


def request_body(
    request: ModelRequest,
    config: OpenAiConfig,
    quirks: Quirks,
    *,
    internal_tools: Sequence[str] = (),
    delegation: Delegation | None = None,
    wants_encrypted_reasoning: bool = True,
) -> JsonObject:
    previous, messages = _chained(request, config)
    body: JsonObject = {
        "model": request.model,
        "input": [item for message in messages for item in _items(message, quirks)],
        "store": config.state == "server",
    }
    if previous is not None:
        body["previous_response_id"] = previous
    if request.system:
        body["instructions"] = without_surrogates(request.system)
    if quirks == "openai" and wants_encrypted_reasoning and config.state == "history":
        body["include"] = ["reasoning.encrypted_content"]
    tools = [*(_function(tool) for tool in request.tools), *_hosted(internal_tools, delegation)]
    if tools:
        body["tools"] = tools
        if request.tool_mode in _CHOICES:
            body["tool_choice"] = _CHOICES[request.tool_mode]
        if request.tool_mode == ToolMode.ONE:
            body["parallel_tool_calls"] = False
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    reasoning: JsonObject = {}
    if request.effort is not None:
        reasoning["effort"] = EFFORTS[request.effort]
    if config.reasoning_summary is not None:
        reasoning["summary"] = config.reasoning_summary
    if reasoning:
        body["reasoning"] = reasoning
    if request.output_schema_json is not None:
        body["text"] = {"format": {"type": "json_schema", **json_schema(request.output_schema_json)}}
    return body | config.extra_body


def _chained(request: ModelRequest, config: OpenAiConfig) -> tuple[str | None, Sequence[HistoryEntry]]:
    """The response to go on from and what is new since; without one, everything."""
    if config.state == "server" and not request.is_cut:
        for place in range(len(request.messages) - 1, -1, -1):
            message = request.messages[place]
            if isinstance(message, AssistantMessage):
                response_id = object_in(message.native).get("id") if message.origin == ORIGIN else None
                if isinstance(response_id, str):
                    return response_id, request.messages[place + 1 :]
                break
    return None, request.messages


def _function(tool: ToolDescriptor) -> JsonObject:
    """Not strict: that would demand schemas which require every property."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": json.loads(tool.input_schema_json),
        "strict": False,
    }


def _hosted(internal_tools: Sequence[str], delegation: Delegation | None) -> Iterator[JsonObject]:
    """Tools that the provider runs itself."""
    if WEB_SEARCH in internal_tools:
        yield {"type": "web_search"}
    for source in delegation.tool_sources if delegation is not None else ():
        tool: JsonObject = {
            "type": "mcp",
            "server_label": source.name,
            "server_url": source.url,
            "require_approval": "always",
        }
        if source.tool_names is not None:
            tool["allowed_tools"] = source.tool_names
        if source.headers and source.share_secrets:
            tool["headers"] = {header.name: header.value for header in source.headers}
        yield tool


def _items(message: HistoryEntry, quirks: Quirks) -> Iterator[JsonObject]:
    match message:
        case UserMessage(content):
            yield {"type": "message", "role": "user", "content": _parts(content)}
        case AssistantMessage():
            yield from _assistant(message, quirks)
        case ToolMessage(results, decisions):
            yield from (_output(outcome) for outcome in results)
            for request, response in decisions:
                option = request.option(response.selected_option)
                approve = option is not None and option.kind not in REFUSING
                decision: JsonObject = {
                    "type": "mcp_approval_response",
                    "approval_request_id": request.peer_request_id,
                    "approve": approve,
                }
                yield decision | ({"reason": response.reason} if response.reason else {})


def _parts(content: Sequence[ContentBlock]) -> list[JsonObject]:
    text, images = split_blocks(content)
    parts: list[JsonObject] = [{"type": "input_text", "text": text}] if text or not images else []
    return parts + [{"type": "input_image", "image_url": data_url(image), "detail": "auto"} for image in images]


def _assistant(message: AssistantMessage, quirks: Quirks) -> Iterator[JsonObject]:
    """What this API said goes back as it came, in its order; only ids that were made up here replace its own."""
    if message.origin == ORIGIN and message.native is not None:
        call_ids = iter(call.call_id for call in message.calls)
        for item in objects_in(object_in(message.native).get("items")):
            if item.get("type") == "function_call":
                yield item | {"call_id": next(call_ids, item.get("call_id"))}
            elif item.get("type") != "reasoning" or _takes_reasoning(item, quirks):
                yield item
        return
    for said in message.said:
        yield _message_item(said)
    for call in message.calls:
        yield {
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.tool_name,
            "arguments": call.arguments_json,
        }


def _takes_reasoning(item: JsonObject, quirks: Quirks) -> bool:
    """Other servers refuse reasoning that is encrypted or summarised only."""
    return quirks == "openai" or isinstance(item.get("content"), list)


def _message_item(said: Said) -> JsonObject:
    part: JsonObject = {"type": "output_text", "text": without_surrogates(said.text), "annotations": []}
    item: JsonObject = {"type": "message", "role": "assistant", "content": [part]}
    return item


def _output(outcome: ToolOutcome) -> JsonObject:
    text, images = split_blocks(outcome.content)
    shown = result_text(outcome, text)
    output: JsonValue = shown
    if images:
        parts: list[JsonObject] = [{"type": "input_text", "text": shown}] if shown else []
        output = parts + [{"type": "input_image", "image_url": data_url(image), "detail": "auto"} for image in images]
    return {"type": "function_call_output", "call_id": outcome.call_id, "output": output}
