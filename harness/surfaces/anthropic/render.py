"""A reply as the Messages API says it: one event after the other, or one message (pure).

Order and members are those of the API's documentation; Claude Code 2.1.332 and the `anthropic` package read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from harness.contract.tools import ToolCall
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.surfaces.anthropic.errors import error_body
from harness.surfaces.anthropic.request import MessagesRequest
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
from harness.surfaces.compatible.reply import WholeReply
from harness.wire.json_text import read_plain
from harness.wire.sse import encode_event

_SIGNATURE = "aGFybmVzcw=="
"""Clients insist on one and give it back with the thinking, which `history.py` drops."""
_STOPS = {
    ReplyEnd.END_TURN: "end_turn",
    ReplyEnd.TOOL_CALLS: "tool_use",
    ReplyEnd.MAX_TOKENS: "max_tokens",
    ReplyEnd.REFUSAL: "refusal",
}
_PING = encode_event("ping", b'{"type":"ping"}')


@dataclass(slots=True)
class EventWriter:
    """Writes one reply as server-sent events."""

    message_id: str
    request: MessagesRequest
    _index: int = 0
    _open: str | None = None
    """The kind of the block that is being written."""

    def opening(self) -> bytes:
        nothing_yet: dict[str, JsonValue] = {"content": [], "usage": _wire_usage(None)}
        message = _message(self.message_id, self.request) | nothing_yet
        return _event("message_start", message=message)

    def part(self, part: ReplyPart) -> bytes:
        return b"".join(self._events(part))

    def ping(self) -> bytes:
        return _PING

    def _events(self, part: ReplyPart) -> Iterator[bytes]:
        match part:
            case TextPart(text=text):
                if self._open != "text":
                    yield from self._start({"type": "text", "text": ""})
                yield self._delta({"type": "text_delta", "text": text})
            case ThinkingPart(text=text):
                if not self.request.shows_thinking:
                    return
                if self._open != "thinking":
                    yield from self._start({"type": "thinking", "thinking": "", "signature": ""})
                yield self._delta({"type": "thinking_delta", "thinking": text})
            case CallPart(call):
                yield from self._start(_call_block(call, self.request) | {"input": {}})
                yield self._delta({"type": "input_json_delta", "partial_json": _input_json(call.arguments_json)})
                yield from self._stop()
            case ReplyEnded(end, usage):
                yield from self._stop()
                delta: JsonValue = {"stop_reason": _STOPS[end], "stop_sequence": None}
                yield _event("message_delta", delta=delta, usage=_wire_usage(usage))
                yield _event("message_stop")
            case DiscardedPart():
                pass  # what was sent cannot be taken back
            case ReplyFailed(error):
                yield encode_event("error", error_body(error))

    def _start(self, block: JsonValue) -> Iterator[bytes]:
        yield from self._stop()
        self._open = block["type"]
        yield _event("content_block_start", index=self._index, content_block=block)

    def _delta(self, delta: JsonValue) -> bytes:
        return _event("content_block_delta", index=self._index, delta=delta)

    def _stop(self) -> Iterator[bytes]:
        if self._open is None:
            return
        if self._open == "thinking":
            yield self._delta({"type": "signature_delta", "signature": _SIGNATURE})
        yield _event("content_block_stop", index=self._index)
        self._open = None
        self._index += 1


def whole_message(message_id: str, request: MessagesRequest, reply: WholeReply) -> dict[str, JsonValue]:
    """The reply as one message."""
    blocks: list[JsonValue] = []
    if reply.thinking and request.shows_thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": _SIGNATURE})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    for call in reply.calls:
        given = json.loads(_input_json(call.arguments_json))
        blocks.append(_call_block(call, request) | {"input": given})
    said: dict[str, JsonValue] = {"content": blocks, "stop_reason": _STOPS[reply.end]}
    return _message(message_id, request) | said | {"usage": _wire_usage(reply.usage)}


def _call_block(call: ToolCall, request: MessagesRequest) -> dict[str, JsonValue]:
    return {"type": "tool_use", "id": call.call_id, "name": request.long_names.get(call.tool_name, call.tool_name)}


def _input_json(arguments_json: str) -> str:
    """As the model wrote it, where that is an object; this API has no word for anything else."""
    try:
        given = read_plain((arguments_json or "{}").encode("utf-8", "surrogatepass"), "it", finite=True)
    except InvalidArgument:
        given = arguments_json
    return (arguments_json or "{}") if isinstance(given, dict) else json.dumps({"input": given})


def _message(message_id: str, request: MessagesRequest) -> dict[str, JsonValue]:
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "stop_reason": None,
        "stop_sequence": None,
    }


def _wire_usage(usage: UsageInfo | None) -> dict[str, JsonValue]:
    """The API counts cached and cache-written tokens beside `input_tokens`, the contract within.

    It knows no "unknown", so what nobody reported is 0.
    """
    read = (usage and usage.cached_input_tokens) or 0
    written = (usage and usage.cache_write_tokens) or 0
    return {
        "input_tokens": max(0, ((usage and usage.input_tokens) or 0) - read - written),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": (usage and usage.output_tokens) or 0,
    }


def _event(kind: str, **members: JsonValue) -> bytes:
    return encode_event(kind, json.dumps({"type": kind, **members}, separators=(",", ":")).encode())
