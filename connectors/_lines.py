"""Bytes into lines, for every peer that speaks one message per line. Pure."""

from typing import Protocol

from harness.errors import PeerProtocolError

DEFAULT_MAX_LINE_BYTES = 64 * 1024 * 1024
_SHOWN_BYTES = 2000


class Framer(Protocol):
    """Cuts a byte stream into messages."""

    @property
    def unfinished_bytes(self) -> int:
        """How much of a message has come whose end has not."""
        ...

    def feed(self, data: bytes) -> list[bytes]:
        """Give the messages that `data` completes.

        Raises:
            PeerProtocolError: the stream cannot be cut any further.
        """
        ...


class LineFramer:
    """Cuts a byte stream at 0x0A and nowhere else; a line is every byte between, undecoded.

    Peers write U+2028, U+0085 and CR inside JSON strings, and a read may end inside a character: whoever decodes
    does it per line. Time is linear in the bytes fed, however long the line and however small the pieces.
    """

    def __init__(self, *, max_line_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._max = max_line_bytes
        self._parts: list[bytes] = []
        self._size = 0
        self._refused: PeerProtocolError | None = None

    @property
    def unfinished_bytes(self) -> int:
        """How much of a line has come whose end has not."""
        return self._size

    def feed(self, data: bytes) -> list[bytes]:
        """Give the lines that `data` completes, without their line feeds.

        Raises:
            PeerProtocolError: a line is longer than allowed. Lines that came whole before it are returned first; then
                this call raises, and every later one, with whatever data: the place where the next line starts is lost.
        """
        if self._refused is not None:
            raise self._refused
        first, *others = data.split(b"\n")
        self._parts.append(first)
        self._size += len(first)
        if self._size > self._max:
            raise self._refuse(b"".join(self._parts))
        if not others:
            return []
        lines = [b"".join(self._parts), *others]
        self._parts = [lines.pop()]
        self._size = len(self._parts[0])
        if len(data) > self._max:
            return self._up_to_the_first_long_one(lines)
        return lines

    def _up_to_the_first_long_one(self, lines: list[bytes]) -> list[bytes]:
        for position, line in enumerate([*lines, *self._parts]):
            if len(line) > self._max:
                error = self._refuse(line)
                if position == 0:
                    raise error
                return lines[:position]
        return lines

    def _refuse(self, line: bytes) -> PeerProtocolError:
        self._refused = PeerProtocolError(
            f"a line of the peer is longer than {self._max} bytes; raise 'max_line_bytes' to accept it",
            line=line[:_SHOWN_BYTES],
        )
        self._parts, self._size = [], 0
        return self._refused
