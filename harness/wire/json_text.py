"""Contract values <-> JSON bytes (pure).

What is written is ASCII: line separators and astral characters inside strings are escapes, so that no reader on the
way can take them for a line's end or cut them. What is read may hold unpaired surrogates, which pydantic and UTF-8
refuse: in text they become U+FFFD, in `..._json` strings they stay the escapes they are in JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from math import isinf
from typing import TypeVar, cast

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from harness.contract.value import JsonValue, Value
from harness.errors import InvalidArgument

V = TypeVar("V", bound=Value)

_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPES = re.compile(r"\\(?:u[dD][89abAB]\w{2}\\u[dD][c-fC-F]\w{2}|(u[dD][89a-fA-F]\w{2})|.)", re.ASCII)
"""Every escape in a JSON text, a pair of surrogates as one; an unpaired one is the group."""
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# An escaped surrogate (of a pair or not), or one that was encoded as bytes.
_MAY_HAVE_SURROGATES = re.compile(rb"\\u[dD][89abAB]|\\u[dD][c-fC-F]|\xed[\xa0-\xbf]")


def write_json(value: Value) -> bytes:
    """The value as ASCII JSON, nulls omitted."""
    try:
        return value.model_dump_json(exclude_none=True, ensure_ascii=True).encode("ascii")
    except PydanticSerializationError:
        plain = _without_surrogates(value.model_dump(mode="json", exclude_none=True))
        return json.dumps(plain, separators=(",", ":")).encode("ascii")


def read_json(kind: type[V], data: bytes | bytearray, what: str = "the body") -> V:
    """The value that the JSON text stands for.

    Raises:
        InvalidArgument: no UTF-8, no JSON or not such a value; `detail.errors` lists each field.
    """
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        if not _is_unreadable(error) or not _MAY_HAVE_SURROGATES.search(data):
            raise invalid_value(error, what) from None
    try:
        return kind.model_validate(_without_surrogates(json.loads(_decoded(data, what))))
    except ValidationError as error:
        raise invalid_value(error, what) from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidArgument(f"{what} is not JSON: {error}") from None


def read_plain(data: bytes | bytearray, what: str, *, finite: bool = False) -> JsonValue:
    """The JSON value as plain Python; unpaired surrogates in it are U+FFFD.

    Raises:
        InvalidArgument: no UTF-8, or no JSON; where only `finite` numbers will do, also `NaN`, `Infinity` and `1e999`.
    """
    try:
        text = _decoded(data, what)
        value: JsonValue = (
            json.loads(text, parse_constant=_no_number, parse_float=_finite) if finite else json.loads(text)
        )
        return _without_surrogates(value) if _MAY_HAVE_SURROGATES.search(data) else value
    except (ValueError, RecursionError) as error:
        raise InvalidArgument(f"{what} is not JSON: {error}") from None


def with_paired_surrogates(text: str) -> str:
    """The JSON text with U+FFFD for unpaired surrogates, and everything else in it letter by letter as it was."""
    if _SURROGATE_ESCAPE.search(text) is None:
        return text
    return _ESCAPES.sub(lambda found: "\\ufffd" if found[1] else found[0], text)


def _no_number(text: str) -> JsonValue:
    """Python reads and writes `NaN` and its like; a peer's reader of JSON does not."""
    raise ValueError(f"'{text}' is no number")


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError(f"the number '{text[:40]}' is too large")
    return number


def _is_unreadable(error: ValidationError) -> bool:
    return any(one["type"] == "json_invalid" for one in error.errors(include_input=False, include_url=False))


def _decoded(data: bytes | bytearray, what: str) -> str:
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{what} is not UTF-8: byte {error.start} does not belong there") from None


def _without_surrogates(value: JsonValue, name: str = "") -> JsonValue:
    if isinstance(value, str):
        escaped = name.endswith(("_json", "Json"))
        return _SURROGATE.sub(_as_escape if escaped else "\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(member, name) for member in cast(list[JsonValue], value)]
    if isinstance(value, Mapping):
        members = cast(Mapping[str, JsonValue], value)
        return {_SURROGATE.sub("\ufffd", key): _without_surrogates(member, key) for key, member in members.items()}
    return value


def _as_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def invalid_value(error: ValidationError, what: str, *, spelled: Callable[[str], str] = str) -> InvalidArgument:
    """Names each field, as the wire spells it; never its value, which may be a secret."""
    found = [
        (".".join(spelled(str(part)) for part in one["loc"]), one["msg"]) for one in error.errors(include_input=False)
    ]
    field, message = found[0]
    about = f"'{field}' of {what}" if field else what
    return InvalidArgument(
        f"{about} cannot be used: {message}", errors=[{"field": field, "message": message} for field, message in found]
    )
