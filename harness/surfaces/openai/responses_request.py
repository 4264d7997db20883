"""A Responses request as the contract's values (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from starlette.datastructures import Headers

from harness.contract.options import Effort, HistoryRole, TurnOptions
from harness.contract.value import JsonValue
from harness.surfaces.compatible.exchange import ModelRequest
from harness.surfaces.compatible.refusals import refused, unsupported
from harness.surfaces.openai.chat_request import EFFORTS
from harness.surfaces.openai.responses_body import ResponsesBody, read_responses_body
from harness.surfaces.openai.responses_input import prompt_and_history
from harness.surfaces.openai.responses_tools import ToolName, client_names, ignored_of_tools, offered_tools, tool_choice

RESPONSE_PREFIX = "resp_"
_WORDS = {
    "tool_mode": "tool_choice",
    "tool_names": "tool_choice",
    "output_schema_json": "text.format",
    "effort": "reasoning.effort",
    "parallel_calls": "parallel_tool_calls",
    "system_prompt": "instructions",
}
_REFUSED = {
    "background": "a reply is told to who waits for it; stay connected, 'stream' keeps the line busy",
    "conversation": "name one of this server in the header 'X-Harness-Conversation'",
    "prompt": "this server keeps no prompts; send 'instructions' and 'input'",
    "moderation": "nobody here moderates",
    "top_logprobs": "an agent tells no probabilities",
}
_SAYS_NOTHING: Mapping[str, Sequence[JsonValue]] = {
    "store": (False,),
    "truncation": ("disabled",),
    "service_tier": ("auto", "default"),
}
"""Hints with these values ask for what happens anyway."""
_NEVER_SAYS_ANYTHING = frozenset({"include", "stream_options", "max_tool_calls"})
"""They are about tools of OpenAI's own, its encrypted reasoning, and padding of its stream."""
_NOTHING: Sequence[JsonValue] = (None, False, [], {})
_PROBABILITIES = "message.output_text.logprobs"


@dataclass(frozen=True, slots=True)
class ResponsesRequest(ModelRequest):
    """A request of this wire."""

    echo: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """What a response says again of its request."""
    client_names: Mapping[str, ToolName] = field(default_factory=dict[str, ToolName])
    """The client's own names of tools that an agent knows by others."""


def responses_request(body: dict[str, JsonValue], headers: Headers) -> ResponsesRequest:
    """Raises:
    InvalidArgument: something that cannot be read, or that would change the answer and reaches nobody.
    """
    read = read_responses_body(body)
    _check_meaning(read)
    previous = read.previous_response_id
    tools = read.tools or ()
    prompts, messages = prompt_and_history(read.input, goes_on=previous is not None)
    if previous is not None and any(message.role == HistoryRole.ASSISTANT for message in messages):
        raise refused("'input' must hold only what is new, as 'previous_response_id' has the rest", param="input")
    prompts = [read.instructions, *prompts] if read.instructions else prompts
    return ResponsesRequest(
        model=read.model,
        system_prompt="\n\n".join(prompts) or None,
        messages=messages,
        tools=offered_tools(tools),
        parallel_calls=read.parallel_tool_calls is not False,
        options=_options(read),
        words=_WORDS,
        ignored=tuple(dict.fromkeys(_ignored(read))),
        previous_reply=None if previous is None else previous.removeprefix(RESPONSE_PREFIX),
        streams=bool(read.stream),
        echo=_echo(read, body),
        client_names=client_names(tools),
    )


def _check_meaning(body: ResponsesBody) -> None:
    extra = body.model_extra or {}
    for name, why in _REFUSED.items():
        if extra.get(name) not in _NOTHING:
            raise unsupported(name, why)
    included = extra.get("include")
    if isinstance(included, list) and _PROBABILITIES in included:
        raise unsupported("include", "an agent tells no probabilities")


def _ignored(body: ResponsesBody) -> Iterator[str]:
    for name, value in (body.model_extra or {}).items():
        is_silent = name in _REFUSED or name in _NEVER_SAYS_ANYTHING or value in _SAYS_NOTHING.get(name, ())
        if value is not None and not is_silent:
            yield name
    if body.top_p not in (None, 1):
        yield "top_p"
    if body.text is not None:
        yield from (f"text.{name}" for name, value in (body.text.model_extra or {}).items() if value is not None)
    yield from ignored_of_tools(body.tools or ())


def _options(body: ResponsesBody) -> TurnOptions:
    mode, names = tool_choice(body.tool_choice, body.tools or ())
    return TurnOptions(
        tool_mode=mode,
        tool_names=names,
        effort=_effort(body),
        temperature=body.temperature,
        max_output_tokens=body.max_output_tokens,
        output_schema_json=_schema_json(body),
    )


def _effort(body: ResponsesBody) -> Effort | None:
    text = body.reasoning.effort if body.reasoning is not None else None
    if text is None:
        return None
    if text not in EFFORTS:
        raise refused(
            f"'reasoning.effort' must be one of {', '.join(EFFORTS)}, not '{text[:40]}'",
            reason="invalid_value",
            param="reasoning.effort",
        )
    return EFFORTS[text]


def _schema_json(body: ResponsesBody) -> str | None:
    wanted = body.text.format if body.text is not None else None
    if wanted is None or wanted.type == "text":
        return None
    if wanted.type == "json_object":
        return '{"type":"object"}'
    if not wanted.json_schema:
        raise refused("'text.format.schema' is missing", reason="invalid_value", param="text.format.schema")
    return json.dumps(wanted.json_schema, ensure_ascii=False)


def _echo(read: ResponsesBody, body: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """As the API's own responses have it; what was not said is as it happens here."""
    return {
        "background": False,
        "instructions": read.instructions,
        "max_output_tokens": read.max_output_tokens,
        "metadata": body.get("metadata") or {},
        "parallel_tool_calls": read.parallel_tool_calls is not False,
        "previous_response_id": read.previous_response_id,
        "reasoning": body.get("reasoning") or {"effort": None, "summary": None},
        "temperature": read.temperature,
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": body.get("tools") or [],
        "top_p": read.top_p,
        "truncation": "disabled",
    }
