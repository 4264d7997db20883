"""Chat Completions: our words into a request, chunks of any server into an answer (pure).

Every oddity handled here was seen on a real server; `contract_tests/connectors/openai/` plays each of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in, text_in
from connectors._model_json import arguments_object, is_json, result_text, split_blocks
from connectors._text import without_surrogates
from connectors.openai.config import OpenAiConfig, Quirks
from connectors.openai.shared_json import EFFORTS, data_url, json_schema, usage_of
from harness.contract.content import ImageBlock
from harness.contract.options import ToolMode
from harness.contract.output import StopReason
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.errors import ProviderError
from harness.model_loop import (
    AssistantMessage,
    CallMade,
    Heard,
    ModelAnswer,
    ModelRequest,
    Said,
    ToolMessage,
    UserMessage,
    text_said,
)
from harness.turn.events import notice

_USAGE = ("prompt_tokens", "prompt_tokens_details", "completion_tokens", "completion_tokens_details")
_CHOICES = {ToolMode.NONE: "none", ToolMode.ANY: "required", ToolMode.ONE: "required"}


def request_body(request: ModelRequest, config: OpenAiConfig, quirks: Quirks) -> JsonObject:
    body: JsonObject = {
        "model": request.model,
        "messages": list(_messages(request, config, quirks)),
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": json.loads(tool.input_schema_json),
                },
            }
            for tool in request.tools
        ]
        if request.tool_mode in _CHOICES:
            body["tool_choice"] = _CHOICES[request.tool_mode]
        if request.tool_mode == ToolMode.ONE:
            body["parallel_tool_calls"] = False
    if request.max_output_tokens is not None:
        name = "max_completion_tokens" if quirks == "openai" else "max_tokens"
        body[name] = request.max_output_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.effort is not None:
        body["reasoning_effort"] = EFFORTS[request.effort]
    if request.output_schema_json is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": json_schema(request.output_schema_json)}
    return body | config.extra_body


def _messages(request: ModelRequest, config: OpenAiConfig, quirks: Quirks) -> Iterator[JsonObject]:
    if request.system:
        yield {"role": "system", "content": without_surrogates(request.system)}
    waiting: list[UserMessage] = []
    for message in request.messages:
        if isinstance(message, UserMessage):
            waiting.append(message)
            continue
        yield from _user(waiting)
        waiting = []
        if isinstance(message, AssistantMessage):
            yield _assistant(message, config, quirks)
        else:
            yield from _results(message)
    yield from _user(waiting)


def _user(messages: Sequence[UserMessage]) -> Iterator[JsonObject]:
    """Messages that follow each other as one: some templates want the roles to alternate."""
    if messages:
        text, images = split_blocks([block for message in messages for block in message.content])
        yield {"role": "user", "content": _content(text, images)}


def _content(text: str, images: Sequence[ImageBlock]) -> JsonValue:
    if not images:
        return text
    parts: list[JsonObject] = [{"type": "text", "text": text}] if text else []
    return parts + [{"type": "image_url", "image_url": {"url": data_url(image)}} for image in images]


def _assistant(message: AssistantMessage, config: OpenAiConfig, quirks: Quirks) -> JsonObject:
    text = without_surrogates(text_said(message.said))
    value: JsonObject = {"role": "assistant", "content": text or (None if message.calls else "")}
    if message.calls:
        value["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.tool_name, "arguments": _arguments(call, quirks)},
            }
            for call in message.calls
        ]
    if config.send_reasoning:
        value |= object_in(message.native)
    return value


def _arguments(call: CallMade, quirks: Quirks) -> str:
    """Local servers parse what their model wrote; text that is no JSON would make every later request fail."""
    if quirks == "openai" or is_json(call.arguments_json):
        return call.arguments_json
    return compact_json(arguments_object(call.arguments_json))


def _results(message: ToolMessage) -> Iterator[JsonObject]:
    """One message per call, right behind the calls; images, which these cannot hold, in a user message after them."""
    parts: list[JsonObject] = []
    for outcome in message.results:
        text, images = split_blocks(outcome.content)
        yield {"role": "tool", "tool_call_id": outcome.call_id, "content": result_text(outcome, text)}
        if images:
            label = f"Images of the result of '{outcome.tool_name}' ({outcome.call_id}):"
            parts.append({"type": "text", "text": label})
            parts.extend({"type": "image_url", "image_url": {"url": data_url(image)}} for image in images)
    if parts:
        yield {"role": "user", "content": parts}


@dataclass(slots=True)
class _Call:
    id: str = ""
    name: str = ""
    arguments: str = ""


class ChatReader:
    """Puts the chunks of one answer together. `heard` gets what is to be shown while it comes."""

    def __init__(self, heard: Heard, max_output_tokens: int | None) -> None:
        self._heard = heard
        self._max_output_tokens = max_output_tokens
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._by_index: dict[JsonValue, _Call] = {}
        self._finish = ""
        self._refused = False
        self._is_done = False
        self._usage: UsageInfo | None = None

    def receive(self, chunk: JsonObject) -> None:
        if chunk.get("usage") is not None:
            self._usage = usage_of(chunk["usage"], names=_USAGE)
        for choice in objects_in(chunk.get("choices"))[:1]:
            self._receive_delta(object_in(choice.get("delta")))
            self._finish = text_in(choice.get("finish_reason")) or self._finish

    def done(self) -> None:
        """The server said that this was all."""
        self._is_done = True

    def answer(self) -> ModelAnswer:
        """Raises:
        ProviderError: the stream ended before the answer did.
        """
        if not self._finish and not (self._is_done and (self._calls or self._text)):
            raise ProviderError("the server's answer broke off before its end", reason="network")
        text = "".join(self._text)
        calls, was_cut = self._whole_calls()
        reasoning: JsonValue = {"reasoning_content": "".join(self._reasoning)} if self._reasoning else None
        return ModelAnswer(
            said=(Said(text),) if text else (),
            calls=calls,
            stop=self._stop(was_cut),
            usage=self._usage,
            native=reasoning,
        )

    def _receive_delta(self, delta: JsonObject) -> None:
        thinking = plain_text_in(delta.get("reasoning_content")) or plain_text_in(delta.get("reasoning"))
        self._reasoning.extend([thinking] if thinking else [])
        self._heard.thinking(thinking)
        refusal = plain_text_in(delta.get("refusal"))
        self._refused = self._refused or bool(refusal)
        text = plain_text_in(delta.get("content")) + refusal
        self._text.extend([text] if text else [])
        self._heard.text(text)
        for entry in objects_in(delta.get("tool_calls")):
            self._receive_call(entry)

    def _receive_call(self, entry: JsonObject) -> None:
        function = object_in(entry.get("function"))
        call_id, name = text_in(entry.get("id")), text_in(function.get("name"))
        arguments = function.get("arguments")
        piece = arguments if isinstance(arguments, str) else "" if arguments is None else compact_json(arguments)
        index = entry.get("index")
        call = self._by_index.get(index) if index is not None else self._calls[-1] if self._calls else None
        if call is None or _begins_new_call(call, call_id, name, piece):
            call = _Call()
            self._calls.append(call)
            self._by_index[index] = call
        # an id or a name that comes again, or another id without a name, belongs to the call that is there
        call.id = call.id or call_id
        call.name = call.name or name
        call.arguments += piece

    def _whole_calls(self) -> tuple[tuple[CallMade, ...], bool]:
        """The calls that may be run, and whether the last one was cut off."""
        named = [call for call in self._calls if call.name]
        if len(named) < len(self._calls):
            self._heard.show(notice("nameless_call", "the server sent a tool call without a name; it is left out"))
        at_limit = self._finish == "length" or (
            self._max_output_tokens is not None
            and self._usage is not None
            and (self._usage.output_tokens or 0) >= self._max_output_tokens
        )
        was_cut = bool(named) and at_limit and not is_json(named[-1].arguments)
        kept = named[:-1] if was_cut else named
        return tuple(CallMade(call.id, call.name, call.arguments.strip() or "{}") for call in kept), was_cut

    def _stop(self, was_cut: bool) -> StopReason:
        if was_cut or self._finish == "length":
            return StopReason.MAX_TOKENS
        refused = self._refused or self._finish == "content_filter"
        return StopReason.REFUSAL if refused else StopReason.END_TURN


def _begins_new_call(call: _Call, call_id: str, name: str, piece: str) -> bool:
    """Servers that do not count indices up: another id together with a name, or a second whole object."""
    if not name:
        return False
    if call_id and call.id and call_id != call.id:
        return True
    return piece.lstrip().startswith("{") and bool(call.arguments.strip()) and is_json(call.arguments)
