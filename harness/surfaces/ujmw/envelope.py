"""What is around the arguments and around the result: the reserved members, faults and the side channel (pure).

A reply has only `return`, `fault` and `_`: clients read it forward and take members of unknown objects for its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from harness.contract.value import JsonValue
from harness.errors import HarnessError, InvalidArgument
from harness.wire.json_text import read_plain
from harness.wire.ujmw import FAULT, RETURN, SIDE_CHANNEL

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HIDDEN = "the call failed; the server's log has the details"


@dataclass(frozen=True, slots=True)
class UjmwCall:
    """What a client sends: named arguments, and texts beside them that are none."""

    arguments: Mapping[str, JsonValue]
    side_channel: Mapping[str, str] | None
    """Null where the client sent none; an empty one says that it would read ours."""


def read_call(data: bytes | bytearray) -> UjmwCall:
    """What the body says.

    Raises:
        InvalidArgument: it is no JSON object.
    """
    text = bytes(data).removeprefix(_BYTE_ORDER_MARK)
    if not text.strip():
        raise InvalidArgument("the body is empty; an operation without arguments takes '{}'")
    value = read_plain(text, "the body", finite=True)
    if not isinstance(value, dict):
        raise InvalidArgument("the body is no JSON object: send the arguments as its members")
    members = cast(dict[str, JsonValue], value)
    return UjmwCall(
        {name: member for name, member in members.items() if name != SIDE_CHANNEL},
        _side_channel(members.get(SIDE_CHANNEL)),
    )


def _side_channel(value: JsonValue) -> Mapping[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidArgument("the member '_' is no object of texts")
    entries = {name: entry for name, entry in cast(dict[str, JsonValue], value).items() if entry is not None}
    if not all(isinstance(entry, str) for entry in entries.values()):
        raise InvalidArgument("the member '_' holds something that is no text")
    return entries


def write_result(value: JsonValue, *, is_void: bool) -> bytes:
    """A void operation has no `return`: a null there would be the result of a function."""
    return _written({} if is_void else {RETURN: value})


def write_fault(error: HarnessError, *, hide_details: bool = False, tells_more: bool = False) -> bytes:
    """`[code] message`; `tells_more` puts what a program needs beside it, for a client that has a side channel."""
    fault = {FAULT: f"[{error.code}] {HIDDEN if hide_details else error.message}"}
    if not tells_more or hide_details:
        return _written(fault)
    more = {"code": error.code, "retryable": str(error.retryable).lower(), "detailJson": error.detail_json}
    return _written({**fault, SIDE_CHANNEL: {name: text for name, text in more.items() if text is not None}})


def _written(members: JsonValue) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode("ascii")
