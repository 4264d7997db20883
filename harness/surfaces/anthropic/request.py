"""A Messages request as the contract's values (pure): what is asked, and which hints of it reach nobody."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pydantic import ValidationError

from harness.contract.options import Effort, ToolMode, TurnOptions
from harness.contract.tools import ToolDescriptor
from harness.contract.value import JsonValue
from harness.surfaces.anthropic.body import MessagesBody, WireTool, WireToolChoice
from harness.surfaces.anthropic.history import history_of, loaded_tools, system_text
from harness.surfaces.compatible.exchange import ModelRequest
from harness.surfaces.compatible.names import inner_name, long_names
from harness.surfaces.compatible.refusals import refused, unsupported

_EFFORTS = {
    "low": Effort.LOW,
    "medium": Effort.MEDIUM,
    "high": Effort.HIGH,
    "xhigh": Effort.EXTRA_HIGH,
    "max": Effort.EXTRA_HIGH,
}
_BUDGETS = ((4_096, Effort.LOW), (12_288, Effort.MEDIUM), (24_576, Effort.HIGH))
"""Up to so many tokens of thought, so much effort; more is `extra_high`."""
_WORDS = {
    "tool_mode": "tool_choice",
    "tool_names": "tool_choice",
    "effort": "output_config.effort",
    "max_output_tokens": "max_tokens",
    "output_schema_json": "output_config.format",
}
MESSAGE_PREFIX = "msg_"
_UNSAID = frozenset({"cache_control"})
"""Says nothing about the answer, so leaving it out is not worth a word."""


@dataclass(frozen=True, slots=True)
class MessagesRequest(ModelRequest):
    """A request of this wire."""

    shows_thinking: bool = False
    """Whether the client asked to see what the model thinks."""
    long_names: Mapping[str, str] = field(default_factory=dict[str, str])
    """The client's names of tools whose names an agent gets shortened."""


def read_body(body: Mapping[str, JsonValue]) -> MessagesBody:
    """Raises:
    InvalidArgument: a member that is missing or of another type, named by its place.
    """
    try:
        return MessagesBody.model_validate(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise refused(f"'{place}' cannot be used: {first['msg']}", param=place) from None


def messages_request(body: MessagesBody) -> MessagesRequest:
    """Raises:
    HarnessError: something that would change the answer and cannot be honoured, named by its place.
    """
    _check_meaning(body)
    loaded = loaded_tools(body.messages)
    tools = tuple(
        _tool(tool, f"tools.{number}")
        for number, tool in enumerate(body.tools)
        if not tool.defer_loading or tool.name in loaded
    )
    thinking = body.thinking
    return MessagesRequest(
        model=body.model,
        system_prompt=system_text(body.system),
        messages=history_of(body.messages),
        tools=tools,
        options=_options(body, tools),
        words=_WORDS,
        ignored=tuple(dict.fromkeys(_ignored(body))),
        previous_reply=_previous_reply(body),
        streams=body.stream,
        shows_thinking=thinking is not None
        and thinking.type in ("enabled", "adaptive")
        and thinking.display != "omitted",
        long_names=long_names(tool.name for tool in body.tools),
    )


def _check_meaning(body: MessagesBody) -> None:
    if body.stop_sequences:
        raise unsupported("stop_sequences", "an agent does not stop at a word")
    if body.mcp_servers:
        raise unsupported("mcp_servers", "offer their tools in 'tools' and run them yourself")
    if body.container is not None:
        raise unsupported("container", "it is Anthropic's own")


def _previous_reply(body: MessagesBody) -> str | None:
    """The reply that the client goes on from; without one the history says where it stands."""
    if body.thread is None or body.thread.type == "create":
        return None
    if body.thread.previous_message_id is None:
        raise refused("'thread.previous_message_id' is missing", param="thread.previous_message_id")
    if any(message.role == "assistant" for message in body.messages):
        raise refused("'messages' must hold only what is new, as the thread has the rest", param="messages")
    return body.thread.previous_message_id.removeprefix(MESSAGE_PREFIX)


def _tool(tool: WireTool, place: str) -> ToolDescriptor:
    if tool.type not in (None, "custom"):
        raise unsupported(
            f"{place}.type",
            f"only Anthropic's own API knows '{tool.type}'; offer a tool of yours with an 'input_schema', or let the "
            "agent use its own by the connector's options",
        )
    if tool.input_schema is None:
        raise refused(f"'{place}.input_schema' of the tool '{tool.name}' is missing", param=f"{place}.input_schema")
    schema_json = json.dumps(tool.input_schema, separators=(",", ":"), ensure_ascii=False)
    try:
        return ToolDescriptor(
            name=inner_name(tool.name), description=tool.description or "", input_schema_json=schema_json
        )
    except ValidationError:
        raise refused(
            f"'{place}.name' '{tool.name}' cannot be offered: a name has letters, digits, '_' and '-'",
            param=f"{place}.name",
        ) from None


def _options(body: MessagesBody, tools: tuple[ToolDescriptor, ...]) -> TurnOptions:
    mode, names = _choice(body.tool_choice, tools)
    output = body.output_config
    schema_json: str | None = None
    if output is not None and output.format is not None:
        if output.format.type != "json_schema" or output.format.schema_ is None:
            raise refused("'output_config.format' must be of type 'json_schema' and have a 'schema'")
        schema_json = json.dumps(output.format.schema_, separators=(",", ":"), ensure_ascii=False)
    return TurnOptions(
        tool_mode=mode,
        tool_names=names,
        effort=_effort(body),
        temperature=body.temperature,
        max_output_tokens=body.max_tokens,
        output_schema_json=schema_json,
    )


def _choice(
    choice: WireToolChoice | None, tools: tuple[ToolDescriptor, ...]
) -> tuple[ToolMode | None, list[str] | None]:
    """Null twice means: as the model likes."""
    if choice is None or choice.type == "auto":
        return None, None
    if choice.type == "none":
        return ToolMode.NONE, None
    mode = ToolMode.ONE if choice.disable_parallel_tool_use else ToolMode.ANY
    if choice.type == "any":
        return mode, None
    name = inner_name(choice.name or "")
    if not any(tool.name == name for tool in tools):
        raise refused(f"'tool_choice.name' is '{choice.name}', which is none of the tools")
    return mode, [name]


def _effort(body: MessagesBody) -> Effort | None:
    """What the client says of effort, else what its budget for thinking amounts to."""
    if body.output_config is not None and body.output_config.effort is not None:
        return _EFFORTS.get(body.output_config.effort)
    budget = body.thinking.budget_tokens if body.thinking is not None and body.thinking.type == "enabled" else None
    if budget is None:
        return None
    return next((effort for limit, effort in _BUDGETS if budget <= limit), Effort.EXTRA_HIGH)


def _ignored(body: MessagesBody) -> Iterator[str]:
    yield from (name for name in (body.model_extra or {}) if name not in _UNSAID)
    for tool in body.tools:
        yield from (f"tools.{name}" for name in (tool.model_extra or {}) if name not in _UNSAID)
    choice = body.tool_choice
    if choice is not None and choice.type == "auto" and choice.disable_parallel_tool_use:
        yield "tool_choice.disable_parallel_tool_use"
    effort = body.output_config.effort if body.output_config is not None else None
    if effort is not None and effort not in _EFFORTS:
        yield "output_config.effort"
