"""Where a command writes: data to the real stdout, all else to stderr, and nothing that a terminal would obey."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

# C0 without tab and line feed, DEL, C1, the marks that turn the direction of text around, further line ends, and what
# is there without being seen: text in it reaches a model and no person. The joiners of emoji and scripts are not in it.
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff"
    "\U000e0000-\U000e007f]"
)


def printable(text: str) -> str:
    """Text of a model or a tool for a terminal: control characters become visible pictures instead of commands."""
    return _OBEYED.sub(lambda found: _picture(ord(found[0])), text.replace("\r\n", "\n"))


def _picture(code: int) -> str:
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"<U+{code:04X}>"


def fill_standard_streams() -> None:
    """Puts nothing where stdin, stdout or stderr were closed, so that no file or socket of ours takes their place."""
    for descriptor, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is the closed one
            setattr(sys, name, os.fdopen(descriptor, mode, closefd=False))


@dataclass(frozen=True)
class Terminal:
    """The two outputs of a command and what stands behind them."""

    data: TextIO
    """The real stdout."""
    notes: TextIO
    """For people: stderr, or stdout where everything is."""
    is_live: bool
    """Text is shown as it comes."""
    is_styled: bool
    """Notes may be coloured."""

    def write_data(self, text: str) -> None:
        """Exactly this text to stdout, at once; a terminal gets no control characters."""
        self.data.write(printable(text) if self.data.isatty() else text)
        self.data.flush()

    def write_note(self, text: str) -> None:
        """The same for people."""
        self.notes.write(printable(text) if self.notes.isatty() else text)
        self.notes.flush()


@contextmanager
def open_terminal(*, plain: bool, together: bool = False) -> Generator[Terminal]:
    """While it is open whatever else prints (a tool, a program it starts) goes to stderr, so that data stays data.

    `together` is for a command that has no data: notes and text stand in order on stdout, live in any case.
    """
    plain = plain or bool(os.environ.get("NO_COLOR")) or not sys.stdout.isatty()
    sys.stdout.flush()
    descriptor = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", newline="", closefd=False) as data:
            notes = data if together else sys.stderr
            yield Terminal(data, notes, is_live=together or not plain, is_styled=not plain and notes.isatty())
    finally:
        sys.stdout.flush()
        os.dup2(descriptor, 1)
        os.close(descriptor)
