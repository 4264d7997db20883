"""What an edit would change, as a diff for the person who is asked about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from pathlib import Path
from typing import cast

from harness.cli.activity import Line, Style
from harness.contract.value import JsonValue

SHOWN_LINES = 60
MAX_FILE_BYTES = 1_000_000
_OLD, _NEW = ("old_string", "oldString", "old_text", "old_str"), ("new_string", "newString", "new_text", "new_str")
_WHOLE = ("content", "file_text", "new_source")
_PATHS = ("file_path", "filePath", "path", "notebook_path")


def preview(arguments_json: str | None, directory: Path | None) -> Iterator[Line]:
    """The lines of the diff; none where the arguments are no edit. Files are looked at only below a directory here."""
    change = _change(arguments_json, directory)
    if change is None:
        return
    before, after = change
    lines = [line for line in unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)][2:]
    for line in lines[:SHOWN_LINES]:
        style = {"+": Style.GOOD, "-": Style.BAD}.get(line[:1], Style.QUIET)
        yield Line(style, f"  {line}")
    if len(lines) > SHOWN_LINES:
        yield Line(Style.QUIET, f"  ... {len(lines) - SHOWN_LINES} more lines of the diff")


def _change(arguments_json: str | None, directory: Path | None) -> tuple[str, str] | None:
    try:
        arguments: JsonValue = json.loads(arguments_json or "null")
    except (ValueError, RecursionError):
        return None
    if not isinstance(arguments, dict):
        return None
    members = cast(Mapping[str, JsonValue], arguments)
    old, new, whole = _text(members, _OLD), _text(members, _NEW), _text(members, _WHOLE)
    if new is not None:
        return old or "", new
    if whole is not None:
        return _file_now(_text(members, _PATHS), directory), whole
    return None


def _text(members: Mapping[str, JsonValue], names: tuple[str, ...]) -> str | None:
    return next((members[name] for name in names if isinstance(members.get(name), str)), None)


def _file_now(path: str | None, directory: Path | None) -> str:
    """What would be replaced; nothing where that is not an ordinary, readable text below the directory."""
    if path is None or directory is None:
        return ""
    try:
        real = (directory / path).resolve()
        if not real.is_relative_to(directory.resolve()) or not real.is_file() or real.stat().st_size > MAX_FILE_BYTES:
            return ""
        return real.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
