"""The Anthropic Messages API: `POST /v1/messages`, streaming and not, and `count_tokens`.

Event order and members as the API's documentation has them; Claude Code 2.1.332 accepts every one of them
(`contract_tests/scripted_model/test_claude_cli.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from harness.scripted_model.dialect import ModelAnswer, ModelRequest, PastCall, Reply
from harness.scripted_model.json_parts import (
    JSON_HEADERS,
    SSE_HEADERS,
    json_reply,
    objects,
    retry_headers,
    route,
    with_raw_member,
)
from harness.scripted_model.script import ScriptedError, ScriptedUsage
from harness.wire.anthropic import error_type

_SIGNATURE = "c2NyaXB0ZWQ="


class AnthropicDialect:
    """Messages in, messages or server-sent events out."""

    call_id_prefix = "toolu_"
    message_id_prefix = "msg_"
    stream_headers: Mapping[str, str] = SSE_HEADERS

    def speaks(self, path: str) -> bool:
        return route(path) in ("/v1/messages", "/v1/messages/count_tokens")

    def lookup(self, path: str) -> Reply | None:
        return None

    def side_reply(self, path: str, body: Mapping[str, JsonValue]) -> Reply | None:
        """Token counts, and the probes that a CLI makes beside its main loop.

        A probe asks for one token: the CLI does so to see whether a model exists, with the main model too.
        """
        if route(path) == "/v1/messages/count_tokens":
            # Four characters a token, as a rule of thumb; nobody relies on the figure.
            return json_reply({"input_tokens": max(1, len(json.dumps(body)) // 4)})
        if body.get("max_tokens") == 1:
            answer = ModelAnswer("msg_side", (), ("ok",), (), "max_tokens", ScriptedUsage(output_tokens=1))
            return self.reply(body, answer)
        problem = _problem(body)
        return None if problem is None else self.error(ScriptedError(status=400, message=problem))

    def read(self, path: str, body: Mapping[str, JsonValue]) -> ModelRequest:
        tools = tuple(str(tool["name"]) for tool in objects(body.get("tools")) if "name" in tool)
        return ModelRequest(stream=body.get("stream") is True, tools=tools, past_calls=tuple(_past_calls(body)))

    def reply(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Reply:
        blocks: list[str] = []
        if answer.thinking:
            thinking = "".join(answer.thinking)
            blocks.append(json.dumps({"type": "thinking", "thinking": thinking, "signature": _SIGNATURE}))
        if answer.text:
            blocks.append(json.dumps({"type": "text", "text": "".join(answer.text)}))
        for call in answer.calls:
            # Spliced as text: a parser would round the numbers that the script wrote.
            block = {"type": "tool_use", "id": call.call_id, "name": call.name}
            blocks.append(with_raw_member(block, "input", call.arguments_json))
        message = _message(body, answer) | {
            "stop_reason": _stop_reason(answer),
            "stop_sequence": None,
            "usage": _wire_usage(answer.usage),
        }
        text = with_raw_member(message, "content", f"[{', '.join(blocks)}]")
        return Reply(200, text.encode(), {**JSON_HEADERS, "request-id": _request_id(answer)})

    def stream(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        usage = _wire_usage(answer.usage) | {"output_tokens": 1}
        message = _message(body, answer) | {"content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        yield _event("message_start", message=message)
        blocks = list(_blocks(answer))
        for index, (start, deltas) in enumerate(blocks):
            yield _event("content_block_start", index=index, content_block=start)
            for delta in deltas:
                yield _event("content_block_delta", index=index, delta=delta)
            if index < len(blocks) - 1:
                yield _event("content_block_stop", index=index)

    def stream_end(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        blocks = len(list(_blocks(answer)))
        if blocks:
            yield _event("content_block_stop", index=blocks - 1)
        delta: dict[str, JsonValue] = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage=_wire_usage(answer.usage))
        yield _event("message_stop")

    def error(self, error: ScriptedError) -> Reply:
        kind = error_type(error.status)
        headers = retry_headers(error.retry_after)
        return json_reply(
            {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": "req_scripted"},
            status=error.status,
            headers=headers,
        )


def _problem(body: Mapping[str, JsonValue]) -> str | None:
    """Why the API would refuse this history: every call needs its one result in the message right behind it."""
    awaited: list[str] = []
    for number, message in enumerate(objects(body.get("messages"))):
        blocks = objects(message.get("content"))
        results = [str(block.get("tool_use_id")) for block in blocks if block.get("type") == "tool_result"]
        if sorted(results) != sorted(awaited):
            return (
                f"messages.{number}: `tool_use` ids were found without `tool_result` blocks immediately after, or "
                f"the other way round: {', '.join(sorted({*results} ^ {*awaited})) or 'one twice'}"
            )
        awaited = [str(block.get("id")) for block in blocks if block.get("type") == "tool_use"]
    return f"`tool_use` ids were found without `tool_result` blocks: {', '.join(awaited)}" if awaited else None


def _past_calls(body: Mapping[str, JsonValue]) -> Iterator[PastCall]:
    """Every `tool_use` of the history with the result that a later message brought."""
    blocks = [block for message in objects(body.get("messages")) for block in objects(message.get("content"))]
    # Of two results for one id the model goes by the last.
    results = {block.get("tool_use_id"): block for block in blocks if block.get("type") == "tool_result"}
    for block in blocks:
        if block.get("type") != "tool_use":
            continue
        call_id, name = str(block.get("id")), str(block.get("name"))
        result = results.get(call_id)
        if result is None:
            yield PastCall(call_id, name)
        else:
            yield PastCall(call_id, name, _text(result.get("content")), result.get("is_error") is True)


def _text(content: JsonValue | None) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in objects(content) if block.get("type") == "text")


def _blocks(answer: ModelAnswer) -> Iterator[tuple[JsonValue, list[JsonValue]]]:
    """Each content block as its empty start and its deltas."""
    if answer.thinking:
        deltas: list[JsonValue] = [{"type": "thinking_delta", "thinking": piece} for piece in answer.thinking]
        deltas.append({"type": "signature_delta", "signature": _SIGNATURE})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in answer.text]
    for call in answer.calls:
        # The API sends arguments in pieces that are no JSON by themselves, the first one empty.
        middle = len(call.arguments_json) // 2
        pieces = ("", call.arguments_json[:middle], call.arguments_json[middle:])
        start: JsonValue = {"type": "tool_use", "id": call.call_id, "name": call.name, "input": {}}
        yield start, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _message(body: Mapping[str, JsonValue], answer: ModelAnswer) -> dict[str, JsonValue]:
    return {"id": answer.message_id, "type": "message", "role": "assistant", "model": body.get("model")}


def _stop_reason(answer: ModelAnswer) -> str:
    return answer.stop or ("tool_use" if answer.calls else "end_turn")


def _wire_usage(usage: ScriptedUsage) -> dict[str, JsonValue]:
    """The API counts cached and cache-written tokens beside `input_tokens`, the contract within."""
    return {
        "input_tokens": usage.input_tokens - usage.cached_input_tokens - usage.cache_write_tokens,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cached_input_tokens,
        "output_tokens": usage.output_tokens,
    }


def _request_id(answer: ModelAnswer) -> str:
    return f"req_{answer.message_id.removeprefix('msg_')}"


def _event(kind: str, **members: JsonValue | Mapping[str, JsonValue]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()
