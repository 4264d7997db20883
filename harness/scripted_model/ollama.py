"""Ollama's native API: `POST /api/chat`, streaming (lines of JSON) and not, and what a client looks up around it.

A model name chooses what older servers do: `"model": "any+missing_id+calls_at_end"`; the strings are those of `QUIRKS`.
Shapes as in the server's source, version 0.33.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from harness.scripted_model.dialect import ModelAnswer, ModelRequest, PastCall, Reply
from harness.scripted_model.json_parts import json_reply, objects, route, with_raw_member
from harness.scripted_model.script import ScriptedError

QUIRKS = frozenset(
    {
        "missing_id",
        "same_index",
        "calls_at_end",  # in the line with done: true
        "error_mid_stream",
        "odd_error",  # {"error parsing tool call": ...}
        "no_tools",  # a model that cannot call tools
        "cut_prompt",  # the prompt was cut to about half the window
    }
)
_ROUTES = frozenset({"/api/chat", "/api/show", "/api/pull", "/api/version", "/api/tags", "/api/ps"})
_WHEN = "2026-01-01T00:00:00.000000Z"
_CONTEXT_LENGTH = 131_072


class OllamaDialect:
    """Messages in, lines of JSON out."""

    call_id_prefix = "call_"
    message_id_prefix = "ollama_"
    stream_headers: Mapping[str, str] = {"content-type": "application/x-ndjson"}

    def speaks(self, path: str) -> bool:
        return route(path) in _ROUTES

    def lookup(self, path: str) -> Reply | None:
        entry: JsonValue = {
            "name": "scripted:latest",
            "model": "scripted:latest",
            "modified_at": _WHEN,
            "size": 1_000_000,
            "digest": "0" * 64,
            "details": _details(),
        }
        match route(path):
            case "/api/version":
                return json_reply({"version": "0.33.0"})
            case "/api/tags":
                return json_reply({"models": [entry]})
            case "/api/ps":
                return json_reply({"models": [{**entry, "context_length": 16_384, "size_vram": 0}]})
            case _:
                return None

    def side_reply(self, path: str, body: Mapping[str, JsonValue]) -> Reply | None:
        """What a client asks beside its turns: capabilities, a pull, the loading of a model."""
        model = str(body.get("model", ""))
        quirks = _quirks(body)
        capabilities: list[JsonValue] = ["completion", "thinking", "vision"]
        if "no_tools" not in quirks:
            capabilities.append("tools")
        if model.startswith("missing"):
            return self.error(ScriptedError(status=404, message=f"model '{model}' not found"))
        match route(path):
            case "/api/show":
                info: JsonValue = {"general.architecture": "script", "script.context_length": _CONTEXT_LENGTH}
                return json_reply({"details": _details(), "model_info": info, "capabilities": capabilities})
            case "/api/pull":
                lines: list[JsonValue] = [
                    {"status": "pulling manifest"},
                    {"status": "pulling aabbccddeeff", "digest": "sha256:aa", "total": 100, "completed": 50},
                    {"status": "pulling aabbccddeeff", "digest": "sha256:aa", "total": 100, "completed": 100},
                    {"status": "success"},
                ]
                return Reply(200, b"".join(json.dumps(line).encode() + b"\n" for line in lines), self.stream_headers)
            case "/api/chat" if not body.get("messages"):
                return json_reply({"model": model, "created_at": _WHEN, "done": True, "done_reason": "load"})
            case "/api/chat" if body.get("tools") and "no_tools" in quirks:
                return self.error(ScriptedError(status=400, message=f"{model} does not support tools"))
            case _:
                return None

    def read(self, path: str, body: Mapping[str, JsonValue]) -> ModelRequest:
        functions = [tool.get("function") for tool in objects(body.get("tools"))]
        tools = tuple(str(function.get("name")) for function in functions if isinstance(function, dict))
        stream = body.get("stream", True) is True
        return ModelRequest(stream=stream, tools=tools, past_calls=tuple(_past_calls(body)))

    def reply(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Reply:
        message: dict[str, JsonValue] = {"role": "assistant", "content": "".join(answer.text)}
        if answer.thinking:
            message["thinking"] = "".join(answer.thinking)
        calls = [_call(answer, number, _quirks(body)) for number in range(len(answer.calls))]
        text = with_raw_member(message, "tool_calls", f"[{', '.join(calls)}]") if calls else json.dumps(message)
        line = with_raw_member(_line(body) | _end(body, answer), "message", text)
        return Reply(200, line.encode(), {"content-type": "application/json"})

    def stream(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        for piece in answer.thinking:
            yield _frame(body, json.dumps({"role": "assistant", "content": "", "thinking": piece}))
        for piece in answer.text:
            yield _frame(body, json.dumps({"role": "assistant", "content": piece}))
        if "calls_at_end" not in _quirks(body):
            for number in range(len(answer.calls)):
                call = _call(answer, number, _quirks(body))
                yield _frame(body, with_raw_member({"role": "assistant", "content": ""}, "tool_calls", f"[{call}]"))

    def stream_end(self, body: Mapping[str, JsonValue], answer: ModelAnswer) -> Iterator[bytes]:
        quirks = _quirks(body)
        if "error_mid_stream" in quirks:
            yield b'{"error": "an error was encountered while running the model"}\n'
            return
        if "odd_error" in quirks:
            yield b'{"error parsing tool call": "raw=\'{\', err=unexpected end of JSON input"}\n'
            return
        message = json.dumps({"role": "assistant", "content": ""})
        if "calls_at_end" in quirks and answer.calls:
            calls = ", ".join(_call(answer, number, quirks) for number in range(len(answer.calls)))
            message = with_raw_member({"role": "assistant", "content": ""}, "tool_calls", f"[{calls}]")
        yield _frame(body, message, _end(body, answer))

    def error(self, error: ScriptedError) -> Reply:
        return json_reply({"error": error.message}, status=error.status)


def _quirks(body: Mapping[str, JsonValue]) -> set[str]:
    return set(str(body.get("model", "")).split("+")[1:]) & QUIRKS


def _line(body: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {"model": body.get("model"), "created_at": _WHEN, "done": False}


def _end(body: Mapping[str, JsonValue], answer: ModelAnswer) -> dict[str, JsonValue]:
    options = body.get("options")
    window = options.get("num_ctx") if isinstance(options, dict) else None
    prompt = answer.usage.input_tokens
    if "cut_prompt" in _quirks(body) and isinstance(window, int):
        prompt = window // 2 + 2
    return {
        "done": True,
        "done_reason": "length" if answer.stop == "max_tokens" else "stop",
        "total_duration": 2_000_000,
        "load_duration": 1_000,
        "prompt_eval_count": prompt,
        "prompt_eval_duration": 1_000_000,
        "eval_count": answer.usage.output_tokens,
        "eval_duration": 1_000_000,
    }


def _frame(body: Mapping[str, JsonValue], message: str, end: Mapping[str, JsonValue] | None = None) -> bytes:
    return with_raw_member(_line(body) | {**(end or {})}, "message", message).encode() + b"\n"


def _call(answer: ModelAnswer, number: int, quirks: set[str]) -> str:
    """One call as JSON text; its arguments are an object here, spliced as the script has them."""
    call = answer.calls[number]
    function: dict[str, JsonValue] = {"index": 0 if "same_index" in quirks else number, "name": call.name}
    value: dict[str, JsonValue] = {} if "missing_id" in quirks else {"id": call.call_id}
    spliced = with_raw_member(function, "arguments", call.arguments_json)
    return with_raw_member(value, "function", spliced) if value else f'{{"function": {spliced}}}'


def _details() -> JsonValue:
    return {"format": "gguf", "family": "script", "parameter_size": "1B", "quantization_level": "Q4_0"}


def _past_calls(body: Mapping[str, JsonValue]) -> Iterator[PastCall]:
    """Calls and results by id where both have one, else in their order."""
    messages = objects(body.get("messages"))
    results = [message for message in messages if message.get("role") == "tool"]
    for message in messages:
        for call in objects(message.get("tool_calls")):
            function = call.get("function")
            name = str(function.get("name")) if isinstance(function, dict) else ""
            found = next((r for r in results if r.get("tool_call_id") == call.get("id")), None)
            text = None if found is None else str(found.get("content", ""))
            yield PastCall(str(call.get("id", "")), name, text, bool(text and text.startswith("Error: ")))
