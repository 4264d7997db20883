"""Where a conversation stands, as a hash over its messages (pure).

Clients send the whole history each time. Two histories are the same conversation when their canonical messages are
equal: role, text, calls with their arguments as parsed JSON, results. How a client cuts one side's words into messages
or blocks says nothing, nor does white space around them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import groupby

from harness.contract.content import ContentBlock, TextBlock
from harness.contract.options import HistoryMessage, HistoryRole
from harness.contract.tools import ToolResult
from harness.contract.value import JsonValue

START = ""
"""The tip of a conversation without messages."""


def merged(messages: Iterable[HistoryMessage]) -> list[HistoryMessage]:
    """Neighbours of the same role as one message."""
    return [_one(list(neighbours)) for _, neighbours in groupby(messages, lambda message: message.role)]


def _one(neighbours: Sequence[HistoryMessage]) -> HistoryMessage:
    """Made once: a client may send thousands of them."""
    if len(neighbours) == 1:
        return neighbours[0]
    return HistoryMessage(
        role=neighbours[0].role,
        content=[block for message in neighbours for block in message.content],
        tool_calls=[call for message in neighbours for call in message.tool_calls],
        tool_results=[result for message in neighbours for result in message.tool_results],
    )


def split(messages: Iterable[HistoryMessage]) -> tuple[list[HistoryMessage], HistoryMessage | None]:
    """The history, and the user's message after it; null when the assistant had the last word."""
    whole = merged(messages)
    if not whole or whole[-1].role != HistoryRole.USER:
        return whole, None
    return whole[:-1], whole[-1]


def tip(messages: Iterable[HistoryMessage], after: str = START) -> str:
    """The hash of these messages behind a conversation that stands at `after`.

    `after` must end with a message of the other role than the first of `messages` has: neighbours of one role would
    have been one message.
    """
    for message in merged(messages):
        after = hashlib.sha256(f"{after}\n{_canonical(message)}".encode()).hexdigest()
    return after


def fingerprint_of(body: JsonValue, without: Sequence[str] = ()) -> str:
    """Equal for equal JSON, save the members that only say how the answer is read."""
    if isinstance(body, dict):
        body = {name: value for name, value in body.items() if name not in without}  # pyright: ignore[reportUnknownVariableType]
    return hashlib.sha256(_plain(body).encode()).hexdigest()


def _canonical(message: HistoryMessage) -> str:
    calls = [[call.call_id, call.tool_name, _parsed(call.arguments_json)] for call in message.tool_calls]
    results = [_result(result) for result in message.tool_results]
    return _plain([message.role, *_content(message.content), calls, results])


def _result(result: ToolResult) -> list[JsonValue]:
    return [result.call_id, result.is_error, *_content(result.content)]


def _content(content: Sequence[ContentBlock]) -> list[JsonValue]:
    """The words, and everything else in order."""
    text = "".join(block.text for block in content if isinstance(block, TextBlock))
    others = [block.to_dict() for block in content if not isinstance(block, TextBlock)]
    return [text.strip(), others]


def _parsed(arguments_json: str) -> JsonValue:
    try:
        return json.loads(arguments_json or "{}")
    except (ValueError, RecursionError):
        return arguments_json


def _plain(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
