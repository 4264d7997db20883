"""Any ASGI application on a loopback port, in this event loop."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, nullcontext
from typing import Any

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from contract_tests.peers.mcp_sdk_server import Peer


class _Quiet(uvicorn.Server):
    def capture_signals(self) -> Any:
        return nullcontext()


@asynccontextmanager
async def serving(app: Any, port: int = 0) -> AsyncGenerator[int]:
    """Serves it; gives the port."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:
        await app(scope, receive, send)

    with closing(listener):
        async with _running(asgi, listener):
            yield listener.getsockname()[1]


@asynccontextmanager
async def _running(asgi: Any, listener: socket.socket) -> AsyncGenerator[None]:
    config = uvicorn.Config(
        asgi, interface="asgi3", lifespan="off", access_log=False, log_config=None, timeout_graceful_shutdown=1
    )
    server = _Quiet(config)
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listener])
        while not server.started:
            await anyio.lowlevel.checkpoint()
        try:
            yield
        finally:
            server.should_exit = True


@asynccontextmanager
async def serving_mcp(peer: Peer, port: int = 0, token: str | None = None) -> AsyncGenerator[int]:
    """The MCP peer over HTTP, for whoever has the token; gives the port."""
    manager = StreamableHTTPSessionManager(peer.server)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        if token is not None and headers.get(b"authorization") != f"Bearer {token}".encode():
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": b"no"})
            return
        await manager.handle_request(scope, receive, send)

    async with manager.run(), serving(app, port) as bound:
        yield bound
