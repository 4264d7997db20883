"""What changed between a recorded trace and the one of now, in words (pure)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any, cast

_SHOWN_CHARS = 160


def changes(recorded: Sequence[str], found: Sequence[str]) -> list[str]:
    """One sentence per line that is gone, new or different; empty when nothing changed."""
    told: list[str] = []
    for tag, from_line, to_line, from_new, to_new in difflib.SequenceMatcher(
        None, recorded, found, autojunk=False
    ).get_opcodes():
        if tag == "equal":
            continue
        old, new = [*recorded[from_line:to_line]], [*found[from_new:to_new]]
        while old and new and _kind(old[0]) == _kind(new[0]):
            told.append(_difference(old.pop(0), new.pop(0)))
        told += [f"no longer sends {_named(line)}" for line in old]
        told += [f"now sends {_named(line)}" for line in new]
    return told


def _kind(line: str) -> str:
    return str(_item(line).get("kind", line))


def _item(line: str) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(line)) if line.startswith("{") else {}


def _named(line: str) -> str:
    item = _item(line)
    kind = str(item.pop("kind", "")).replace("_", " ")
    return f"{kind} {_shown(item) if item else line}".strip()


def _difference(old: str, new: str) -> str:
    """The fields of one item that differ."""
    before, after = _item(old), _item(new)
    fields = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    parts = [f"{name} was {_shown(before.get(name))}, is {_shown(after.get(name))}" for name in fields]
    return f"{_kind(old).replace('_', ' ')}: {'; '.join(parts)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
