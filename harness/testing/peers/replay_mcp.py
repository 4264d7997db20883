"""Plays the requests of a recorded CLI to the bridge of its connector. Standard library only."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Callable
from typing import Any

from harness.testing.peers.mcp_wire import AnswerReader, connected, request_bytes

_READ_BYTES = 256 * 1024


class McpPlayer:
    """Each request has a thread that listens to its answer and passes on what it says."""

    def __init__(self, heard: Callable[[int, Any], None]) -> None:
        self._heard = heard
        self._open: dict[int, socket.socket] = {}

    def ask(self, exchange: int, port: int, line: str) -> None:
        request = json.loads(line)
        bridge = self._open[exchange] = connected(port)
        bridge.settimeout(None)
        body = request["body"].encode()
        bridge.sendall(request_bytes(port, request["method"], request["path"], request["headers"], body))
        threading.Thread(target=self._listen, args=(exchange, bridge), daemon=True).start()

    def leave(self, exchange: int) -> None:
        with contextlib.suppress(OSError):
            self._open[exchange].shutdown(socket.SHUT_RDWR)

    def _listen(self, exchange: int, bridge: socket.socket) -> None:
        reader = AnswerReader()
        with contextlib.suppress(OSError), bridge:
            while data := bridge.recv(_READ_BYTES):
                for message in reader.feed(data):
                    self._heard(exchange, message)


def port_in(text: str) -> int | None:
    """That of the bridge which a text tells of."""
    found = re.search(r"http://127\.0\.0\.1:(\d+)/[\w-]{32}/mcp", text)
    return int(found[1]) if found else None
