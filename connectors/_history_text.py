"""A history that a peer cannot take: quoted as text before the first message, and it is told. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from connectors._json import JsonObject
from harness.contract.content import ContentBlock, TextBlock, text_of
from harness.contract.options import HistoryMessage
from harness.errors import ContentNotSupported
from harness.turn.events import OutputProduced, notice

_INTRODUCTION = (
    "The conversation so far, quoted as data, one JSON object per line; the user's new message comes after it."
)


def with_history(history: Sequence[HistoryMessage], content: Sequence[ContentBlock]) -> list[ContentBlock]:
    """The message with the history quoted before it; without a history the message as it is.

    Raises:
        ContentNotSupported: the history holds more than text.
    """
    if not history:
        return list(content)
    # "<" as an escape: nothing quoted can end the quotation
    lines = "\n".join(json.dumps(_quoted(one), ensure_ascii=False).replace("<", "\\u003c") for one in history)
    return [TextBlock(text=f"{_INTRODUCTION}\n<history>\n{lines}\n</history>\n"), *content]


def history_notice(history: Sequence[HistoryMessage]) -> OutputProduced:
    return notice("history_as_text", f"the {len(history)} messages of the history were given to the peer as text")


def _text(content: Sequence[ContentBlock]) -> str:
    other = next((block for block in content if not isinstance(block, TextBlock)), None)
    if other is not None:
        raise ContentNotSupported(f"a history with a block of type '{other.type}' cannot be given to this peer as text")
    return text_of(content)


def _quoted(message: HistoryMessage) -> JsonObject:
    quoted: JsonObject = {"role": message.role.value, "text": _text(message.content)}
    if message.tool_calls:
        quoted["tool_calls"] = [
            {"id": call.call_id, "name": call.tool_name, "arguments": call.arguments_json}
            for call in message.tool_calls
        ]
    if message.tool_results:
        quoted["tool_results"] = [
            {"id": result.call_id, "text": _text(result.content), "is_error": result.is_error}
            for result in message.tool_results
        ]
    return quoted
