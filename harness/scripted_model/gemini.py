"""The Gemini API: `POST /v1beta/models/<model>:generateContent`, `:streamGenerateContent` (SSE) and `:countTokens`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from harness.scripted_model.dialect import ModelAnswer, ModelRequest, PastCall, Reply
from harness.scripted_model.json_parts import SSE_HEADERS, json_reply, objects, retry_headers, route, with_raw_member
from harness.scripted_model.script import ScriptedError, ScriptedUsage

_FINISH = {"max_tokens": "MAX_TOKENS", "refusal": "SAFETY", "end_turn": "STOP", "tool_use": "STOP"}
_STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


class GeminiDialect:
    """Contents in, candidates out; a stream has one part per event."""

    call_id_prefix = "call_"
    message_id_prefix = "gemini_"
    stream_headers: Mapping[str, str] = SSE_HEADERS

    def speaks(self, path: str) -> bool:
        return route(path).endswith((":generateContent", ":streamGenerateContent", ":countTokens"))

    def lookup(self, path: str) -> Reply | None:
        return None

    def side_reply(self, path: str, body: Mapping[str, JsonValue]) -> Reply | None:
        if route(path).endswith(":countTokens"):
            return json_reply({"totalTokens": max(1, len(json.dumps(body)) // 4)})
        return None

    def read(self, path: str, body: Mapping[str, JsonValue]) -> ModelRequest:
        names = [
            str(function.get("name"))
            for tool in objects(body.get("tools"))
            for function in objects(tool.get("functionDeclarations"))
        ]
        stream = route(path).endswith(":streamGenerateContent")
        return ModelRequest(stream=stream, tools=tuple(names), past_calls=tuple(_past_calls(body)))

    def reply(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Reply:
        return Reply(200, _candidate(answer, [*_parts(answer)], is_last=True), {"content-type": "application/json"})

    def stream(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        for part in _parts(answer):
            yield _frame(_candidate(answer, [part]))

    def stream_end(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        yield _frame(_candidate(answer, ['{"text": ""}'], is_last=True))

    def error(self, error: ScriptedError) -> Reply:
        status = _STATUS.get(error.status, "INTERNAL")
        value: JsonValue = {"error": {"code": error.status, "message": error.message, "status": status}}
        return json_reply(value, status=error.status, headers=retry_headers(error.retry_after))


def _parts(answer: ModelAnswer) -> Iterator[str]:
    yield from (json.dumps({"text": piece, "thought": True}) for piece in answer.thinking)
    yield from (json.dumps({"text": piece}) for piece in answer.text)
    for call in answer.calls:
        function = with_raw_member({"id": call.call_id, "name": call.name}, "args", call.arguments_json)
        yield with_raw_member({"thoughtSignature": "c2NyaXB0ZWQ="}, "functionCall", function)


def _candidate(answer: ModelAnswer, parts: list[str], *, is_last: bool = False) -> bytes:
    content = with_raw_member({"role": "model"}, "parts", f"[{', '.join(parts)}]")
    head: dict[str, JsonValue] = {"index": 0}
    if is_last:
        head["finishReason"] = _FINISH.get(answer.stop or "end_turn", answer.stop)
    candidate = with_raw_member(head, "content", content)
    around: dict[str, JsonValue] = {"responseId": answer.message_id, "modelVersion": "scripted"}
    if is_last:
        around["usageMetadata"] = _wire_usage(answer.usage)
    return with_raw_member(around, "candidates", f"[{candidate}]").encode()


def _wire_usage(usage: ScriptedUsage) -> JsonValue:
    return {
        "promptTokenCount": usage.input_tokens,
        "cachedContentTokenCount": usage.cached_input_tokens,
        "candidatesTokenCount": usage.output_tokens,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
    }


def _frame(data: bytes) -> bytes:
    return b"data: " + data + b"\r\n\r\n"


def _past_calls(body: Mapping[str, JsonValue]) -> Iterator[PastCall]:
    """By id where the client sends ids back, else the n-th call of a name has the n-th response of that name."""
    parts = [part for content in objects(body.get("contents")) for part in objects(content.get("parts"))]
    responses = [one for part in parts if isinstance(one := part.get("functionResponse"), dict)]
    for part in parts:
        call = part.get("functionCall")
        if not isinstance(call, dict):
            continue
        found = next((one for one in responses if _answers(one, call)), None)
        if found is None:
            yield PastCall(str(call.get("id", "")), str(call.get("name")))
            continue
        responses.remove(found)
        response = found.get("response")
        text, is_error = _text(response)
        yield PastCall(str(call.get("id", "")), str(call.get("name")), text, is_error)


def _answers(response: Mapping[str, JsonValue], call: Mapping[str, JsonValue]) -> bool:
    if call.get("id") is not None and response.get("id") is not None:
        return response.get("id") == call.get("id")
    return response.get("name") == call.get("name")


def _text(response: JsonValue) -> tuple[str, bool]:
    if isinstance(response, dict):
        for member in ("error", "output"):
            if member in response:
                value = response[member]
                return (value if isinstance(value, str) else json.dumps(value)), member == "error"
    return json.dumps(response), False
