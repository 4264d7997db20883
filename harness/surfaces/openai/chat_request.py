"""A chat completions request as the contract's values (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import assert_never

from pydantic import ValidationError
from starlette.datastructures import Headers

from harness.contract.content import text_of
from harness.contract.options import Effort, HistoryMessage, HistoryRole, ToolMode, TurnOptions
from harness.contract.tools import EMPTY_SCHEMA_JSON, ToolCall, ToolDescriptor, ToolResult
from harness.contract.value import JsonValue
from harness.surfaces.compatible.exchange import ModelRequest
from harness.surfaces.compatible.refusals import refused, unsupported
from harness.surfaces.openai.chat_body import (
    AllowedToolsChoice,
    AssistantMessage,
    ChatBody,
    ChatMessage,
    SystemMessage,
    ToolBody,
    ToolCallBody,
    ToolMessage,
    UserMessage,
    read_chat_body,
    unreadable,
)
from harness.surfaces.openai.chat_content import blocks_of

WORDS = {
    "tool_mode": "tool_choice",
    "tool_names": "tool_choice",
    "output_schema_json": "response_format",
    "effort": "reasoning_effort",
    "parallel_calls": "parallel_tool_calls",
}
EFFORTS = {
    "none": Effort.NONE,
    "minimal": Effort.LOW,
    "low": Effort.LOW,
    "medium": Effort.MEDIUM,
    "high": Effort.HIGH,
    "xhigh": Effort.EXTRA_HIGH,
    "max": Effort.EXTRA_HIGH,
}
_REFUSED = {
    "logprobs": "an agent tells no probabilities",
    "top_logprobs": "an agent tells no probabilities",
    "stop": "an agent cannot be stopped at a word",
    "functions": "it is replaced by 'tools'",
    "function_call": "it is replaced by 'tool_choice'",
    "audio": "an agent answers in text",
    "web_search_options": "which tools an agent has of its own is the server's business",
}
_SAYS_NOTHING: dict[str, Sequence[JsonValue]] = {
    "top_p": (1,),
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "metadata": ({},),
    "store": (False,),
    "service_tier": ("auto", "default"),
    "modalities": (["text"],),
}
"""Hints with these values ask for what happens anyway."""
_NOTHING: Sequence[JsonValue] = (None, False, [], {})


def chat_request(body: dict[str, JsonValue], headers: Headers) -> ModelRequest:
    """Raises:
    InvalidArgument: something that cannot be read, or that would change the answer and reaches nobody.
    """
    return request_of(read_chat_body(body))


def request_of(body: ChatBody) -> ModelRequest:
    _check_meaning(body)
    first = next((n for n, one in enumerate(body.messages) if not isinstance(one, SystemMessage)), len(body.messages))
    prompts = [text_of(blocks_of(one.content, f"messages.{n}.content")) for n, one in enumerate(body.messages[:first])]
    return ModelRequest(
        model=body.model,
        system_prompt="\n\n".join(prompt for prompt in prompts if prompt) or None,
        messages=tuple(_message(one, f"messages.{n}") for n, one in enumerate(body.messages) if n >= first),
        tools=tuple(_tool(tool, f"tools.{n}") for n, tool in enumerate(body.tools or ())),
        parallel_calls=body.parallel_tool_calls is not False,
        options=_options(body),
        words={**WORDS, "max_output_tokens": _limit_word(body)},
        ignored=tuple(_ignored(body)),
        streams=bool(body.stream),
        tells_usage=body.stream_options is not None and body.stream_options.include_usage,
    )


def _check_meaning(body: ChatBody) -> None:
    if body.n is not None and body.n != 1:
        raise unsupported("n", "an agent gives one answer")
    extra = body.model_extra or {}
    for name, why in _REFUSED.items():
        if extra.get(name) not in _NOTHING:
            raise unsupported(name, why)
    if extra.get("modalities") not in (None, [], ["text"]):
        raise unsupported("modalities", "an agent answers in text")


def _ignored(body: ChatBody) -> Iterator[str]:
    for name, value in (body.model_extra or {}).items():
        if value is not None and name not in _REFUSED and value not in _SAYS_NOTHING.get(name, ()):
            yield name
    if any(isinstance(one, UserMessage) and one.name for one in body.messages):
        yield "messages.name"
    if any(tool.function.strict for tool in body.tools or ()):
        yield "tools.function.strict"


def _message(message: ChatMessage, where: str) -> HistoryMessage:
    content = blocks_of(message.content, f"{where}.content") if not isinstance(message, ToolMessage) else []
    match message:
        case UserMessage() | SystemMessage():  # a later word of the system is said where it stands
            return HistoryMessage(role=HistoryRole.USER, content=content)
        case AssistantMessage(refusal=refusal, tool_calls=calls):
            said = content or blocks_of(refusal, f"{where}.refusal")
            return HistoryMessage(
                role=HistoryRole.ASSISTANT, content=said, tool_calls=[_call(call) for call in calls or ()]
            )
        case ToolMessage(tool_call_id=call_id):
            result = ToolResult(call_id=call_id, content=blocks_of(message.content, f"{where}.content"))
            return HistoryMessage(role=HistoryRole.USER, tool_results=[result])
    assert_never(message)


def _call(call: ToolCallBody) -> ToolCall:
    given = call.function.arguments or "{}"
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return ToolCall(call_id=call.id, tool_name=call.function.name, arguments_json=text)


def _tool(tool: ToolBody, where: str) -> ToolDescriptor:
    schema = tool.function.parameters
    try:
        return ToolDescriptor(
            name=tool.function.name,
            description=tool.function.description or "",
            input_schema_json=json.dumps(schema, ensure_ascii=False) if schema else EMPTY_SCHEMA_JSON,
        )
    except ValidationError as error:
        wrong = unreadable(error)
        param = f"{where}.function.{wrong.detail['param']}"
        raise refused(f"'{param}' cannot be used: {wrong.message}", reason="invalid_value", param=param) from None


def _options(body: ChatBody) -> TurnOptions:
    mode, names = _choice(body)
    return TurnOptions(
        tool_mode=mode,
        tool_names=names,
        effort=_effort(body.reasoning_effort),
        temperature=body.temperature,
        max_output_tokens=body.max_completion_tokens or body.max_tokens,
        output_schema_json=_schema_json(body),
    )


def _choice(body: ChatBody) -> tuple[ToolMode | None, list[str] | None]:
    choice = body.tool_choice
    if choice is None or choice == "auto" or (choice == "none" and not body.tools):
        return None, None
    if choice == "none":
        return ToolMode.NONE, None
    if choice == "required":
        return ToolMode.ANY, None
    if isinstance(choice, AllowedToolsChoice):
        mode = ToolMode.ANY if choice.allowed_tools.mode == "required" else None
        return mode, [tool.function.name for tool in choice.allowed_tools.tools]
    return ToolMode.ONE, [choice.function.name]


def _effort(text: str | None) -> Effort | None:
    if text is None:
        return None
    if text not in EFFORTS:
        raise refused(
            f"'reasoning_effort' must be one of {', '.join(EFFORTS)}, not '{text[:40]}'",
            reason="invalid_value",
            param="reasoning_effort",
        )
    return EFFORTS[text]


def _schema_json(body: ChatBody) -> str | None:
    wanted = body.response_format
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return '{"type":"object"}'
    if wanted.json_schema is None or not wanted.json_schema.json_schema:
        where = "response_format.json_schema.schema"
        raise refused(f"'{where}' is missing", reason="invalid_value", param=where)
    return json.dumps(wanted.json_schema.json_schema, ensure_ascii=False)


def _limit_word(body: ChatBody) -> str:
    return "max_tokens" if body.max_completion_tokens is None else "max_completion_tokens"
