"""The canonical trace of a conversation: what a host saw, without what changes from run to run (pure).

Deltas are joined per item and followed by its message, the requests of one round sorted by their order, ids numbered by
first appearance, times and figures of usage dropped; all else is literal. A replay and the real peer give the same one,
line by line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.contract.output import OutputItem, RequestOpened
from harness.contract.state import TurnTranscript
from harness.testing.scrubbing import Scrubber

_ID_FIELDS = frozenset({"request_id", "call_id", "peer_request_id", "item_id", "parent_call_id"})
_DROPPED_FIELDS = frozenset({"sequence_no", "at", "opened_at", "expires_at", "duration_ms"})
_DROPPED_KINDS = frozenset({"usage", "raw"})
_DELTAS = frozenset({"text_delta", "thinking_delta"})
_TELLS_CIRCUMSTANCES = frozenset({"peer_started"})
"""Notices whose text is about this machine and this run."""
_WAITS = re.compile(r"\bin \d+(?:\.\d+)? s\b")
"""Peers wait a random while before they try again."""
_NAMED = re.compile(r"<(id|port) \d+>")


def canonical(conversations: Sequence[Sequence[TurnTranscript]], values: Mapping[str, str]) -> list[str]:
    """One line of JSON per thing that was seen; `values` are scrubbed by heart, such as paths."""
    names: dict[str, str] = {}
    lines: list[str] = []
    for number, turns in enumerate(conversations, 1):
        for turn_number, turn in enumerate(turns, 1):
            lines.append(f"conversation {number}, turn {turn_number}")
            lines += [_line(item, names) for item in _joined(_sorted(turn.items))]
    text = Scrubber(values).scrub("\n".join(lines))
    return _renumbered(text).split("\n")


def _renumbered(text: str) -> str:
    """Names as they appear here: in the traffic others came before."""
    given: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        number = 1 + sum(one.startswith(f"<{found[1]} ") for one in given)
        return given.setdefault(found[0], f"<{found[1]} {number}>")

    return _NAMED.sub(name, text)


def _sorted(items: Sequence[OutputItem]) -> Iterator[OutputItem]:
    """Requests that were opened one right after the other, by the order of the model."""
    together: list[RequestOpened] = []
    for item in items:
        if isinstance(item, RequestOpened):
            together.append(item)
            continue
        yield from sorted(together, key=lambda opened: opened.request.order or 0)
        together = []
        yield item
    yield from sorted(together, key=lambda opened: opened.request.order or 0)


def _joined(items: Iterator[OutputItem]) -> list[dict[str, Any]]:
    """The deltas of an item stand where its first one stood, and its message behind them: it may come later."""
    seen: dict[tuple[str, str | None], dict[str, Any]] = {}
    values: list[dict[str, Any]] = []
    for item in items:
        if item.kind in _DROPPED_KINDS:
            continue
        value = item.model_dump(mode="json", exclude_none=True)
        if item.kind in _DELTAS:
            earlier = seen.setdefault((item.kind, item.item_id), value)
            if earlier is not value:
                earlier["text"] += value["text"]
                continue
        if item.kind == "turn_ended" and value.get("error"):
            value["error"] = _without_stderr(value["error"])
        if item.kind == "notice" and value["code"] in _TELLS_CIRCUMSTANCES:
            del value["text"]
        elif item.kind == "notice":
            value["text"] = _WAITS.sub("in 0 s", value["text"])
        deltas = seen.get(("text_delta", item.item_id)) if item.kind == "message" else None
        if deltas is None:
            values.append(value)
        else:
            values.insert(next(n for n, one in enumerate(values, 1) if one is deltas), value)
    return values


def _without_stderr(error: dict[str, Any]) -> dict[str, Any]:
    """What a peer complained of before it was lost is about this machine and this run."""
    detail = json.loads(error.get("detail_json") or "{}")
    last = str(detail.pop("stderr_tail", None) or "").strip().rpartition("\n")[2]
    if not last:
        return error
    message = error["message"].partition(f": {last[:20]}")[0]
    return {**error, "message": message, "detail_json": json.dumps(detail)}


def _line(value: dict[str, Any], names: dict[str, str]) -> str:
    return json.dumps(_plain(value, names), ensure_ascii=False)


def _plain(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_plain(one, names) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    plain: dict[str, Any] = {}
    for name, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
        if name in _ID_FIELDS:
            plain[name] = names.setdefault(str(inner), f"id {len(names) + 1}")  # pyright: ignore[reportUnknownArgumentType]
        elif name not in _DROPPED_FIELDS:
            plain[str(name)] = _plain(inner, names)  # pyright: ignore[reportUnknownArgumentType]
    return plain
