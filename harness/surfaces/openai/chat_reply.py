"""A reply as a chat completion, in one piece or as chunks (pure)."""

from __future__ import annotations

import json

from harness.contract.tools import ToolCall
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.surfaces.compatible.exchange import (
    CallPart,
    DiscardedPart,
    ReplyEnd,
    ReplyEnded,
    ReplyFailed,
    ReplyPart,
    TextPart,
    ThinkingPart,
)
from harness.surfaces.compatible.reply import Reply, WholeReply
from harness.surfaces.openai.errors import error_object
from harness.wire.sse import HEARTBEAT

_REASONS = {
    ReplyEnd.END_TURN: "stop",
    ReplyEnd.TOOL_CALLS: "tool_calls",
    ReplyEnd.MAX_TOKENS: "length",
    ReplyEnd.REFUSAL: "content_filter",
}
_DONE = b"data: [DONE]\n\n"


def completion_of(reply: Reply, whole: WholeReply) -> dict[str, JsonValue]:
    """The body of a reply in one piece."""
    message: dict[str, JsonValue] = {"role": "assistant", "content": whole.text or None, "refusal": None}
    if whole.thinking:
        message["reasoning_content"] = whole.thinking
    if whole.calls:
        message["tool_calls"] = [_call(call) for call in whole.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _REASONS[whole.end]}
    body = {**_head(reply, "chat.completion"), "choices": [choice]}
    usage = usage_object(whole.usage)
    return body if usage is None else {**body, "usage": usage}


class ChunkWriter:
    """A reply as chunks for one reader."""

    def __init__(self, reply: Reply, *, with_usage: bool) -> None:
        self._head = _head(reply, "chat.completion.chunk")
        self._with_usage = with_usage
        self._calls = 0

    def opening(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def ping(self) -> bytes:
        return HEARTBEAT

    def part(self, part: ReplyPart) -> bytes:
        match part:
            case TextPart(text=text):
                return self._chunk({"content": text})
            case ThinkingPart(text=text):
                return self._chunk({"reasoning_content": text})
            case DiscardedPart():  # a chunk cannot be taken back
                return b""
            case CallPart(call=call):
                self._calls += 1
                return self._chunk({"tool_calls": [{"index": self._calls - 1, **_call(call)}]})
            case ReplyEnded(end=end, usage=usage):
                return self._chunk({}, _REASONS[end]) + self._usage(usage) + _DONE
            case ReplyFailed(error=error):
                return _data({"error": error_object(error)})

    def _chunk(self, delta: dict[str, JsonValue], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        last = {"usage": None} if self._with_usage else {}
        return _data({**self._head, "choices": [choice], **last})

    def _usage(self, usage: UsageInfo | None) -> bytes:
        if not self._with_usage:
            return b""
        return _data({**self._head, "choices": [], "usage": usage_object(usage)})


def usage_object(usage: UsageInfo | None) -> dict[str, JsonValue] | None:
    """Null unless both sides are known: clients add the figures up."""
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return None
    known: dict[str, JsonValue] = {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    if usage.cached_input_tokens is not None:
        known["prompt_tokens_details"] = {"cached_tokens": usage.cached_input_tokens}
    if usage.reasoning_tokens is not None:
        known["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
    return known


def _head(reply: Reply, kind: str) -> dict[str, JsonValue]:
    return {"id": f"chatcmpl-{reply.reply_id}", "object": kind, "created": reply.created_at, "model": reply.model}


def _call(call: ToolCall) -> dict[str, JsonValue]:
    function = {"name": call.tool_name, "arguments": call.arguments_json}
    return {"id": call.call_id, "type": "function", "function": function}


def _data(value: JsonValue) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n\n"
