"""OpenAI Chat Completions: `POST /v1/chat/completions`, streaming and not, as OpenAI speaks it or as others do.

A model name chooses what real servers get wrong: `"model": "any+missing_id+no_done"`. Each quirk was seen in the wild;
the strings are those of `QUIRKS`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from pydantic import JsonValue

from harness.scripted_model.dialect import ModelAnswer, ModelRequest, PastCall, Reply
from harness.scripted_model.json_parts import SSE_HEADERS, halves, json_reply, objects, retry_headers, route, text_in
from harness.scripted_model.script import ScriptedError, ScriptedUsage

QUIRKS = frozenset(
    {
        "same_index",  # every whole call at index 0
        "missing_index",
        "index_from_1",
        "missing_id",
        "empty_id",
        "nameless_entry",  # an entry with an empty id and no function
        "new_id_each_chunk",
        "repeated_id_and_name",
        "empty_name_later",
        "empty_arguments",
        "null_arguments",
        "object_arguments",
        "finish_stop",  # "stop" although there are calls
        "finish_null",
        "no_done",
        "cut_after_finish",  # neither usage nor [DONE]
        "null_choices",
        "null_delta",
        "reasoning_content",
        "reasoning",
        "error_mid_stream",
        "error_string",
    }
)
_FINISH = {"max_tokens": "length", "refusal": "content_filter"}
Delta: TypeAlias = Mapping[str, JsonValue]


class OpenAiChatDialect:
    """Messages in, a completion or chunks out."""

    call_id_prefix = "call_"
    message_id_prefix = "chatcmpl-"
    stream_headers: Mapping[str, str] = SSE_HEADERS

    def speaks(self, path: str) -> bool:
        return route(path).endswith(("/chat/completions", "/v1/models"))

    def lookup(self, path: str) -> Reply | None:
        if not route(path).endswith("/v1/models"):
            return None
        model: JsonValue = {"id": "scripted", "object": "model", "created": 1_700_000_000, "owned_by": "scripted"}
        return json_reply({"object": "list", "data": [model]})

    def side_reply(self, path: str, body: Mapping[str, JsonValue]) -> Reply | None:
        """What the API refuses."""
        problem = _problem(body)
        return None if problem is None else self.error(ScriptedError(status=400, message=problem))

    def read(self, path: str, body: Mapping[str, JsonValue]) -> ModelRequest:
        functions = [tool.get("function") for tool in objects(body.get("tools"))]
        tools = tuple(str(function.get("name")) for function in functions if isinstance(function, dict))
        return ModelRequest(stream=body.get("stream") is True, tools=tools, past_calls=tuple(_past_calls(body)))

    def reply(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Reply:
        message: dict[str, JsonValue] = {"role": "assistant", "content": "".join(answer.text) if answer.text else None}
        calls: list[JsonValue] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_json}}
            for call in answer.calls
        ]
        if calls:
            message["tool_calls"] = calls
        choices: list[JsonValue] = [{"index": 0, "message": message, "finish_reason": _finish_reason(answer, set())}]
        whole = _chunk(body, answer, choices, kind="chat.completion")
        return json_reply({**whole, "usage": _wire_usage(answer.usage)})

    def stream(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        quirks = _quirks(body)
        for number, delta in enumerate(_deltas(answer, quirks)):
            if "null_choices" in quirks and number == 1:
                yield _frame(_chunk(body, answer, None))
            if "null_delta" in quirks and number == 1:
                yield _frame(_chunk(body, answer, [{"index": 0, "delta": None, "finish_reason": None}]))
            yield _frame(_chunk(body, answer, [{"index": 0, "delta": {**delta}, "finish_reason": None}]))

    def stream_end(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        quirks = _quirks(body)
        if "error_mid_stream" in quirks:
            yield _frame({"error": {"code": 500, "message": "the server broke", "type": "server_error"}})
            return
        if "error_string" in quirks:
            yield _frame({"error": "the server broke"})
            return
        reason = _finish_reason(answer, quirks)
        if reason is not None:
            yield _frame(_chunk(body, answer, [{"index": 0, "delta": {}, "finish_reason": reason}]))
        if "cut_after_finish" in quirks:
            return
        options = body.get("stream_options")
        if isinstance(options, dict) and options.get("include_usage") is True:
            yield _frame({**_chunk(body, answer, []), "usage": _wire_usage(answer.usage)})
        if "no_done" not in quirks:
            yield b"data: [DONE]\n\n"

    def error(self, error: ScriptedError) -> Reply:
        headers = retry_headers(error.retry_after)
        kind = "invalid_request_error" if error.status < 500 else "server_error"
        value: JsonValue = {"error": {"message": error.message, "type": kind, "param": None, "code": None}}
        return json_reply(value, status=error.status, headers=headers)


def _quirks(body: Mapping[str, JsonValue]) -> set[str]:
    return set(str(body.get("model", "")).split("+")[1:]) & QUIRKS


def _deltas(answer: ModelAnswer, quirks: set[str]) -> Iterator[Delta]:
    yield {"role": "assistant", "content": None}
    member = "reasoning" if "reasoning" in quirks else "reasoning_content"
    yield from ({member: piece} for piece in answer.thinking)
    yield from ({"refusal" if answer.stop == "refusal" else "content": piece} for piece in answer.text)
    for number in range(len(answer.calls)):
        for entry in _call_entries(answer, number, quirks):
            yield {"tool_calls": [{**entry}]}
    if "nameless_entry" in quirks:
        yield {"tool_calls": [{"index": len(answer.calls), "id": "", "type": "function"}]}


def _call_entries(answer: ModelAnswer, number: int, quirks: set[str]) -> Iterator[Delta]:
    """One call as the fragments of a stream."""
    call = answer.calls[number]
    pieces: list[JsonValue] = ["", *halves(call.arguments_json)]
    if quirks & {"same_index", "missing_index"}:
        pieces = [call.arguments_json]  # these servers send whole calls
    if "empty_arguments" in quirks:
        pieces = [""]
    if "null_arguments" in quirks:
        pieces = [None]
    if "object_arguments" in quirks:
        pieces = [json.loads(call.arguments_json)]
    for place, piece in enumerate(pieces):
        function: dict[str, JsonValue] = {"arguments": piece}
        entry: dict[str, JsonValue] = {"index": number + 1 if "index_from_1" in quirks else number}
        if place == 0 or "repeated_id_and_name" in quirks:
            entry |= {"id": call.call_id, "type": "function"}
            function["name"] = call.name
        elif "empty_name_later" in quirks:
            entry["id"], function["name"] = "", ""
        elif "new_id_each_chunk" in quirks:
            entry["id"] = f"{call.call_id}-{place}"
        if "same_index" in quirks:
            entry["index"] = 0
        if "missing_index" in quirks:
            del entry["index"]
        if "missing_id" in quirks:
            entry.pop("id", None)
        if "empty_id" in quirks:
            entry["id"] = ""
        yield {**entry, "function": function}


def _finish_reason(answer: ModelAnswer, quirks: set[str]) -> str | None:
    if "finish_null" in quirks:
        return None
    if answer.stop is not None:
        return _FINISH.get(answer.stop, answer.stop)
    return "tool_calls" if answer.calls and "finish_stop" not in quirks else "stop"


def _chunk(
    body: Mapping[str, JsonValue],
    answer: ModelAnswer,
    choices: list[JsonValue] | None,
    *,
    kind: str = "chat.completion.chunk",
) -> Delta:
    head: Delta = {"id": answer.message_id, "object": kind, "created": 1_700_000_000, "model": body.get("model")}
    return {**head, "choices": choices}


def _frame(value: Mapping[str, JsonValue]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _wire_usage(usage: ScriptedUsage) -> JsonValue:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _past_calls(body: Mapping[str, JsonValue]) -> Iterator[PastCall]:
    messages = objects(body.get("messages"))
    results = {m.get("tool_call_id"): text_in(m.get("content"), "text") for m in messages if m.get("role") == "tool"}
    for message in messages:
        for call in objects(message.get("tool_calls")):
            function = call.get("function")
            name = str(function.get("name")) if isinstance(function, dict) else ""
            result = results.get(call.get("id"))
            yield PastCall(str(call.get("id")), name, result, bool(result and result.startswith("Error: ")))


def _problem(body: Mapping[str, JsonValue]) -> str | None:
    """Why the API would refuse this history: every call needs its one result right behind it."""
    awaited: list[JsonValue] = []
    for message in objects(body.get("messages")):
        if message.get("role") == "tool":
            if message.get("tool_call_id") not in awaited:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            awaited.remove(message.get("tool_call_id"))
            continue
        if awaited:
            break
        awaited = [call.get("id") for call in objects(message.get("tool_calls"))]
    if awaited:
        return (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {awaited[0]}"
        )
    return None
