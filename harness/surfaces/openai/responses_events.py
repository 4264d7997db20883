"""A reply as the events of the Responses API, and as the response that they end with (pure).

Order and members are those of the `openai` package's types, which `contract_tests` check each event against.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias, cast

from harness.contract.tools import ToolCall
from harness.contract.value import JsonValue
from harness.surfaces.compatible.exchange import (
    CallPart,
    DiscardedPart,
    ReplyEnded,
    ReplyFailed,
    ReplyPart,
    TextPart,
    ThinkingPart,
)
from harness.surfaces.compatible.reply import Reply
from harness.surfaces.openai.responses_output import (
    INCOMPLETE,
    Output,
    Piece,
    SaidItem,
    Status,
    call_object,
    counted_output,
    response_object,
    summary_part,
    text_part,
)
from harness.surfaces.openai.responses_request import ResponsesRequest
from harness.wire.sse import HEARTBEAT, encode_event

Event: TypeAlias = dict[str, JsonValue]
_Kind: TypeAlias = Literal["message", "reasoning"]


def whole_response(request: ResponsesRequest, reply: Reply) -> dict[str, JsonValue]:
    """The reply in one piece: what its stream ends with."""
    events = ResponseEvents(request, reply)
    *_, last = (event for part in reply.parts for event in events.part(part))
    return cast(dict[str, JsonValue], last["response"])


class ResponseWriter:
    """A reply as server-sent events for one reader."""

    def __init__(self, request: ResponsesRequest, reply: Reply) -> None:
        self._events = ResponseEvents(request, reply)

    def opening(self) -> bytes:
        return _encoded(self._events.opening())

    def part(self, part: ReplyPart) -> bytes:
        return _encoded(self._events.part(part))

    def ping(self) -> bytes:
        return HEARTBEAT


class ResponseEvents:
    """Puts the parts of a reply into items, one for each item of the peer, and tells how they grow."""

    def __init__(self, request: ResponsesRequest, reply: Reply) -> None:
        self._request = request
        self._reply = reply
        self._number = 0
        self._output: Output = []
        self._open: SaidItem | None = None
        self._gaps: dict[_Kind, list[Piece]] = {"message": [], "reasoning": []}

    def opening(self) -> Iterator[Event]:
        begun = self._response("in_progress")
        yield self._event("response.created", response=begun)
        yield self._event("response.in_progress", response=begun)

    def part(self, part: ReplyPart) -> Iterator[Event]:
        match part:
            case TextPart() | ThinkingPart():
                yield from self._more(part)
            case DiscardedPart(item_id=source):
                yield from self._discard(source)
            case CallPart(call=call):
                yield from self._close("completed")
                yield from self._call(call)
            case ReplyEnded(end=end, usage=usage):
                reason = INCOMPLETE.get(end)
                status: Status = "completed" if reason is None else "incomplete"
                yield from self._silence()
                yield from self._close(status)
                response = self._response(status, reason=reason, usage=usage)
                yield self._event(f"response.{status}", response=response)
            case ReplyFailed(error=error):
                yield from self._close("incomplete")
                response = self._response("failed", error=error)
                yield self._event("response.failed", response=response)

    def _more(self, part: TextPart | ThinkingPart) -> Iterator[Event]:
        kind: _Kind = "message" if isinstance(part, TextPart) else "reasoning"
        piece = Piece(part.text, part.item_id)
        if self._open is None or (self._open.kind, self._open.source) != (kind, part.item_id):
            if part.text.isspace() and any(one.counts and one.source == part.item_id for one in self._pieces(kind)):
                self._gaps[kind].append(piece)  # behind an item that is closed already: the next one begins with it
                return
            yield from self._close("completed")
            yield from self._begin(kind, part.item_id)
        gaps, self._gaps[kind] = self._gaps[kind], []
        yield from self._grow([*gaps, piece])

    def _silence(self) -> Iterator[Event]:
        """An empty message where the agent said nothing: its history would not lead back to the conversation else."""
        if all(item["type"] == "reasoning" for item in counted_output(self._output)):
            yield from self._close("completed")
            yield from self._begin("message", None)

    def _begin(self, kind: _Kind, source: str | None) -> Iterator[Event]:
        self._open = item = SaidItem(kind, self._id("msg" if kind == "message" else "rs"), len(self._output), source)
        self._output.append(item)
        yield self._event("response.output_item.added", output_index=item.index, item=item.object(item.streamed))
        if kind == "message":
            yield self._event("response.content_part.added", **_place(item), part=text_part(""))
        else:
            yield self._event("response.reasoning_summary_part.added", **_place(item), part=summary_part(""))

    def _grow(self, pieces: Sequence[Piece]) -> Iterator[Event]:
        assert self._open is not None
        self._open.pieces += pieces
        text = "".join(piece.text for piece in pieces)
        if self._open.kind == "message":
            yield self._event("response.output_text.delta", **_place(self._open), delta=text, logprobs=[])
        else:
            yield self._event("response.reasoning_summary_text.delta", **_place(self._open), delta=text)

    def _close(self, status: Status) -> Iterator[Event]:
        item, self._open = self._open, None
        if item is None:
            return
        item.status = status
        if item.kind == "message":
            yield self._event("response.output_text.done", **_place(item), text=item.streamed, logprobs=[])
            yield self._event("response.content_part.done", **_place(item), part=text_part(item.streamed))
        else:
            yield self._event("response.reasoning_summary_text.done", **_place(item), text=item.streamed)
            yield self._event("response.reasoning_summary_part.done", **_place(item), part=summary_part(item.streamed))
        yield self._event("response.output_item.done", output_index=item.index, item=item.object(item.streamed))

    def _discard(self, source: str) -> Iterator[Event]:
        """The deltas are out; the response that counts is without them."""
        if self._open is not None and self._open.source == source:
            yield from self._close("incomplete")
        for piece in [*self._pieces(), *self._gaps["message"], *self._gaps["reasoning"]]:
            piece.counts = piece.counts and piece.source != source

    def _call(self, call: ToolCall) -> Iterator[Event]:
        item_id, index = self._id("fc"), len(self._output)
        begun = call_object(item_id, call, self._request, "in_progress")
        done = call_object(item_id, call, self._request, "completed")
        self._output.append(done)
        kind = "response.function_call_arguments"
        yield self._event("response.output_item.added", output_index=index, item=begun)
        yield self._event(f"{kind}.delta", item_id=item_id, output_index=index, delta=call.arguments_json)
        yield self._event(f"{kind}.done", item_id=item_id, output_index=index, arguments=call.arguments_json)
        yield self._event("response.output_item.done", output_index=index, item=done)

    def _pieces(self, *kinds: _Kind) -> Iterator[Piece]:
        for item in self._output:
            if isinstance(item, SaidItem) and (not kinds or item.kind in kinds):
                yield from item.pieces

    def _response(self, status: str, **how: Any) -> Event:
        return response_object(self._request, self._reply, status, counted_output(self._output), **how)

    def _id(self, prefix: str) -> str:
        return f"{prefix}_{self._reply.reply_id}_{len(self._output)}"

    def _event(self, kind: str, **members: JsonValue) -> Event:
        self._number += 1
        return {"type": kind, "sequence_number": self._number - 1, **members}


def _place(item: SaidItem) -> dict[str, JsonValue]:
    name = "content_index" if item.kind == "message" else "summary_index"
    return {"item_id": item.item_id, "output_index": item.index, name: 0}


def _encoded(events: Iterator[Event]) -> bytes:
    return b"".join(
        encode_event(str(event["type"]), json.dumps(event, separators=(",", ":")).encode("ascii")) for event in events
    )
