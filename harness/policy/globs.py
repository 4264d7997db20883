"""Wildcards, in time that grows with the text and no faster: what is matched comes from a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def text_fits(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """`*` is any text, `?` one character; everything else is what it is."""
    if ignore_case:
        pattern, text = pattern.casefold(), text.casefold()
    return _fits(pattern, text, "*", lambda wanted, found: wanted in ("?", found))


def command_fits(pattern: str, command: str, *, ignore_case: bool = False) -> bool:
    """Like a text, but ` *` at the end is optional: `git diff *` is also `git diff`, and never `git difftool`."""
    bare = pattern.removesuffix(" *")
    return text_fits(pattern, command, ignore_case=ignore_case) or (
        bare != pattern and text_fits(bare, command, ignore_case=ignore_case)
    )


def path_fits(pattern: str, path: str, *, ignore_case: bool = False) -> bool:
    """Name by name: `**` is any number of names, also none; `*` and `?` stay within one. `\\*` is the character."""
    if ignore_case:
        pattern, path = pattern.casefold(), path.casefold()
    return _fits(_names(pattern), _names(path), "**", _name_fits)


def escaped(name: str) -> str:
    """A path as a pattern that means just this path."""
    return "".join(f"\\{character}" if character in "*?\\" else character for character in name)


def is_literal(pattern: str) -> bool:
    return not set(pattern) & set("*?")


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name]


def _name_fits(pattern: str, name: str) -> bool:
    tokens: list[str] = []
    is_escaped = False
    for character in pattern:
        if is_escaped or character != "\\":
            tokens.append("\\" + character if is_escaped else character)
        is_escaped = character == "\\" and not is_escaped
    return _fits(tokens, name, "*", lambda wanted, found: wanted == "?" or wanted.removeprefix("\\") == found)


def _fits(pattern: Sequence[str], text: Sequence[T], star: str, same: Callable[[str, T], bool]) -> bool:
    """The last star that was passed takes one more whenever what follows it does not fit."""
    wanted = found = 0
    last_star, resume_at = -1, 0
    while found < len(text):
        if wanted < len(pattern) and pattern[wanted] == star:
            last_star, resume_at = wanted, found
            wanted += 1
        elif wanted < len(pattern) and same(pattern[wanted], text[found]):
            wanted += 1
            found += 1
        elif last_star >= 0:
            resume_at += 1
            wanted, found = last_star + 1, resume_at
        else:
            return False
    return all(one == star for one in pattern[wanted:])
