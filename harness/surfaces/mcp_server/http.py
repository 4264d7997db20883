"""The server as one more surface of an HTTP server: streamable HTTP under `/mcp`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio
from anyio.abc import TaskGroup
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from harness.surfaces.call import Served
from harness.surfaces.dialect import Dialect
from harness.surfaces.mcp_server.server import Offer, build_server
from harness.surfaces.problems import problem_response
from harness.surfaces.tokens import token_of
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
    return [Route(PATH, _OwnSessions(StreamableHTTPASGIApp(manager)))]


class _OwnSessions:
    """Tells the package whose request it is: a session answers only to the token's owner that opened it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        owner = token_of(Request(scope)).owner
        # the secret itself is nothing that the package needs to know
        scope["user"] = AuthenticatedUser(AccessToken(token="", client_id=owner, scopes=[]))
        await self._app(scope, receive, send)


async def _run(manager: StreamableHTTPSessionManager, waiters: Waiters) -> None:
    """Until the server stops: its calls are answered first, then the streams are ended, and the listener last."""
    async with manager.run():
        async with waiters.parked(_never):
            await anyio.sleep_forever()
        await waiters.wait_for(0)


async def _never() -> Message:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")
