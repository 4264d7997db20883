"""A whole conversation to read: as text, as Markdown, or item by item as lines of JSON (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import StrEnum

from harness.cli.activity import Activity
from harness.contract.content import text_of
from harness.contract.output import Item, ItemDiscarded, Message, TextDelta
from harness.contract.state import ConversationExport, TurnTranscript


class TranscriptFormat(StrEnum):
    TEXT = "text"
    MARKDOWN = "markdown"
    JSONL = "jsonl"


def transcript(conversation: ConversationExport, form: TranscriptFormat) -> str:
    """All turns, each line ended."""
    match form:
        case TranscriptFormat.TEXT:
            lines = _text_lines(conversation)
        case TranscriptFormat.MARKDOWN:
            lines = _markdown_lines(conversation)
        case TranscriptFormat.JSONL:
            lines = _json_lines(conversation)
    return "".join(f"{line}\n" for line in lines)


def iso_time(at_ms: int) -> str:
    """ISO 8601 in UTC."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text_lines(conversation: ConversationExport) -> Iterator[str]:
    for number, turn in enumerate(conversation.turns):
        if number:
            yield ""
        for line in text_of(turn.content).splitlines() or [""]:
            yield f"> {line}"
        yield ""
        for kind, text in _told(turn):
            yield text if kind == "said" else f"  {text}"


def _markdown_lines(conversation: ConversationExport) -> Iterator[str]:
    about = conversation.conversation
    who = about.connector if about.model is None else f"{about.connector}, {about.model}"
    yield f"# {' '.join((about.first_message or about.conversation_id).split())}"
    yield ""
    yield f"{about.conversation_id}, {who}, begun {iso_time(about.created_at)}"
    for turn in conversation.turns:
        yield ""
        yield f"## Turn {turn.turn_id}"
        yield ""
        for line in text_of(turn.content).splitlines() or [""]:
            yield f"> {line}".rstrip()
        for kind, text in _told(turn):
            yield ""
            yield text if kind == "said" else _code(text)


def _json_lines(conversation: ConversationExport) -> Iterator[str]:
    about = conversation.conversation
    yield json.dumps({"type": "conversation", "conversation": about.to_dict()}, ensure_ascii=False)
    for turn in conversation.turns:
        content = [block.to_dict() for block in turn.content]
        yield json.dumps({"type": "turn", "turn_id": turn.turn_id, "content": content}, ensure_ascii=False)
        for item in turn.items:
            yield json.dumps({"type": "item", "turn_id": turn.turn_id, "item": item.to_dict()}, ensure_ascii=False)


def _told(turn: TurnTranscript) -> Iterator[tuple[str, str]]:
    """What was said and what was done, in the order it was shown: pieces of one text joined."""
    activity = Activity(full=True)
    taken_back = _taken_back(turn.items)
    streamed: set[str | None] = set()
    said: list[str] = []
    for item in turn.items:
        if isinstance(item, TextDelta):
            if item.sequence_no not in taken_back:
                said.append(item.text)
                streamed.add(item.item_id)
            continue
        if isinstance(item, Message):
            if item.item_id is None or item.item_id not in streamed:
                said.append(text_of(item.content))
            continue
        for line in activity.lines(item):
            if said:
                yield "said", "".join(said).strip("\n")
                said = []
            yield "done", line.text.strip()
    if said:
        yield "said", "".join(said).strip("\n")


def _taken_back(items: Sequence[Item]) -> set[int]:
    """The numbers of the pieces of messages that the peer began anew."""
    numbers: set[int] = set()
    pieces: dict[str | None, list[int]] = {}
    for item in items:
        if isinstance(item, TextDelta):
            pieces.setdefault(item.item_id, []).append(item.sequence_no)
        elif isinstance(item, ItemDiscarded):
            numbers.update(pieces.pop(item.item_id, []))
    return numbers


def _code(text: str) -> str:
    """As code, with a fence longer than any in the text."""
    longest = max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)
    fence = "`" * (longest + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{' '.join(text.split())}{padding}{fence}"
