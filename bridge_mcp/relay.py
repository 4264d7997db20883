"""The bridge for peers that only start processes: MCP over stdio on one side, our HTTP endpoint on the other.

    python -I -S relay.py            # HARNESS_BRIDGE_URL and HARNESS_BRIDGE_TOKEN in its environment

Standard library only and light to import: a peer may wait for its tools no longer than a quarter of a second. One
message goes to the endpoint at a time; the next one follows when the endpoint has taken it, which the headers of its
streamed answer say. So their order stays, while any number of answers are waited for. It never sends anything twice,
and it ends when its input does.
"""

import json
import os
import select
import socket
import sys

URL_VARIABLE = "HARNESS_BRIDGE_URL"
TOKEN_VARIABLE = "HARNESS_BRIDGE_TOKEN"
_READ_BYTES = 256 * 1024
_CONNECT_SECONDS = 5.0


class _Splitter:
    """Pieces of a stream that end in `end`, however it is cut; a long one is joined once."""

    def __init__(self, end: bytes) -> None:
        self._end = end
        self._parts = [b""]

    def feed(self, data: bytes) -> list[bytes]:
        # the end may be cut in two: one byte of what came before is enough to see it
        if self._end not in self._parts[-1][-1:] + data:
            self._parts.append(data)
            return []
        *whole, rest = b"".join((*self._parts, data)).split(self._end)
        self._parts = [rest]
        return whole


class _Exchange:
    """One message on its way: a connection of its own, whose answer is a stream of events."""

    def __init__(self, relay: "Relay", message: bytes) -> None:
        self.message = message
        self.is_taken = False
        self.has_answer = False
        self._head = b""
        self._events = _Splitter(b"\n\n")
        self.socket = socket.create_connection(relay.address, _CONNECT_SECONDS)
        self.socket.sendall(relay.head % len(message) + message)
        self.socket.settimeout(None)

    def receive(self) -> list[bytes]:
        """The messages that one read completes; the socket is closed after the last."""
        data = self.socket.recv(_READ_BYTES)
        if not data:
            self.socket.close()
        if not self.is_taken:
            self._head, end, data = (self._head + data).partition(b"\r\n\r\n")
            if not end:
                return []
            if self._head.split(b" ", 2)[1:2] not in ([b"200"], [b"202"]):
                raise ConnectionError(f"it refused a message: {self._head.splitlines()[0].decode('latin-1')}")
            self.is_taken = True
        events = self._events.feed(data)
        messages = [line[6:] for event in events for line in event.split(b"\n") if line.startswith(b"data: ")]
        self.has_answer |= any(b'"method"' not in one or "method" not in json.loads(one) for one in messages)
        return messages


class Relay:
    def __init__(self, url: str, token: str) -> None:
        host_and_port, _, path = url.removeprefix("http://").partition("/")
        host, _, port = host_and_port.partition(":")
        self.address = (host, int(port))
        # 1.0: the answer ends with its connection, so there are no chunks to take apart
        self.head = (
            f"POST /{path} HTTP/1.0\r\nHost: {host_and_port}\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nAccept: text/event-stream\r\nContent-Length: "
        ).encode() + b"%d\r\n\r\n"
        self._waiting: list[bytes] = []
        self._exchanges: list[_Exchange] = []

    def run(self, source: int, target: int) -> None:
        """Until the input ends. What is still open then is dropped, which withdraws it at the host."""
        lines = _Splitter(b"\n")
        while True:
            ready, _, _ = select.select([source, *(e.socket for e in self._exchanges)], [], [])
            for exchange in [e for e in self._exchanges if e.socket in ready]:
                self._receive(exchange, target)
            if source in ready:
                data = os.read(source, _READ_BYTES)
                if not data:
                    return
                self._waiting += [line for line in lines.feed(data) if line.strip()]
            self._send_next(target)

    def _send_next(self, target: int) -> None:
        while self._waiting and all(exchange.is_taken for exchange in self._exchanges):
            message = self._waiting.pop(0)
            try:
                self._exchanges.append(_Exchange(self, message))
            except OSError as error:
                _write(target, _failed(message, error))

    def _receive(self, exchange: _Exchange, target: int) -> None:
        """A request whose connection ends without an answer is told so, and never sent again."""
        problem: OSError = ConnectionError("it closed the connection")
        try:
            for message in exchange.receive():
                _write(target, message)
        except OSError as error:
            problem = error
            exchange.socket.close()
        if exchange.socket.fileno() < 0:
            self._exchanges.remove(exchange)
            if not exchange.has_answer:
                _write(target, _failed(exchange.message, problem))


def _failed(message: bytes, error: OSError) -> bytes:
    """The error for a request; nothing for a message that wants no answer."""
    try:
        asked = json.loads(message)
    except ValueError:
        return b""
    if not isinstance(asked, dict) or "id" not in asked or "method" not in asked:
        return b""
    told = {"code": -32000, "message": f"the host of this tool gives no answer: {error}"}
    return json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": told}).encode()


def _write(target: int, message: bytes) -> None:
    if not message:
        return
    data = message + b"\n"
    while data:
        data = data[os.write(target, data) :]


def main() -> None:
    url, token = os.environ.get(URL_VARIABLE), os.environ.get(TOKEN_VARIABLE)
    if not url or not token:
        sys.exit(f"{URL_VARIABLE} and {TOKEN_VARIABLE} must be in the environment")
    try:
        Relay(url, token).run(0, 1)
    except BrokenPipeError:
        sys.exit(0)  # nobody reads the answers any more


if __name__ == "__main__":
    main()
