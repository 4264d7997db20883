"""The bridge over HTTP: one listener on loopback for an event loop, one endpoint for each conversation.

`open_endpoint` is all there is to call: the listener starts with the first endpoint and stops with the last. An
endpoint has a path nobody can guess and a bearer token. Answers come as plain JSON, or as a stream whose headers go out
at once and which shows life while a call waits: peers differ in what they give up on.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import uvicorn
from anyio.lowlevel import RunVar
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from bridge_mcp import relay
from bridge_mcp.answers import AnswerMode, send_answer
from bridge_mcp.endpoint import Endpoint, OnCall
from bridge_mcp.protocol import McpServer
from harness.errors import unwrapped

DEFAULT_MAX_BODY_BYTES = 64 * 1024 * 1024
DEFAULT_PROGRESS_SECONDS = 15.0
_STOP_SECONDS = 2
_ENDED = "The conversation ended before this call was answered."


@dataclass(frozen=True, slots=True)
class BridgeAddress:
    """Where the peer finds its tools, and what it must show there."""

    url: str
    token: str = field(repr=False)
    tools_listed: anyio.Event
    """Set once the peer has asked for the tools and was told them."""


def relay_command(address: BridgeAddress) -> tuple[list[str], dict[str, str]]:
    """Command line and environment of the stdio end, for peers that only start processes."""
    program = str(Path(relay.__file__))
    return [sys.executable, "-I", "-S", program], {relay.URL_VARIABLE: address.url, relay.TOKEN_VARIABLE: address.token}


@dataclass(slots=True)
class _Door:
    endpoint: Endpoint
    token: bytes
    mode: AnswerMode
    progress_seconds: float
    max_body_bytes: int
    before_withdrawal: Callable[[], Awaitable[None]] | None


@asynccontextmanager
async def open_endpoint(
    server: McpServer,
    on_call: OnCall,
    *,
    mode: AnswerMode = AnswerMode.JSON,
    progress_seconds: float = DEFAULT_PROGRESS_SECONDS,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    before_withdrawal: Callable[[], Awaitable[None]] | None = None,
) -> AsyncGenerator[BridgeAddress]:
    """Serves one peer while the block lasts; leaving it answers what still waits with an error result.

    A connection that closes withdraws its call once `before_withdrawal` has returned: its peer may have died, which is
    known elsewhere a moment later, and is not the same.
    """
    name, token = secrets.token_urlsafe(24), secrets.token_urlsafe(32)
    listener = _current_listener()
    with unwrapped():
        async with anyio.create_task_group() as calls:
            shows_life = progress_seconds if mode == AnswerMode.STREAM else None
            endpoint = Endpoint(server, on_call, calls, progress_seconds=shows_life)
            door = _Door(endpoint, token.encode(), mode, progress_seconds, max_body_bytes, before_withdrawal)
            url = await listener.add(name, door)
            try:
                yield BridgeAddress(url, token, endpoint.tools_listed)
            finally:
                endpoint.settle(_ENDED)
                with anyio.CancelScope(shield=True):
                    await _leave(listener, name)
                calls.cancel_scope.cancel()


class _Listener:
    """The socket, and which path leads to which endpoint."""

    def __init__(self) -> None:
        self._doors: dict[str, _Door] = {}
        self._changing = anyio.Lock()
        self._uvicorn: uvicorn.Server | None = None
        self._port = 0

    @property
    def is_unused(self) -> bool:
        return not self._doors

    async def add(self, name: str, door: _Door) -> str:
        self._doors[name] = door
        try:
            async with self._changing:
                if self._uvicorn is None:
                    self._uvicorn = await self._start()
        except BaseException:
            del self._doors[name]
            raise
        return f"http://127.0.0.1:{self._port}/{name}/mcp"

    def remove(self, name: str) -> None:
        self._doors.pop(name, None)

    async def stop(self) -> None:
        async with self._changing:
            if self._uvicorn is not None:
                await self._uvicorn.shutdown()

    async def _start(self) -> uvicorn.Server:
        # asyncio sets TCP_NODELAY only on sockets that say they are TCP; without it each answer takes 40 ms more
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.bind(("127.0.0.1", 0))
        self._port = sock.getsockname()[1]
        config = uvicorn.Config(
            self,
            interface="asgi3",
            loop="none",
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_graceful_shutdown=_STOP_SECONDS,
        )
        # started by hand, because `serve` would need a task of its own that no conversation could own for the others
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup([sock])
        return server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._serve(Request(scope, receive), send)

    async def _serve(self, http_request: Request, send: Send) -> None:
        headers = http_request.headers
        # before the token: a page in a browser must not even learn whether it has the right one
        if headers.getlist("host") not in ([f"127.0.0.1:{self._port}"], [f"localhost:{self._port}"]):
            await _refuse(http_request, send, 421, "this address is for programs on this machine")
            return
        if "origin" in headers:
            await _refuse(http_request, send, 403, "web pages have no access")
            return
        door = self._door(http_request.url.path)
        if door is None:
            await _refuse(http_request, send, 404, "no such endpoint")
        elif not _shows(headers, door.token):
            await _refuse(http_request, send, 401, "the bearer token is missing or wrong")
        elif http_request.method != "POST":
            await _refuse(http_request, send, 405, "send messages by POST; there is no stream to listen on")
        else:
            await _post(door, http_request, send)

    def _door(self, path: str) -> _Door | None:
        name, found, rest = path.removeprefix("/").partition("/")
        return self._doors.get(name) if found and rest == "mcp" else None


async def _post(door: _Door, http_request: Request, send: Send) -> None:
    try:
        body = await _body(http_request, door.max_body_bytes)
    except ClientDisconnect:
        return
    if body is None:
        await _refuse(http_request, send, 413, f"a message may have {door.max_body_bytes} bytes")
        return
    try:
        message = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        await _refuse(http_request, send, 400, "the body is no JSON")
        return
    exchange = door.endpoint.received(message)
    try:
        if exchange.is_request:
            await send_answer(door.mode, exchange, http_request.receive, send, ping_seconds=door.progress_seconds)
        else:
            await Response(status_code=202)(http_request.scope, http_request.receive, send)
        if exchange.is_request and not exchange.has_answer and door.before_withdrawal is not None:
            await door.before_withdrawal()
    finally:
        door.endpoint.left(exchange)


async def _body(http_request: Request, limit: int) -> bytes | None:
    """Null when it is too long."""
    parts: list[bytes] = []
    size = 0
    async for part in http_request.stream():
        size += len(part)
        if size > limit:
            return None
        parts.append(part)
    return b"".join(parts)


async def _refuse(http_request: Request, send: Send, status: int, text: str) -> None:
    headers = {"allow": "POST"} if status == 405 else {}
    response = Response(f"{text}\n", status_code=status, headers=headers, media_type="text/plain")
    await response(http_request.scope, http_request.receive, send)


def _shows(headers: Headers, token: bytes) -> bool:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return hmac.compare_digest(given.strip().encode(), token) and scheme.lower() == "bearer"


_CURRENT: RunVar[_Listener | None] = RunVar("bridge listener", None)


def _current_listener() -> _Listener:
    """The running event loop's listener, made now if there is none."""
    listener = _CURRENT.get()
    if listener is None:
        listener = _Listener()
        _CURRENT.set(listener)
    return listener


async def _leave(listener: _Listener, name: str) -> None:
    """Takes the endpoint away, and stops the listener with the last one."""
    listener.remove(name)
    if listener.is_unused:
        if _CURRENT.get() is listener:
            _CURRENT.set(None)
        await listener.stop()
