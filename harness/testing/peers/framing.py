"""Where the messages in a pipe end: with the line, or where the length before them says. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Literal, TypeAlias

Framing: TypeAlias = Literal["line", "length", "none"]
"""`none`: what was left when the pipe ended."""
_HEAD = b"content-length:"


def messages_in(pipe: IO[bytes]) -> Iterator[tuple[bytes, Framing]]:
    """Each message as it is complete. A peer that tells lengths begins with a head, never with JSON."""
    while line := pipe.readline():
        if not line.lower().startswith(_HEAD):
            yield line.removesuffix(b"\n"), "line" if line.endswith(b"\n") else "none"
            continue
        while pipe.readline().strip():
            pass  # further lines of the head say nothing
        yield pipe.read(int(line[len(_HEAD) :])), "length"


def framed(message: bytes, framing: Framing) -> bytes:
    """The message as it goes through the pipe."""
    match framing:
        case "line":
            return message + b"\n"
        case "length":
            return b"Content-Length: %d\r\n\r\n%s" % (len(message), message)
        case "none":
            return message
