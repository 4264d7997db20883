"""Stands between a CLI and the bridge of its connector and writes down what goes over HTTP. Standard library only."""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.testing.peers.mcp_wire import BRIDGE_URL, AnswerReader, connected, meant_headers, request_bytes

_READ_BYTES = 256 * 1024


class McpTee:
    """A door of its own for each port of a bridge that the CLI is told of."""

    def __init__(self, add: Callable[..., None]) -> None:
        self._add = add
        self._doors: dict[int, int] = {}
        self._exchanges = 0
        self._lock = threading.Lock()

    def redirected(self, text: bytes) -> bytes:
        """The text as the CLI is to read it: with our port in the place of the bridge's."""
        return BRIDGE_URL.sub(lambda found: b"http://127.0.0.1:%d" % self._door(int(found[1])), text)

    def _door(self, port: int) -> int:
        if port not in self._doors:
            tee = self

            class Handler(BaseHTTPRequestHandler):
                protocol_version = "HTTP/1.1"

                def do_POST(self) -> None:
                    tee.pass_on(self, port)

                do_GET = do_DELETE = do_POST

                def log_message(self, format: str, *args: object) -> None:
                    pass  # stderr is the CLI's

            server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, daemon=True).start()
            self._doors[port] = server.server_address[1]
        return self._doors[port]

    def pass_on(self, request: BaseHTTPRequestHandler, port: int) -> None:
        body = request.rfile.read(int(request.headers.get("content-length") or 0))
        request.close_connection = True
        with self._lock:
            self._exchanges += 1
            exchange = self._exchanges
        headers = dict(request.headers.items())
        said = {
            "method": request.command,
            "path": request.path,
            "headers": meant_headers(headers),
            "body": body.decode(),
        }
        self._say(exchange, "peer", said)
        with connected(port) as bridge:
            bridge.sendall(request_bytes(port, request.command, request.path, headers, body))
            if not self._answer(exchange, bridge, request.connection):
                self._add(**{"from": "peer", "channel": "mcp", "exchange": exchange, "end": "left"})

    def _answer(self, exchange: int, bridge: socket.socket, client: socket.socket) -> bool:
        """False when the CLI left before its answer had come."""
        reader = AnswerReader()
        while True:
            ready, _, _ = select.select([bridge, client], [], [])
            if client in ready:
                return reader.is_answered  # on a connection that is closed after one answer nothing else can come
            data = bridge.recv(_READ_BYTES)
            for message in reader.feed(data):
                self._say(exchange, "host", message)
            if not data:
                return True
            try:
                client.sendall(data)
            except OSError:
                return reader.is_answered

    def _say(self, exchange: int, who: str, message: object) -> None:
        line = json.dumps(message, ensure_ascii=False)
        self._add(**{"from": who, "channel": "mcp", "exchange": exchange, "line": line})
