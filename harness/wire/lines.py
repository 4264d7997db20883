"""Bytes into lines of bounded length (pure)."""

from __future__ import annotations


class LineCutter:
    """Cuts at line feeds. A line that is too long is forgotten as it comes, and told once, when its end is there."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max = max_line_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes | None]:
        """The lines that these bytes complete, without their ends; null for one that was too long."""
        *ends, rest = data.split(b"\n")
        lines = [self._ended(end) for end in ends]
        self._add(rest)
        return lines

    def last(self) -> bytes | None:
        """What came behind the last line feed, at the end of the stream."""
        return self._ended(b"")

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max:
            self._parts = []
        elif part:
            self._parts.append(part)

    def _ended(self, part: bytes) -> bytes | None:
        self._add(part)
        line = None if self._size > self._max else b"".join(self._parts)
        self._parts, self._size = [], 0
        return line
