"""One HTTP/1.1 connection of a client of the scripted model: requests in, answers out, departure seen.

h11 knows the protocol, this file moves the bytes. A web server would do the same, but hides what a scripted model is
for: where one chunk ends, cutting a stream in the middle, seeing the client go while nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import anyio
import h11
from anyio.abc import SocketStream

from harness.scripted_model.dialect import Reply


class ClientLeft(Exception):
    """The client closed the connection."""


@dataclass(frozen=True)
class HttpRequest:
    """A request with its whole body; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """Reads and answers requests one after the other; every method raises `ClientLeft` when the client is gone."""

    def __init__(self, socket: SocketStream) -> None:
        self._socket = socket
        self._http = h11.Connection(h11.SERVER)

    async def next_request(self) -> HttpRequest | None:
        """The next request; None when the connection is at its end or cannot go on."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        elif self._http.our_state is not h11.IDLE:
            return None
        try:
            return await self._read_request()
        except h11.RemoteProtocolError as error:
            await self._refuse(error)
            return None

    async def send_reply(self, reply: Reply, *, without_body: bool = False) -> None:
        """Send a whole answer; `without_body` for HEAD, whose headers are those of the answer."""
        headers = {**reply.headers, "content-length": str(len(reply.body))}
        await self._send(h11.Response(status_code=reply.status, headers=list(headers.items())))
        if reply.body and not without_body:
            await self._send(h11.Data(data=reply.body))
        await self._send(h11.EndOfMessage())

    async def start_stream(self, headers: Mapping[str, str], status: int = 200) -> None:
        chunked = [*headers.items(), ("transfer-encoding", "chunked")]
        await self._send(h11.Response(status_code=status, headers=chunked))

    async def send_chunk(self, data: bytes) -> None:
        """Send one chunk, on its way before this returns (anyio sets TCP_NODELAY)."""
        await self._send(h11.Data(data=data))

    async def end_stream(self) -> None:
        await self._send(h11.EndOfMessage())

    async def wait_for_departure(self) -> None:
        """Returns when the client closes the connection."""
        while await self._receive():
            pass

    async def _read_request(self) -> HttpRequest | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                if self._http.they_are_waiting_for_100_continue:
                    await self._send(h11.InformationalResponse(status_code=100, headers=[]))
                if not await self._receive() and head is None:
                    return None
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage) and head is not None:
                headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
                return HttpRequest(head.method.decode(), head.target.decode("latin-1"), headers, bytes(body))
            else:
                return None

    async def _refuse(self, error: h11.RemoteProtocolError) -> None:
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            text = f"not a usable HTTP request: {error}".encode()
            await self.send_reply(Reply(error.error_status_hint, text, {"connection": "close"}))

    async def _receive(self) -> bool:
        """Feed what arrives to h11; false when nothing more will come."""
        try:
            data = await self._socket.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            data = b""
        self._http.receive_data(data)
        return bool(data)

    async def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if not data:
            return
        try:
            await self._socket.send(data)
        except anyio.BrokenResourceError:
            raise ClientLeft from None
