"""Stands between a connector and its provider and writes down every request and every chunk of the answers."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import anyio
import h11
from anyio.abc import SocketStream

from harness.scripted_model.connection import ClientLeft, Connection, HttpRequest
from harness.testing.peers.exchanges import as_text, keys_in, meaning_of, without_keys
from harness.testing.peers.heard import open_loopback

_TRANSPORT = ("connection", "content-length", "date", "server", "transfer-encoding")


class HttpTee:
    """`records` are the lines of the recording."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 80
        self._begun = time.monotonic()
        self._exchanges = 0
        self.records: list[dict[str, Any]] = []

    async def answer(self, connection: Connection, request: HttpRequest) -> bool:
        self._exchanges += 1
        number = self._exchanges
        self._add(number, **{"from": "host", "line": without_keys(meaning_of(request), keys_in(request))})
        ending = "left"
        try:
            ending = await self._pass_on(number, connection, request)
        except ClientLeft:
            pass
        finally:
            self._add(number, end=ending)
        return ending == "complete"

    def _add(self, exchange: int, **record: Any) -> None:
        at = round((time.monotonic() - self._begun) * 1000)
        self.records.append({"at": at, "exchange": exchange, **record})

    async def _pass_on(self, number: int, connection: Connection, request: HttpRequest) -> str:
        async with await anyio.connect_tcp(self._host, self._port) as socket:
            answer = _Upstream(socket)
            try:
                status, headers, is_chunked = await answer.ask(request, f"{self._host}:{self._port}")
                self._add(number, **{"from": "peer", "status": status, "headers": headers})
                await connection.start_stream(headers, status)
                async for chunk in answer.chunks(is_whole=not is_chunked):
                    self._add(number, **{"from": "peer", "chunk": as_text(chunk)})
                    await connection.send_chunk(chunk)
            except (h11.RemoteProtocolError, anyio.EndOfStream, anyio.BrokenResourceError):
                return "cut"
            await connection.end_stream()
            return "complete"


class _Upstream:
    """One request to the provider, on a connection of its own."""

    def __init__(self, socket: SocketStream) -> None:
        self._socket = socket
        self._http = h11.Connection(h11.CLIENT)

    async def ask(self, request: HttpRequest, host: str) -> tuple[int, dict[str, str], bool]:
        """Status, headers, and whether the body comes in chunks."""
        kept = [(name, value) for name, value in request.headers.items() if name not in _TRANSPORT and name != "host"]
        # what is packed cannot be read in a recording
        plain = [(name, value) for name, value in kept if name != "accept-encoding"]
        headers = [("host", host), *plain, ("content-length", str(len(request.body)))]
        head = h11.Request(method=request.method, target=request.path, headers=headers)
        sent = [self._http.send(event) for event in (head, h11.Data(data=request.body), h11.EndOfMessage())]
        await self._socket.send(b"".join(part or b"" for part in sent))
        while not isinstance(event := await self._next(), h11.Response):
            if isinstance(event, h11.ConnectionClosed):
                raise anyio.EndOfStream
        told = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
        meant = {name: value for name, value in told.items() if name not in _TRANSPORT}
        return event.status_code, meant, told.get("transfer-encoding") == "chunked"

    async def chunks(self, *, is_whole: bool) -> AsyncIterator[bytes]:
        """The chunks as the provider cut them; a body that was sent whole is one."""
        chunk = bytearray()
        while not isinstance(event := await self._next(), h11.EndOfMessage):
            if isinstance(event, h11.ConnectionClosed):
                raise anyio.EndOfStream
            if isinstance(event, h11.Data):
                chunk += event.data
                if event.chunk_end and not is_whole:
                    yield bytes(chunk)
                    chunk.clear()
        if chunk:
            yield bytes(chunk)

    async def _next(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            try:
                self._http.receive_data(await self._socket.receive())
            except anyio.EndOfStream:
                self._http.receive_data(b"")


@asynccontextmanager
async def open_http_tee(target: str) -> AsyncGenerator[tuple[str, HttpTee]]:
    """The address to be used in the place of the target's, and what is written down there."""
    tee = HttpTee(target)
    async with open_loopback(tee.answer) as url:
        yield url, tee
