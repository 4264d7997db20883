"""The model's messages as the CLI streams them -> output items. Pure.

A message comes twice: as raw events of the model's API (`stream_event`) and, block by block, as `assistant` lines. The
events are the source; a line counts only where no events came (after dropped streams the CLI asks without streaming).
The text of a message is held until its end tells what it was: words before a tool call, or the answer.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from connectors._json import JsonObject, compact_json, escaped_surrogates, object_in, objects_in, plain_text_in, text_in
from connectors._text import REPLACEMENT, split_before_half_pair, without_surrogates
from harness.contract.content import TextBlock
from harness.contract.output import Phase
from harness.turn.events import TurnEvent, item_discarded, message, text_delta, thinking_delta

_PHASES = {
    "tool_use": Phase.COMMENTARY,
    "pause_turn": Phase.COMMENTARY,
    "end_turn": Phase.FINAL,
    "stop_sequence": Phase.FINAL,
    "max_tokens": Phase.FINAL,
}


@dataclass(slots=True)
class ModelCall:
    """A tool call as the model wrote it; `order` is its place in the turn."""

    call_id: str
    name: str
    order: int
    parent_call_id: str | None
    pieces: list[str] = field(default_factory=list[str])
    arguments: JsonObject | None = None
    """As the complete `assistant` line has them, where whole numbers over 2^53 are rounded."""

    def arguments_json(self, delivered: JsonObject | None = None) -> str:
        """The model's own text, unless the CLI delivered other arguments than those."""
        text = "".join(self.pieces)
        known = delivered if delivered is not None else self.arguments
        if not text or (known is not None and not _says(text, known)):
            return compact_json(known or {})
        return escaped_surrogates(text)


@dataclass(slots=True)
class _Block:
    kind: str
    text: list[str] = field(default_factory=list[str])
    half_pair: str = ""
    call: ModelCall | None = None


@dataclass(slots=True)
class _Message:
    message_id: str
    item_id: str
    parent_call_id: str | None
    is_streamed: bool
    blocks: dict[int, _Block] = field(default_factory=dict[int, _Block])
    has_shown: bool = False
    is_over: bool = False


class MessageReader:
    """Reads the model messages of one turn, of the main loop and of subagents."""

    def __init__(self) -> None:
        self.calls: dict[str, ModelCall] = {}
        self.message_ids: list[str] = []
        """One per model call, in order."""
        self.last_stop_reason: str | None = None
        """Of the main loop's last message."""
        self.has_replaced_surrogates = False
        self._current: dict[str | None, _Message] = {}

    def stream_event(self, event: JsonObject, parent_call_id: str | None) -> list[TurnEvent]:
        """One raw event of the model's API; kinds that are not known are skipped."""
        kind = event.get("type")
        if kind == "message_start":
            return self._start(
                plain_text_in(object_in(event.get("message")).get("id")), parent_call_id, is_streamed=True
            )
        current = self._current.get(parent_call_id)
        if current is None or current.is_over:
            return []
        match kind:
            case "content_block_start":
                return self._block_started(current, event)
            case "content_block_delta":
                return self._delta(current, event)
            case "content_block_stop":
                return self._rest_of(current, current.blocks.get(_index(event)))
            case "message_delta":
                stop_reason = object_in(event.get("delta")).get("stop_reason")
                return self._finish(current, stop_reason if isinstance(stop_reason, str) else None)
            case _:
                return []

    def complete(self, line: JsonObject, parent_call_id: str | None) -> list[TurnEvent]:
        """An `assistant` line: the arguments of its calls, and what was not streamed."""
        body = object_in(line.get("message"))
        message_id = plain_text_in(body.get("id"))
        current = self._current.get(parent_call_id)
        events: list[TurnEvent] = []
        if current is None or current.message_id != message_id:
            events += self._start(message_id, parent_call_id, is_streamed=False)
            current = self._current[parent_call_id]
        for block in objects_in(body.get("content")):
            if block.get("type") == "tool_use":
                call = self.calls.get(plain_text_in(block.get("id"))) or self._new_call(block, parent_call_id)
                call.arguments = object_in(block.get("input"))
            if not current.is_streamed:
                events += self._whole_block(current, block)
        return events

    def finish(self, *, keeps_partial: bool) -> list[TurnEvent]:
        """The turn is over: messages that were not streamed are whole now.

        A streamed one without its end counts if the CLI keeps what there is of it, as it does on an interrupt.
        """
        events: list[TurnEvent] = []
        for parent, current in list(self._current.items()):
            is_partial = current.is_streamed and not current.is_over
            events += self._finish(current, None) if is_partial and keeps_partial else self._leave(parent)
        return events

    # inside

    def _start(self, message_id: str, parent_call_id: str | None, *, is_streamed: bool) -> list[TurnEvent]:
        events = self._leave(parent_call_id)
        times = self.message_ids.count(message_id)
        self.message_ids.append(message_id)
        item_id = message_id if not times else f"{message_id}~{times + 1}"
        self._current[parent_call_id] = _Message(message_id, item_id, parent_call_id, is_streamed)
        return events

    def _leave(self, parent_call_id: str | None) -> list[TurnEvent]:
        """Another message follows: a streamed one without its end was dropped by the CLI, which asked again."""
        left = self._current.pop(parent_call_id, None)
        if left is None or left.is_over:
            return []
        if not left.is_streamed:
            is_commentary = any(block.kind == "tool_use" for block in left.blocks.values())
            return self._finish(left, "tool_use" if is_commentary else "end_turn")
        return [item_discarded(left.item_id, "restarted")] if left.has_shown else []

    def _block_started(self, current: _Message, event: JsonObject) -> list[TurnEvent]:
        content = object_in(event.get("content_block"))
        block = _Block(text_in(content.get("type")))
        current.blocks[_index(event)] = block
        if block.kind == "tool_use":
            block.call = self._new_call(content, current.parent_call_id)
        return self._show(current, block, text_in(content.get("text")) or text_in(content.get("thinking")))

    def _delta(self, current: _Message, event: JsonObject) -> list[TurnEvent]:
        delta = object_in(event.get("delta"))
        block = current.blocks.setdefault(_index(event), _Block("text"))
        if delta.get("type") == "input_json_delta":
            if block.call is not None:
                block.call.pieces.append(text_in(delta.get("partial_json")))
            return []
        return self._show(current, block, text_in(delta.get("text")) or text_in(delta.get("thinking")))

    def _whole_block(self, current: _Message, content: JsonObject) -> list[TurnEvent]:
        block = _Block(text_in(content.get("type")))
        current.blocks[len(current.blocks)] = block
        return [
            *self._show(current, block, text_in(content.get("text")) or text_in(content.get("thinking"))),
            *self._rest_of(current, block),
        ]

    def _show(self, current: _Message, block: _Block, text: str) -> list[TurnEvent]:
        whole, block.half_pair = split_before_half_pair(block.half_pair + text)
        shown = without_surrogates(whole)
        self.has_replaced_surrogates |= shown.count(REPLACEMENT) > whole.count(REPLACEMENT)
        if not shown or block.kind not in ("text", "thinking"):
            return []
        block.text.append(shown)
        current.has_shown = True
        make = text_delta if block.kind == "text" else thinking_delta
        return [make(shown, item_id=current.item_id, parent_call_id=current.parent_call_id)]

    def _rest_of(self, current: _Message, block: _Block | None) -> list[TurnEvent]:
        """Half a character that never got its other half."""
        if block is None or not block.half_pair:
            return []
        block.half_pair = ""
        self.has_replaced_surrogates = True
        return self._show(current, block, REPLACEMENT)

    def _finish(self, current: _Message, stop_reason: str | None) -> list[TurnEvent]:
        events = [event for block in current.blocks.values() for event in self._rest_of(current, block)]
        current.is_over = True
        if current.parent_call_id is None:
            self.last_stop_reason = stop_reason
        texts = ["".join(block.text) for block in current.blocks.values() if block.kind == "text"]
        content = [TextBlock(text=text) for text in texts if text]
        if content:
            phase = _PHASES.get(stop_reason or "")
            events.append(message(content, phase=phase, item_id=current.item_id, parent_call_id=current.parent_call_id))
        return events

    def _new_call(self, block: JsonObject, parent_call_id: str | None) -> ModelCall:
        call = ModelCall(
            plain_text_in(block.get("id")), plain_text_in(block.get("name")), len(self.calls), parent_call_id
        )
        self.calls[call.call_id] = call
        return call


def _says(text: str, arguments: JsonObject) -> bool:
    """Whether the text says these values, whole numbers compared as the CLI's runtime holds them."""
    try:
        return json.loads(text, parse_int=float) == json.loads(json.dumps(arguments), parse_int=float)
    except (ValueError, RecursionError):
        return False


def _index(event: JsonObject) -> int:
    index = event.get("index")
    return index if isinstance(index, int) else 0
