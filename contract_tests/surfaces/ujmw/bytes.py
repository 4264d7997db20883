"""A client that sends literal bytes over a socket, and reads what comes back with h11."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anyio
import h11

from harness.surfaces.server import Server

SERVICE = "/ujmw/IConversationalLLM"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json; charset=utf-8"
        return json.loads(self.body)

    @property
    def text(self) -> str:
        assert self.headers["content-type"] == "text/plain; charset=utf-8"
        return self.body.decode()


async def sent(server: Server, data: bytes) -> Reply:
    """The reply to the bytes of one request; `HOST` and `TOKEN` in them stand for the server's."""
    address = urlsplit(server.url)
    assert address.hostname and address.port
    known = {b"HOST": address.netloc.encode(), b"TOKEN": server.tokens[0].secret.encode()}
    for word, meant in known.items():
        data = data.replace(word, meant)
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method=data.split(b" ", 1)[0], target="/", headers=[("Host", "h")]))
    connection.send(h11.EndOfMessage())
    async with await anyio.connect_tcp(address.hostname, address.port) as stream:
        await stream.send(data)
        status, headers, body = 0, dict[str, str](), b""
        while True:
            event = connection.next_event()
            match event:
                case h11.NEED_DATA:
                    try:
                        connection.receive_data(await stream.receive())
                    except anyio.EndOfStream:
                        connection.receive_data(b"")
                case h11.InformationalResponse():
                    pass  # the answer to 'Expect: 100-continue'
                case h11.Response():
                    status = event.status_code
                    headers = {name.decode(): value.decode() for name, value in event.headers}
                case h11.Data():
                    body += bytes(event.data)
                case _:
                    return Reply(status, headers, body)


def post(operation: str, body: bytes, *more: bytes, service: str = SERVICE) -> bytes:
    """What the stock client sends, byte for byte."""
    head = [
        f"POST {service}/{operation} HTTP/1.1".encode(),
        b"Host: HOST",
        b"Authorization: Bearer TOKEN",
        *(more or (b"Content-Type: application/json; charset=utf-8", b"Content-Length: %d" % len(body))),
    ]
    return b"\r\n".join(head) + b"\r\n\r\n" + body


def chunked(body: bytes, size: int) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))


async def called(server: Server, operation: str, service: str = SERVICE, /, **arguments: Any) -> Any:
    """The reply's members, of a call with indented JSON."""
    body = json.dumps(arguments, indent=2, ensure_ascii=False).encode()
    reply = await sent(server, post(operation, body, service=service))
    assert reply.status == 200
    return reply.json
