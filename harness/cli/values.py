"""What options mean that are more than a word: durations, `KEY=VALUE` pairs, lists with commas."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from harness.errors import InvalidArgument

_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_DAYS = re.compile(r"(\d+(?:\.\d+)?)\s*d")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMgG])?[bB]?")
_CHARACTERS = {"": 1, "k": 1000, "m": 1_000_000, "g": 1_000_000_000}


def milliseconds(duration: str | None, option: str) -> int | None:
    """`90s`, `10m`, `2h`, or seconds.

    Raises:
        InvalidArgument: it is none of these.
    """
    if duration is None:
        return None
    found = _DURATION.fullmatch(duration.strip())
    value = int(float(found[1]) * _MILLISECONDS[found[2] or "s"]) if found else 0
    if value < 1:
        raise InvalidArgument(f"{option}: '{duration}' is no duration; write 90s, 10m, 2h, or seconds")
    return value


def age_ms(age: str | None, option: str) -> int | None:
    """A duration, or days: `30d`.

    Raises:
        InvalidArgument: it is neither.
    """
    days = _DAYS.fullmatch((age or "").strip())
    return milliseconds(age, option) if days is None else int(float(days[1]) * 86_400_000)


def characters(size: str | None, option: str) -> int | None:
    """`500M`, `2G`, `100k`, or bytes.

    Raises:
        InvalidArgument: it is none of these.
    """
    if size is None:
        return None
    found = _SIZE.fullmatch(size.strip())
    if found is None:
        raise InvalidArgument(f"{option}: '{size}' is no size; write 500M, 2G, 100k, or bytes")
    return int(float(found[1]) * _CHARACTERS[(found[2] or "").lower()])


def pairs(options: Iterable[str], name: str = "--option") -> dict[str, Any]:
    """`KEY=VALUE`, each value read as JSON; what is no JSON is a text.

    Raises:
        InvalidArgument: there is no key or no `=`.
    """
    result: dict[str, Any] = {}
    for option in options:
        key, sign, text = option.partition("=")
        if not sign or not key:
            raise InvalidArgument(f"{name}: '{option}' is no KEY=VALUE")
        try:
            result[key] = json.loads(text)
        except ValueError:
            result[key] = text
    return result


def names(lists: Iterable[str]) -> list[str]:
    """`a,b` and a repeated option alike."""
    return [name for part in lists for name in (piece.strip() for piece in part.split(",")) if name]
