"""Answers the requests of an HTTP client for as long as it listens."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio
from anyio.abc import SocketAttribute, SocketStream

from harness.errors import unwrapped
from harness.scripted_model.connection import ClientLeft, Connection, HttpRequest

Answer: TypeAlias = Callable[[Connection, HttpRequest], Awaitable[bool]]
"""Answers one request; false ends the connection, and a client that leaves cancels it."""


@asynccontextmanager
async def open_loopback(answer: Answer) -> AsyncGenerator[str]:
    """A server on 127.0.0.1 that answers so; gives its address."""

    async def serve(socket: SocketStream) -> None:
        async with socket:
            connection = Connection(socket)
            try:
                while (request := await connection.next_request()) is not None:
                    if not await _while_heard(connection, request, answer):
                        return
            except ClientLeft:
                return

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    with unwrapped():
        async with listener, anyio.create_task_group() as clients:
            clients.start_soon(listener.serve, serve)
            yield f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
            clients.cancel_scope.cancel()


async def _while_heard(connection: Connection, request: HttpRequest, answer: Answer) -> bool:
    goes_on = False
    with unwrapped():
        async with anyio.create_task_group() as answering:

            async def stop_when_client_leaves() -> None:
                await connection.wait_for_departure()
                answering.cancel_scope.cancel()

            answering.start_soon(stop_when_client_leaves)
            goes_on = await answer(connection, request)
            answering.cancel_scope.cancel()
    return goes_on
