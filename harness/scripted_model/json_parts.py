"""Small pieces of JSON and HTTP that the dialects share (pure)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from harness.scripted_model.dialect import Reply

JSON_HEADERS = {"content-type": "application/json"}
SSE_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}


def route(path: str) -> str:
    """The path without its query."""
    return path.partition("?")[0]


def json_reply(value: JsonValue, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, json.dumps(value).encode(), {**JSON_HEADERS, **(headers or {})})


def objects(value: JsonValue | None) -> Sequence[Mapping[str, JsonValue]]:
    """The objects in a list; what is no list has none."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_in(content: JsonValue | None, *kinds: str) -> str:
    """A text, or the texts of a list's parts of these types."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in objects(content) if part.get("type") in kinds)


def retry_headers(seconds: float | None) -> dict[str, str]:
    return {} if seconds is None else {"retry-after": f"{seconds:g}"}


def halves(text: str) -> tuple[str, str]:
    """Two pieces that are no JSON by themselves."""
    middle = len(text) // 2
    return text[:middle], text[middle:]


def with_raw_member(value: Mapping[str, JsonValue], key: str, raw: str) -> str:
    """The object as JSON text with one more member, spliced as it is: a parser would round its numbers."""
    return f"{json.dumps(value)[:-1]}, {json.dumps(key)}: {raw}}}"
