"""Ollama's `/api/chat`: our words into a request, lines of JSON into an answer (pure).

Calls come whole, with an object for arguments, in any line; nothing says why a message ended except for its length.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in, text_in
from connectors._model_json import arguments_object, result_text, split_blocks, whole_number
from connectors._text import without_surrogates
from connectors.ollama.config import OllamaConfig
from harness.contract.content import ImageBlock
from harness.contract.options import Effort, ToolMode
from harness.contract.output import StopReason
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.errors import HarnessError, NotSupported, ProviderError
from harness.model_loop import (
    AssistantMessage,
    CallMade,
    Heard,
    MalformedAnswer,
    ModelAnswer,
    ModelRequest,
    Said,
    ToolMessage,
    UserMessage,
    text_said,
)
from harness.model_loop.provider_errors import error_in_stream
from harness.model_loop.structured import instruction
from harness.turn.events import notice

ORIGIN = "ollama.chat"
_MALFORMED = ("error parsing tool call", "invalid tool call arguments")
_LEVELS = {Effort.LOW: "low", Effort.MEDIUM: "medium", Effort.HIGH: "high", Effort.EXTRA_HIGH: "high"}


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What `/api/show` tells of a model."""

    calls_tools: bool
    thinks: bool
    sees: bool
    window: int | None
    takes_levels: bool
    """Thinking has levels and cannot be switched off."""


def facts_of(shown: JsonValue, model: str) -> ModelFacts:
    told = object_in(shown)
    listed = told.get("capabilities")
    capabilities = [text_in(one) for one in cast(list[JsonValue], listed)] if isinstance(listed, list) else []
    info = object_in(told.get("model_info"))
    windows = [whole_number(value) for name, value in info.items() if name.endswith(".context_length")]
    return ModelFacts(
        # servers before capabilities were told: let the request say
        calls_tools="tools" in capabilities or not capabilities,
        thinks="thinking" in capabilities,
        sees="vision" in capabilities,
        window=next((window for window in windows if window), None),
        takes_levels="gpt-oss" in model or text_in(object_in(told.get("details")).get("family")) == "gptoss",
    )


def request_body(request: ModelRequest, config: OllamaConfig, facts: ModelFacts, num_ctx: int) -> JsonObject:
    """Raises:
    NotSupported: something this model or server cannot do; nothing was sent.
    """
    tools = () if request.tool_mode == ToolMode.NONE else request.tools
    if request.tool_mode in (ToolMode.ANY, ToolMode.ONE):
        raise NotSupported(f"Ollama cannot demand a call: 'tool_mode' '{request.tool_mode}' is not possible")
    if tools and not facts.calls_tools:
        raise NotSupported(
            f"the model '{request.model}' cannot call tools; choose one that 'ollama show' lists with them"
        )
    options: JsonObject = {**config.options, "num_ctx": num_ctx}
    if request.temperature is not None:
        options["temperature"] = request.temperature
    if request.max_output_tokens is not None:
        options["num_predict"] = request.max_output_tokens
    system, answer_format = request.system, None
    if request.output_schema_json is not None:
        # a grammar would keep the model from calling, so with tools on offer it is only told
        if tools:
            system = f"{system}\n\n{instruction(request.output_schema_json)}".strip()
        else:
            answer_format = json.loads(request.output_schema_json)
    body: JsonObject = {
        "model": request.model,
        "stream": True,
        "messages": list(_messages(system, request, facts)),
        "keep_alive": config.keep_alive,
        # an error instead of a silently shortened prompt or a sliding window
        "truncate": False,
        "shift": False,
        "options": options,
    }
    if tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": json.loads(tool.input_schema_json),
                },
            }
            for tool in tools
        ]
    if answer_format is not None:
        body["format"] = answer_format
    think = _think(request, facts)
    return body if think is None else body | {"think": think}


def load_body(model: str, config: OllamaConfig, num_ctx: int) -> JsonObject:
    """Loads the model as the turns will use it; other load options would load it again."""
    options = {**config.options, "num_ctx": num_ctx}
    return {"model": model, "messages": [], "keep_alive": config.keep_alive, "options": options}


def _think(request: ModelRequest, facts: ModelFacts) -> JsonValue:
    effort = request.effort
    if effort is None:
        return None
    if not facts.thinks:
        if effort == Effort.NONE:
            return None
        raise NotSupported(f"the model '{request.model}' does not think: 'effort' '{effort}' is not possible")
    if not facts.takes_levels:
        return effort != Effort.NONE
    if effort == Effort.NONE:
        raise NotSupported(f"the model '{request.model}' cannot be kept from thinking: 'effort' 'none' is not possible")
    return _LEVELS[effort]


def _messages(system: str, request: ModelRequest, facts: ModelFacts) -> Iterator[JsonObject]:
    if system:
        yield {"role": "system", "content": without_surrogates(system)}
    waiting: list[UserMessage] = []
    for message in request.messages:
        if isinstance(message, UserMessage):
            waiting.append(message)
            continue
        yield from _user(waiting, facts)
        waiting = []
        yield from [_assistant(message)] if isinstance(message, AssistantMessage) else _results(message, facts)
    yield from _user(waiting, facts)


def _user(messages: Sequence[UserMessage], facts: ModelFacts) -> Iterator[JsonObject]:
    """Messages that follow each other as one: some templates want the roles to alternate."""
    if messages:
        text, images = split_blocks([block for message in messages for block in message.content])
        yield _with_images(text, images, facts)


def _with_images(text: str, images: Sequence[ImageBlock], facts: ModelFacts) -> JsonObject:
    if images and not facts.sees:
        raise NotSupported("this model sees no images; choose one that 'ollama show' lists with vision")
    message: JsonObject = {"role": "user", "content": text}
    return message | {"images": [image.data for image in images]} if images else message


def _assistant(message: AssistantMessage) -> JsonObject:
    value: JsonObject = {"role": "assistant", "content": without_surrogates(text_said(message.said))}
    thinking = text_in(object_in(message.native).get("thinking")) if message.origin == ORIGIN else ""
    if thinking:
        value["thinking"] = thinking
    if message.calls:
        value["tool_calls"] = [
            {
                "id": call.call_id,
                "function": {
                    "index": number,
                    "name": call.tool_name,
                    "arguments": arguments_object(call.arguments_json),
                },
            }
            for number, call in enumerate(message.calls)
        ]
    return value


def _results(message: ToolMessage, facts: ModelFacts) -> Iterator[JsonObject]:
    """One message per call; images, which templates do not look for there, in a user message after them."""
    seen: list[tuple[str, ImageBlock]] = []
    for outcome in message.results:
        text, images = split_blocks(outcome.content)
        shown = result_text(outcome, text)
        yield {"role": "tool", "tool_name": outcome.tool_name, "tool_call_id": outcome.call_id, "content": shown}
        seen.extend((outcome.call_id, image) for image in images)
    if seen:
        ids = ", ".join(dict.fromkeys(call_id for call_id, _ in seen))
        yield _with_images(f"Images of the results of {ids}:", [image for _, image in seen], facts)


class ChatReader:
    """Puts the lines of one answer together. `heard` gets what is to be shown while it comes."""

    def __init__(self, heard: Heard, request: ModelRequest, num_ctx: int) -> None:
        self._heard = heard
        self._request = request
        self._num_ctx = num_ctx
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._calls: list[CallMade] = []
        self._end: JsonObject | None = None

    def receive(self, line: bytes) -> None:
        """Raises:
        HarnessError: the line tells of a failure, or is no JSON.
        """
        try:
            value = object_in(json.loads(line))
        except (ValueError, RecursionError) as error:
            raise ProviderError(f"Ollama sent a line that is no JSON: {line[:200]!r}", reason="server") from error
        if "message" not in value and "done" not in value:
            raise _failure(value)
        message = object_in(value.get("message"))
        thinking, text = plain_text_in(message.get("thinking")), plain_text_in(message.get("content"))
        self._thinking.append(thinking)
        self._heard.thinking(thinking)
        self._text.append(text)
        self._heard.text(text)
        for call in objects_in(message.get("tool_calls")):
            function = object_in(call.get("function"))
            arguments = compact_json(function.get("arguments") or {})
            self._calls.append(CallMade(text_in(call.get("id")), text_in(function.get("name")), arguments))
        if value.get("done") is True:
            self._end = value

    def answer(self) -> ModelAnswer:
        """Raises:
        ProviderError: the answer broke off.
        """
        end = self._end
        if end is None or end.get("done_reason") == "":
            raise ProviderError("Ollama's answer broke off before its end", reason="network")
        usage = UsageInfo(
            input_tokens=whole_number(end.get("prompt_eval_count")), output_tokens=whole_number(end.get("eval_count"))
        )
        self._tell_cut_prompt(usage.input_tokens)
        thinking, text = "".join(self._thinking), "".join(self._text)
        was_cut = end.get("done_reason") == "length"
        return ModelAnswer(
            said=(Said(text),) if text else (),
            calls=tuple(self._calls),
            stop=StopReason.MAX_TOKENS if was_cut else StopReason.END_TURN,
            usage=usage,
            native={"thinking": thinking} if thinking else None,
        )

    def _tell_cut_prompt(self, prompt_tokens: int | None) -> None:
        """Old servers cut a prompt that is too long from the front and say nothing; about half the window is left."""
        estimate, half = self._request.estimated_tokens, self._num_ctx // 2
        if prompt_tokens is None:
            return
        is_half = abs(prompt_tokens - half) <= 4 and estimate > half * 1.1
        is_far_below = self._num_ctx * 0.4 < prompt_tokens < estimate * 0.5
        if is_half or is_far_below:
            seen = f"the model saw {prompt_tokens} tokens of a prompt of about {estimate}"
            self._heard.show(notice("context_truncated", f"{seen}: the server cut it from the front"))


def malformed(error: HarnessError) -> HarnessError:
    """The same error, as one that may be repeated, where the server could not read its model's call."""
    if any(words in error.message for words in _MALFORMED):
        return MalformedAnswer(error.message, reason="request")
    return error


def _failure(value: JsonObject) -> HarnessError:
    """Some versions put the text into the member's name."""
    named = "; ".join(f"{name}: {told}" for name, told in value.items())
    body: JsonValue = value if "error" in value else {"error": named}
    return malformed(error_in_stream(body, "Ollama"))
