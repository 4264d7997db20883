"""The OpenAI Responses API: `POST /v1/responses`, streaming and not.

Strict where the API is: a call without its output, an output without its call and a call without the reasoning it
came with are 400, and take no entry. Stateless: `previous_response_id` is accepted and nothing is looked up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from harness.scripted_model.dialect import ModelAnswer, ModelCall, ModelRequest, PastCall, Reply
from harness.scripted_model.json_parts import SSE_HEADERS, halves, json_reply, objects, retry_headers, route, text_in
from harness.scripted_model.script import ScriptedError, ScriptedUsage

_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_WITH_REASONING = "_r"
"""Ends the item id of a call that came with reasoning, so that its loss is noticed."""


class OpenAiResponsesDialect:
    """Items in, items or events out."""

    call_id_prefix = "call_"
    message_id_prefix = "resp_"
    stream_headers: Mapping[str, str] = SSE_HEADERS

    def speaks(self, path: str) -> bool:
        return route(path).endswith("/responses")

    def lookup(self, path: str) -> Reply | None:
        return None

    def side_reply(self, path: str, body: Mapping[str, JsonValue]) -> Reply | None:
        """What the API refuses."""
        problem = _problem(body)
        return None if problem is None else self.error(ScriptedError(status=400, message=problem))

    def read(self, path: str, body: Mapping[str, JsonValue]) -> ModelRequest:
        return ModelRequest(
            stream=body.get("stream") is True, tools=tuple(_namespaces(body)), past_calls=tuple(_past_calls(body))
        )

    def reply(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Reply:
        return json_reply(_response(body, answer, _items(body, answer)), headers={"x-request-id": answer.message_id})

    def stream(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        yield from _frames(body, answer)[: -_frames_at_end(answer)]

    def stream_end(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        yield from _frames(body, answer)[-_frames_at_end(answer) :]

    def error(self, error: ScriptedError) -> Reply:
        kind = _ERROR_TYPES.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
        code = "rate_limit_exceeded" if error.status == 429 else None
        value: JsonValue = {"error": {"message": error.message, "type": kind, "param": None, "code": code}}
        return json_reply(value, status=error.status, headers=retry_headers(error.retry_after))


def _frames(body: Mapping[str, JsonValue], answer: ModelAnswer) -> list[bytes]:
    return [
        f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode()
        for number, event in enumerate(_events(body, answer))
    ]


def _frames_at_end(answer: ModelAnswer) -> int:
    """The end of the last item and of the response."""
    return 2 if answer.thinking or answer.text or answer.calls else 1


def _events(body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[Mapping[str, JsonValue]]:
    begun = _response(body, answer, []) | {"status": "in_progress", "usage": None, "incomplete_details": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    items = _items(body, answer)
    for index, item in enumerate(items):
        where: dict[str, JsonValue] = {"item_id": item["id"], "output_index": index}
        yield {"type": "response.output_item.added", "output_index": index, "item": _empty(item)}
        match item["type"]:
            case "reasoning":
                yield from _summary_events(where, answer)
            case "message":
                yield from _text_events(where, answer)
            case _:
                for piece in halves(str(item["arguments"])):
                    yield {"type": "response.function_call_arguments.delta", **where, "delta": piece}
                done = "response.function_call_arguments.done"
                yield {"type": done, **where, "arguments": item["arguments"]}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    whole = _response(body, answer, items)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _empty(item: Mapping[str, JsonValue]) -> JsonValue:
    match item["type"]:
        case "reasoning":
            return {**item, "summary": []}
        case "message":
            return {**item, "status": "in_progress", "content": []}
        case _:
            return {**item, "status": "in_progress", "arguments": ""}


def _summary_events(where: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[Mapping[str, JsonValue]]:
    place: dict[str, JsonValue] = {**where, "summary_index": 0}
    part = {"type": "summary_text", "text": ""}
    yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part}}
    for piece in answer.thinking:
        yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
    text = "".join(answer.thinking)
    yield {"type": "response.reasoning_summary_text.done", **place, "text": text}
    yield {"type": "response.reasoning_summary_part.done", **place, "part": {**part, "text": text}}


def _text_events(where: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[Mapping[str, JsonValue]]:
    place: dict[str, JsonValue] = {**where, "content_index": 0}
    kind, member = ("refusal", "refusal") if answer.stop == "refusal" else ("output_text", "text")
    part = _text_part(answer)
    yield {"type": "response.content_part.added", **place, "part": {**part, member: ""}}
    extra: dict[str, JsonValue] = {} if kind == "refusal" else {"logprobs": []}
    for piece in answer.text:
        yield {"type": f"response.{kind}.delta", **place, "delta": piece, **extra}
    yield {"type": f"response.{kind}.done", **place, member: "".join(answer.text), **extra}
    yield {"type": "response.content_part.done", **place, "part": part}


def _text_part(answer: ModelAnswer) -> dict[str, JsonValue]:
    text = "".join(answer.text)
    if answer.stop == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _items(body: Mapping[str, JsonValue], answer: ModelAnswer) -> list[dict[str, JsonValue]]:
    stem = answer.message_id.removeprefix("resp_")
    items: list[dict[str, JsonValue]] = []
    if answer.thinking:
        summary: JsonValue = [{"type": "summary_text", "text": "".join(answer.thinking)}]
        items.append({"id": f"rs_{stem}", "type": "reasoning", "summary": summary, "encrypted_content": f"enc-{stem}"})
    if answer.text:
        content: JsonValue = [_text_part(answer)]
        items.append(
            {"id": f"msg_{stem}", "type": "message", "status": "completed", "role": "assistant", "content": content}
        )
    namespaces = _namespaces(body)
    return items + [_call_item(call, answer, namespaces) for call in answer.calls]


def _call_item(call: ModelCall, answer: ModelAnswer, namespaces: Mapping[str, str | None]) -> dict[str, JsonValue]:
    item: dict[str, JsonValue] = {
        "id": f"fc_{call.call_id}{_WITH_REASONING if answer.thinking else ''}",
        "type": "function_call",
        "status": "incomplete" if answer.stop == "max_tokens" else "completed",
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments_json,
    }
    namespace = namespaces.get(call.name)
    return item | {"namespace": namespace} if namespace is not None else item


def _response(
    body: Mapping[str, JsonValue], answer: ModelAnswer, items: list[dict[str, JsonValue]]
) -> dict[str, JsonValue]:
    reasons = {"max_tokens": "max_output_tokens", "content_filter": "content_filter"}
    reason = reasons.get(answer.stop or "")
    output: JsonValue = [*items]
    return {
        "id": answer.message_id,
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "incomplete" if reason else "completed",
        "model": body.get("model"),
        "output": output,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "parallel_tool_calls": True,
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools", []),
        "usage": _wire_usage(answer.usage),
    }


def _wire_usage(usage: ScriptedUsage) -> JsonValue:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {
            "cached_tokens": usage.cached_input_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _namespaces(body: Mapping[str, JsonValue]) -> dict[str, str | None]:
    """Each tool's name with the namespace it is declared in."""
    found: dict[str, str | None] = {}
    for tool in objects(body.get("tools")):
        if tool.get("type") == "namespace":
            found |= {str(one.get("name")): str(tool.get("name")) for one in objects(tool.get("tools"))}
        elif "name" in tool:
            found[str(tool["name"])] = None
    return found


def _past_calls(body: Mapping[str, JsonValue]) -> Iterator[PastCall]:
    items = objects(body.get("input"))
    names = {item.get("call_id"): str(item.get("name")) for item in items if item.get("type") == "function_call"}
    outputs = {item.get("call_id"): item for item in items if item.get("type") == "function_call_output"}
    for call_id, name in {**dict.fromkeys(outputs, ""), **names}.items():
        output = outputs.get(call_id)
        result = None if output is None else text_in(output.get("output"), "input_text", "output_text")
        yield PastCall(str(call_id), name, result, bool(result and result.startswith("Error: ")))


def _problem(body: Mapping[str, JsonValue]) -> str | None:
    """Why the API would refuse this history; with `previous_response_id` most of it is elsewhere."""
    items = objects(body.get("input"))
    calls = [item.get("call_id") for item in items if item.get("type") == "function_call"]
    outputs = [item.get("call_id") for item in items if item.get("type") == "function_call_output"]
    missing = next((call_id for call_id in calls if outputs.count(call_id) != 1), None)
    if missing is not None:
        return f"No tool output found for function call {missing}."
    if body.get("previous_response_id") is None:
        orphan = next((call_id for call_id in outputs if call_id not in calls), None)
        if orphan is not None:
            return f"No tool call found for function call output with call_id {orphan}."
    reasoned = False
    for item in items:
        if item.get("type") == "reasoning":
            reasoned = True
        elif item.get("type") == "function_call":
            if not reasoned and str(item.get("id", "")).endswith(_WITH_REASONING):
                return f"Item '{item.get('id')}' was provided without its required 'reasoning' item."
        elif item.get("type") != "message" or item.get("role") != "assistant":
            reasoned = False
    return None
