"""Bytes into messages, for peers that write the length of each before it (`Content-Length: 12`). Pure."""

from __future__ import annotations

from connectors._json import JsonObject, compact_json
from connectors._lines import DEFAULT_MAX_LINE_BYTES
from harness.errors import PeerProtocolError

_END_OF_HEAD = b"\r\n\r\n"
_MAX_HEAD = 4096


def framed(message: JsonObject) -> bytes:
    """The message with its length before it."""
    body = compact_json(message).encode()
    return b"Content-Length: %d%s%s" % (len(body), _END_OF_HEAD, body)


class LengthFramer:
    """Cuts a byte stream where its lengths say. Time is linear in the bytes fed, however they are cut."""

    def __init__(self, *, max_message_bytes: int = DEFAULT_MAX_LINE_BYTES) -> None:
        self._max = max_message_bytes
        self._head = b""
        self._parts: list[bytes] = []
        self._missing: int | None = None
        self._size = 0

    @property
    def unfinished_bytes(self) -> int:
        """How much of a message has come whose end has not."""
        return self._size + len(self._head)

    def feed(self, data: bytes) -> list[bytes]:
        """Give the bodies that `data` completes.

        Raises:
            PeerProtocolError: a head without a length, or a message longer than allowed.
        """
        messages: list[bytes] = []
        while data:
            if self._missing is None:
                data = self._read_head(data)
            if self._missing is not None:
                part, data = data[: self._missing], data[self._missing :]
                self._parts.append(part)
                self._size += len(part)
                self._missing -= len(part)
                if self._missing == 0:
                    messages.append(b"".join(self._parts))
                    self._parts, self._missing, self._size = [], None, 0
        return messages

    def _read_head(self, data: bytes) -> bytes:
        head, end, rest = (self._head + data).partition(_END_OF_HEAD)
        if not end:
            self._head = head
            if len(head) > _MAX_HEAD:
                raise PeerProtocolError("a message of the peer has no length", line=head)
            return b""
        self._head = b""
        self._missing = self._length(head)
        return rest

    def _length(self, head: bytes) -> int:
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
                if length > self._max:
                    raise PeerProtocolError(
                        f"a message of the peer has {length} bytes; raise 'max_line_bytes' to accept it", line=head
                    )
                return length
        raise PeerProtocolError("a message of the peer has no length", line=head)
