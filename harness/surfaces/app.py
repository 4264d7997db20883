"""The HTTP application that every surface hangs in."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from json import dumps

from anyio.abc import TaskGroup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from harness.errors import InvalidArgument
from harness.surfaces.anthropic.surface import ANTHROPIC
from harness.surfaces.auth import Guard
from harness.surfaces.call import JSON_TYPE, Served
from harness.surfaces.compatible.headers import CONVERSATION, IGNORED
from harness.surfaces.dialect import NATIVE, Dialect, dialect_for
from harness.surfaces.native import OPERATIONS
from harness.surfaces.openai.surface import OPENAI
from harness.surfaces.openapi import openapi_document
from harness.surfaces.tokens import Token
from harness.surfaces.ujmw.surface import UJMW
from harness.wire.bodies import Health
from harness.wire.json_text import write_json

DISTRIBUTION = "level2-harness"
DIALECTS: tuple[Dialect, ...] = (NATIVE, OPENAI, UJMW, ANTHROPIC)


def build_app(
    served: Served,
    group: TaskGroup,
    *,
    tokens: Sequence[Token],
    host: str = "127.0.0.1",
    also: Sequence[Dialect] = (),
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
) -> ASGIApp:
    """The application for a server that is bound to `host`; work that outlives a request goes into `group`.

    `also` are surfaces that not every server has, or has in another way: they stand before those with their prefix.
    """
    dialects = (*also, *DIALECTS)
    routes = [route for dialect in dialects for route in dialect.routes(served, group)]
    routes += [Route("/healthz", _health), Route("/openapi.json", _openapi)]
    # the Guard has judged Origin before; this tells browsers that the page may read what it gets
    pages = Middleware(
        CORSMiddleware,
        allow_origins=tuple(allowed_origins),
        allow_methods=("GET", "POST", "PUT", "DELETE"),
        allow_headers=("*",),  # each provider's package has headers of its own
        expose_headers=(CONVERSATION, IGNORED),
    )
    app = Starlette(
        routes=routes,
        middleware=[pages] if allowed_origins else [],
        exception_handlers={HTTPException: partial(_answer_routing_error, dialects)},
    )
    return Guard(
        app,
        tokens=tokens,
        host=host,
        dialects=dialects,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
    )


def base_urls(url: str) -> dict[str, str]:
    """What clients of providers take for a base URL, by the provider."""
    return {dialect.clients: url + dialect.prefix for dialect in DIALECTS if dialect.clients is not None}


async def _answer_routing_error(dialects: Sequence[Dialect], http_request: Request, error: Exception) -> Response:
    """What Starlette itself refuses: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    path = http_request.url.path
    nothing = f"no '{http_request.method} {path}' here"
    meant = next((dialect for dialect in dialects if path.endswith(dialect.asked)), None)
    if meant is not None and error.status_code == 404:
        url = str(http_request.base_url).rstrip("/") + meant.prefix
        return meant.refusal(InvalidArgument(f"{nothing}; the base URL of {meant.clients} clients is '{url}'"), 404)
    message = f"{nothing}; '/openapi.json' lists what there is"
    return dialect_for(path, dialects).refusal(InvalidArgument(message), error.status_code)


async def _health(http_request: Request) -> Response:
    return Response(write_json(Health()), media_type=JSON_TYPE)


async def _openapi(http_request: Request) -> Response:
    return Response(_openapi_bytes(), media_type=JSON_TYPE)


@cache
def _openapi_bytes() -> bytes:
    parts = [dialect.described() for dialect in DIALECTS if dialect.described is not None]
    return dumps(openapi_document(OPERATIONS, package_version(), parts), separators=(",", ":")).encode()


def package_version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "unknown"
