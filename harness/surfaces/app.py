"""The HTTP application that every surface hangs in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from json import dumps

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from harness.surfaces.auth import Guard, Token
from harness.surfaces.call import JSON_TYPE, Served
from harness.surfaces.native import OPERATIONS
from harness.surfaces.openapi import openapi_document
from harness.surfaces.problems import answer_routing_error
from harness.wire.bodies import Health
from harness.wire.json_text import write_json

DISTRIBUTION = "level2-harness"


def build_app(
    served: Served,
    *,
    tokens: Sequence[Token],
    host: str = "127.0.0.1",
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
) -> ASGIApp:
    """The application for a server that is bound to `host`."""
    routes = [Route(one.path, one.endpoint(served), methods=[one.method]) for one in OPERATIONS]
    routes += [Route("/healthz", _health), Route("/openapi.json", _openapi)]
    # the Guard has judged Origin before; this tells browsers that the page may read what it gets
    pages = Middleware(
        CORSMiddleware,
        allow_origins=tuple(allowed_origins),
        allow_methods=("GET", "POST", "PUT", "DELETE"),
        allow_headers=("Authorization", "Content-Type", "Last-Event-ID"),
    )
    app = Starlette(
        routes=routes,
        middleware=[pages] if allowed_origins else [],
        exception_handlers={HTTPException: answer_routing_error},
    )
    return Guard(app, tokens=tokens, host=host, allowed_hosts=allowed_hosts, allowed_origins=allowed_origins)


async def _health(http_request: Request) -> Response:
    return Response(write_json(Health()), media_type=JSON_TYPE)


async def _openapi(http_request: Request) -> Response:
    return Response(_openapi_bytes(), media_type=JSON_TYPE)


@cache
def _openapi_bytes() -> bytes:
    return dumps(openapi_document(OPERATIONS, _version()), separators=(",", ":")).encode()


def _version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"
