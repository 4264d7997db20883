"""Our words into chat requests of the embedded model, each held to a schema where it must fit one (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from connectors._json import JsonObject, object_in, objects_in, plain_text_in
from connectors._model_json import result_text, split_blocks, whole_number
from connectors._text import without_surrogates
from harness.contract.content import ContentBlock
from harness.contract.tools import ToolDescriptor
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.errors import ContentNotSupported, HarnessError
from harness.model_loop import AssistantMessage, ModelRequest, ToolMessage, UserMessage, text_said
from harness.model_loop.provider_errors import error_in_stream

NO_TOOL = "none"
MAX_STRING = 120
MAX_ITEMS = 4
MAX_ARGUMENT_TOKENS = 400
MAX_ANSWER_TOKENS = 512
PROVIDER = "the embedded model"


def last_words(request: ModelRequest) -> str:
    """What the user said last."""
    said = [message for message in request.messages if isinstance(message, UserMessage)]
    return _text(said[-1].content) if said else ""


def rounds_so_far(request: ModelRequest) -> int:
    """Rounds of calls since the user's last message."""
    rounds = 0
    for message in reversed(request.messages):
        if isinstance(message, UserMessage):
            break
        rounds += isinstance(message, ToolMessage)
    return rounds


def choice_request(request: ModelRequest, tools: Sequence[ToolDescriptor], *, may_decline: bool) -> JsonObject:
    """Which of these tools, or none."""
    names = [tool.name for tool in tools]
    listed = "\n".join(f"- {tool.name}: {tool.description}" for tool in tools)
    none = f"\n- {NO_TOOL}: no tool is needed, answer in words" if may_decline else ""
    system = f"Choose the tool that answers the user's last message. Tools:\n{listed}{none}"
    schema: JsonObject = {
        "type": "object",
        "properties": {"tool": {"enum": [*names, NO_TOOL] if may_decline else names}},
        "required": ["tool"],
        "additionalProperties": False,
    }
    return _held_to(schema, _messages(request, system), max_tokens=100)


def arguments_request(request: ModelRequest, tool: ToolDescriptor) -> JsonObject:
    """The arguments of the chosen tool; strings and lists are bounded, or a small model would never end them."""
    schema = cast(JsonObject, json.loads(tool.input_schema_json))
    system = (
        f"Fill in the arguments of the tool '{tool.name}' ({tool.description}) from the user's last message, as JSON."
    )
    return _held_to(bounded(schema), _messages(request, system), max_tokens=MAX_ARGUMENT_TOKENS)


def answer_request(request: ModelRequest) -> JsonObject:
    """The answer in words, or in the wanted form."""
    limit = request.max_output_tokens or MAX_ANSWER_TOKENS
    body: JsonObject = {"messages": _messages(request, request.system), "max_tokens": limit}
    if request.output_schema_json is not None:
        schema = cast(JsonObject, json.loads(request.output_schema_json))
        body = _held_to(bounded(schema), body["messages"], max_tokens=limit)
    return body | {"temperature": request.temperature if request.temperature is not None else 0.2}


def bounded(schema: JsonObject) -> JsonObject:
    """The same schema with an end to every string and list that had none."""
    kind = schema.get("type")
    limited = {name: _bounded_member(name, value) for name, value in schema.items()}
    if kind == "string" and not schema.keys() & {"maxLength", "enum", "const", "pattern", "format"}:
        limited["maxLength"] = MAX_STRING
    if kind == "array" and "maxItems" not in schema:
        limited["maxItems"] = max(MAX_ITEMS, whole_number(schema.get("minItems")) or 0)
    return limited


def _bounded_member(name: str, value: JsonValue) -> JsonValue:
    if name in ("properties", "$defs", "definitions"):
        return {member: bounded(object_in(one)) for member, one in object_in(value).items()}
    if name in ("items", "additionalProperties") and isinstance(value, dict):
        return bounded(object_in(cast(JsonValue, value)))
    if name == "pattern" and isinstance(value, str):
        return value.replace(r"\d", "[0-9]")  # the grammar knows no classes by letter
    if name in ("anyOf", "oneOf", "allOf"):
        return [bounded(one) for one in objects_in(value)]
    return value


def _held_to(schema: JsonObject, messages: JsonValue, *, max_tokens: int) -> JsonObject:
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    return {"messages": messages, "response_format": form, "temperature": 0, "max_tokens": max_tokens}


def _messages(request: ModelRequest, system: str) -> list[JsonObject]:
    """The model's template knows no tools: a call and its result are told in words."""
    told: list[JsonObject] = [{"role": "system", "content": without_surrogates(system)}] if system else []
    for message in request.messages:
        match message:
            case UserMessage(content):
                _add(told, "user", _text(content))
            case AssistantMessage(said, calls):
                named = [f"I call {call.tool_name} with {call.arguments_json}." for call in calls]
                _add(told, "assistant", "\n".join([text_said(said), *named]).strip())
            case ToolMessage(results):
                for outcome in results:
                    text = result_text(outcome, _text(outcome.content))
                    _add(told, "user", f"Result of {outcome.tool_name}: {text}")
    return told


def _add(told: list[JsonObject], role: str, text: str) -> None:
    if told and told[-1]["role"] == role:
        told[-1]["content"] = f"{told[-1]['content']}\n{text}"
    else:
        told.append({"role": role, "content": text})


def _text(content: Sequence[ContentBlock]) -> str:
    text, images = split_blocks(content)
    if images:
        raise ContentNotSupported("the embedded model sees no images")
    return text


class Spoken:
    """What the chunks of one generation add up to."""

    def __init__(self) -> None:
        self.text = ""
        self.finish = ""
        self.usage: UsageInfo | None = None
        self.error: HarnessError | None = None

    def receive(self, chunk: JsonValue) -> str:
        """The piece of text that this chunk adds."""
        value = object_in(chunk)
        if "error" in value:
            self.error = error_in_stream(value, PROVIDER)
            return ""
        used = object_in(value.get("usage"))
        if used:
            self.usage = UsageInfo(
                input_tokens=whole_number(used.get("prompt_tokens")),
                output_tokens=whole_number(used.get("completion_tokens")),
            )
        piece = ""
        for choice in objects_in(value.get("choices"))[:1]:
            part = object_in(choice.get("delta")) or object_in(choice.get("message"))
            piece = plain_text_in(part.get("content"))
            self.finish = plain_text_in(choice.get("finish_reason")) or self.finish
        self.text += piece
        return piece
