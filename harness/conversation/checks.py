"""Refuses what the connector's capabilities exclude, before anything is sent (pure)."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import cast

from harness.contract.capabilities import LlmCapabilities, SeedHistory, StructuredOutput
from harness.contract.content import ContentBlock, ImageBlock, ResourceBlock, TextBlock
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostRequest, HostResponse, RequestKind
from harness.contract.tools import ToolDescriptor
from harness.contract.value import JsonValue
from harness.conversation.prices import price_of
from harness.errors import ContentNotSupported, InvalidArgument, NotSupported
from harness.settings import Price


def check_options(options: ConversationOptions, capabilities: LlmCapabilities, prices: Sequence[Price] = ()) -> None:
    """Everything a conversation asks for that the connector cannot honour is an error at begin, never ignored."""
    _check_tools(options.tools)
    connector = options.connector
    if options.tools and not capabilities.supports_tools:
        raise NotSupported(f"connector '{connector}' cannot call tools")
    unknown = [name for name in options.internal_tools if name not in capabilities.internal_tools]
    if unknown:
        known = ", ".join(capabilities.internal_tools) or "none"
        raise InvalidArgument(f"connector '{connector}' has no internal tool '{unknown[0]}'; it has: {known}")
    if options.history and capabilities.seed_history == SeedHistory.NONE:
        raise NotSupported(f"connector '{connector}' cannot start from a history")
    if options.output_schema_json is not None:
        parsed_object(options.output_schema_json, "output_schema_json")
        if capabilities.structured_output == StructuredOutput.NONE:
            raise NotSupported(f"connector '{connector}' has no structured output")
    knows_cost = capabilities.reports_cost or price_of(options.model, prices) is not None
    if options.limits.cost_budget_usd is not None and not knows_cost:
        raise NotSupported(
            f"connector '{connector}' reports no cost, so 'cost_budget_usd' could not be kept: name a model that "
            "[prices] of the configuration knows"
        )


def check_turn_options(turn: TurnOptions, options: ConversationOptions, capabilities: LlmCapabilities) -> None:
    asked = set(turn.model_dump(exclude_none=True)) - {"client_key"}
    refused = sorted(asked - set(capabilities.turn_options))
    if refused:
        raise NotSupported(f"connector '{options.connector}' cannot change '{refused[0]}' for one turn")
    known = {tool.name for tool in options.tools}
    unknown = [name for name in turn.tool_names or [] if name not in known]
    if unknown:
        raise InvalidArgument(f"'tool_names' has the unknown tool '{unknown[0]}'; known: {', '.join(sorted(known))}")


def check_message(content: Sequence[ContentBlock], capabilities: LlmCapabilities) -> None:
    if not content:
        raise InvalidArgument("the message has no content")
    documents = capabilities.documents_in_prompt
    others = [one for one in content if not (isinstance(one, ResourceBlock) and one.media_type in documents)]
    _check_blocks(others, capabilities.images_in_prompt, "a prompt")


def check_response(request: HostRequest, response: HostResponse, capabilities: LlmCapabilities) -> None:
    """A tool result that would not arrive as it is, is refused; the request stays open."""
    if request.kind != RequestKind.TOOL_CALL:
        return
    _check_blocks(response.content, capabilities.images_in_tool_results, "a tool result")
    limit = capabilities.max_result_chars
    if limit is None:
        return
    length = sum(len(block.text) for block in response.content if isinstance(block, TextBlock))
    length += len(response.structured_content_json or "")
    if length > limit:
        raise ContentNotSupported(
            f"the result of '{request.request_id}' has {length} characters; at most {limit} reach the model unaltered",
            max_result_chars=limit,
        )


def parsed_object(text: str, field: str) -> dict[str, JsonValue]:
    """The JSON object in a `..._json` field.

    Raises:
        InvalidArgument: it is not JSON, or not an object.
    """
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidArgument(f"'{field}' is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise InvalidArgument(f"'{field}' must be a JSON object")
    return cast(dict[str, JsonValue], value)


def _check_tools(tools: Sequence[ToolDescriptor]) -> None:
    seen: set[str] = set()
    for tool in tools:
        if tool.name in seen:
            raise InvalidArgument(f"tool '{tool.name}' is declared twice")
        seen.add(tool.name)
        schema = parsed_object(tool.input_schema_json, f"input_schema_json of tool '{tool.name}'")
        if schema.get("type", "object") != "object":
            raise InvalidArgument(f"the input schema of tool '{tool.name}' must have type 'object' at its root")


def _check_blocks(content: Sequence[ContentBlock], images: bool, place: str) -> None:
    carried: Collection[type] = (TextBlock, ImageBlock) if images else (TextBlock,)
    for block in content:
        if type(block) not in carried:
            raise ContentNotSupported(f"this connector cannot carry a block of type '{block.type}' in {place}")
