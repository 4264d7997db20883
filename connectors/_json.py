"""JSON of a peer, written exactly and read generously: a member of another shape than expected is as good as absent.

Pure.
"""

import json
import math
from typing import TypeAlias, cast

from connectors._text import has_surrogates, without_surrogates
from harness.contract.value import JsonValue

JsonObject: TypeAlias = dict[str, JsonValue]


def compact_json(value: JsonValue) -> str:
    """JSON without spaces, keys in their order; unpaired surrogates stay as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return json.dumps(value, separators=(",", ":")) if has_surrogates(text) else text


def escaped_surrogates(json_text: str) -> str:
    """JSON text as it came, except that surrogates standing in it as characters become escapes."""
    if not has_surrogates(json_text):
        return json_text
    joined = json_text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return "".join(f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char for char in joined)


def json_line(value: JsonValue) -> bytes:
    """One message per line, in UTF-8."""
    return compact_json(value).encode() + b"\n"


def object_in(value: JsonValue) -> JsonObject:
    """The object, or an empty one."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def objects_in(value: JsonValue) -> list[JsonObject]:
    """The objects of a list; other members are left out."""
    if not isinstance(value, list):
        return []
    return [cast(JsonObject, member) for member in cast(list[JsonValue], value) if isinstance(member, dict)]


def text_in(value: JsonValue) -> str:
    """The text as it came, or an empty one; it may hold unpaired surrogates."""
    return value if isinstance(value, str) else ""


def plain_text_in(value: JsonValue) -> str:
    """The text, or an empty one, without unpaired surrogates: for names, ids and words to show."""
    return without_surrogates(text_in(value))


def number_in(value: JsonValue) -> float | int | None:
    """The finite number, or null."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isinstance(value, int) or math.isfinite(value) else None
