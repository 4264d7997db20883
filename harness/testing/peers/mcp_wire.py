"""The second channel of a CLI: HTTP requests to the bridge, read as both ends of it need. Standard library only."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from typing import Any

BRIDGE_URL = re.compile(rb"http://127\.0\.0\.1:(\d+)(?=/[\w-]{32}/mcp)")
_TRANSPORT = ("accept-encoding", "connection", "content-length", "host", "keep-alive", "transfer-encoding")


def request_bytes(port: int, method: str, path: str, headers: Mapping[str, str], body: bytes) -> bytes:
    """As HTTP/1.0: then the answer ends with its connection and has no chunks."""
    kept = {name: value for name, value in headers.items() if name.lower() not in _TRANSPORT}
    lines = [f"{method} {path} HTTP/1.0", f"Host: 127.0.0.1:{port}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in kept.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def meant_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() not in _TRANSPORT}


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), 10)


class AnswerReader:
    """What an answer says, piece by piece: its status, then each message. Signs of life say nothing."""

    def __init__(self) -> None:
        self._data = b""
        self._is_stream: bool | None = None
        self.is_answered = False
        """The answer is there, or there is none to come."""

    def feed(self, data: bytes) -> list[Any]:
        self._data += data
        said: list[Any] = []
        if self._is_stream is None:
            head, end, rest = self._data.partition(b"\r\n\r\n")
            if not end:
                return []
            self._data = rest
            self._is_stream = b"text/event-stream" in head.lower()
            said.append({"status": int(head.split(b" ", 2)[1])})
        said += self._events() if self._is_stream else self._whole()
        self.is_answered |= any("result" in one or "error" in one or one.get("status", 200) != 200 for one in said)
        return said

    def _events(self) -> list[Any]:
        *events, self._data = self._data.split(b"\n\n")
        lines = [line for event in events for line in event.split(b"\n") if line.startswith(b"data:")]
        return [json.loads(line.removeprefix(b"data:")) for line in lines]

    def _whole(self) -> list[Any]:
        try:
            message = json.loads(self._data)
        except ValueError:
            return []
        self._data = b""
        return [message]
