"""Shell commands as a policy sees them: surely one plain command, or everything that might be run in it.

Not a shell parser: one that disagrees with the real shell in one case is a hole. Whatever is not obviously plain is
treated as if it could do anything.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

_SPECIAL = frozenset(";&|<>(){}$`\\!#")
_SPECIAL_IN_DOUBLE_QUOTES = frozenset("$`\\!")
# fmt: off
_KEYWORDS = frozenset((
    "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "select", "function",
    "time", "coproc", "[[", "]]", "in",
))
_RUNS_ITS_ARGUMENTS = _KEYWORDS | frozenset((
    "sudo", "doas", "su", "env", "command", "builtin", "exec", "eval", "nice", "nohup", "timeout", "stdbuf", "setsid",
    "ionice", "xargs", "find", "parallel", "watch", "sh", "bash", "zsh", "dash", "ksh", "fish", "busybox", "chroot",
    "unshare", "ssh", "script", "strace", "flock", "trap",
))
# fmt: on
_OPERATORS = re.compile(r"[;&|\n\r(){}`]+|\$\(")
_REDIRECTION = re.compile(r"(?<!\d)\d*(?:<<<?|>>|<>|>\||[<>])&?\s*[^\s<>;&|(){}`$]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_LONGEST = 100
"""Words of a command inside another one that are looked at, so that a long text costs no more than its length."""
_QUOTES = str.maketrans("", "", "'\"\\")


def is_plain(command: str) -> bool:
    """Whether this is one simple command for every shell: no operator, substitution, redirection or environment
    prefix, no escape, no comment, no line break, balanced quotes, and a first word that is written out.
    """
    if not command or command != command.strip(" ") or any(_is_odd(character) for character in command):
        return False
    first = command.split(" ", 1)[0]
    if first in _KEYWORDS or "=" in first or any(mark in first for mark in "'\"*?[~"):
        return False
    quote: str | None = None
    for character in command:
        if quote == "'":
            quote = None if character == "'" else quote
        elif quote == '"':
            if character in _SPECIAL_IN_DOUBLE_QUOTES:
                return False
            quote = None if character == '"' else quote
        elif character in "'\"":
            quote = character
        elif character in _SPECIAL:
            return False
    return quote is None


def possible_commands(command: str) -> Iterator[str]:
    """Everything in it that a shell might run, each with single spaces and without quotes; rather too much than too
    little. What is put together at run time (variables, encoded text) nobody can find this way.
    """
    yield command
    yield _normal(command)
    for part in _OPERATORS.split(_REDIRECTION.sub(" ", command)):
        words = part.translate(_QUOTES).split()
        while words and (_ASSIGNMENT.match(words[0]) or words[0] == "!"):
            words = words[1:]
        if not words:
            continue
        yield from _forms(words)
        if _base_name(words[0]) in _RUNS_ITS_ARGUMENTS:
            for start in range(1, len(words)):
                yield from _forms(words[start : start + _LONGEST])


def argv_command(words: Sequence[str]) -> str | None:
    """The command line that an argument list stands for; null where joining could change its meaning."""
    if len(words) == 3 and _base_name(words[0]) in ("sh", "bash", "zsh", "dash") and words[1] in ("-c", "-lc"):
        return words[2]
    line = " ".join(words)
    quotes = any(mark in word for word in words for mark in "'\"*?[~ ")
    return line if is_plain(line) and not quotes and all(words) else None


def _forms(words: Sequence[str]) -> Iterator[str]:
    yield " ".join(words)
    if "/" in words[0]:
        yield " ".join((_base_name(words[0]), *words[1:]))


def _normal(command: str) -> str:
    return " ".join(command.translate(_QUOTES).split())


def _base_name(word: str) -> str:
    return word.rstrip("/").rpartition("/")[2]


def _is_odd(character: str) -> bool:
    """Control and format characters, and every space but the ordinary one: shells and people read them differently."""
    return (character != " " and not character.isascii() and unicodedata.category(character)[0] in "CZ") or (
        character.isascii() and not character.isprintable()
    )
