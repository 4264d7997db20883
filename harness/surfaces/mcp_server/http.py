"""The server as one more surface of an HTTP server: streamable HTTP under `/mcp`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio
from anyio.abc import TaskGroup
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.routing import Route
from starlette.types import Message

from harness.surfaces.call import Served
from harness.surfaces.dialect import Dialect
from harness.surfaces.mcp_server.server import Offer, build_server
from harness.surfaces.problems import problem_response
from harness.surfaces.waiters import Waiters

PATH = "/mcp"


def mcp_dialect(offer: Offer) -> Dialect:
    """Bearer token, Host and Origin are judged as for every other surface."""
    return Dialect(PATH, partial(_routes, offer), problem_response)


def _routes(offer: Offer, served: Served, group: TaskGroup) -> Sequence[Route]:
    server = build_server(served.harness, offer, group, served.waiters)
    # as streams of events, never as one JSON body: only there can a client leave, be asked and be told of progress
    manager = StreamableHTTPSessionManager(server, max_request_body_size=served.max_body_bytes)
    group.start_soon(_run, manager, served.waiters)
    return [Route(PATH, StreamableHTTPASGIApp(manager))]


async def _run(manager: StreamableHTTPSessionManager, waiters: Waiters) -> None:
    """Until the server stops: its calls are answered first, then the streams are ended, and the listener last."""
    async with manager.run():
        async with waiters.parked(_never):
            await anyio.sleep_forever()
        await waiters.wait_for(0)


async def _never() -> Message:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")
