"""What sets one surface apart from another: where it hangs, how it is asked for leave and how it says no."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from anyio.abc import TaskGroup
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.routing import Route

from harness.errors import HarnessError
from harness.surfaces.call import Served
from harness.surfaces.native import OPERATIONS
from harness.surfaces.openapi import OpenApiPart
from harness.surfaces.problems import problem_response


def bearer_of(headers: Headers) -> str | None:
    """The secret after `Authorization: Bearer`."""
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() or None if scheme.lower() == "bearer" else None


@dataclass(frozen=True, slots=True)
class Dialect:
    """One surface of a server."""

    prefix: str
    """Paths that are it or lie below it are answered by this surface."""
    routes: Callable[[Served, TaskGroup], Sequence[Route]]
    """Made once per server; the task group is the server's, for work that outlives a request."""
    refusal: Callable[[HarnessError, int], Response]
    """An error of the server itself (a wrong token, an unknown path) with its status, as this wire says it."""
    secret_of: Callable[[Headers], str | None] = bearer_of
    without_token: Callable[[str, str], bool] = lambda method, path: False
    """Whether this method on this path is open to everybody."""

    clients: str | None = None
    """Whose clients take the prefix for their base URL; `harness serve` tells it."""
    asked: tuple[str, ...] = ()
    """Ends of paths that only these clients ask for: elsewhere they have another base URL, and are told this one."""
    described: Callable[[], OpenApiPart] | None = None
    """What `/openapi.json` says about it beside the native operations."""

    def answers(self, path: str) -> bool:
        path = path.lower()  # some wires know no case in paths; a refusal fits them all the same
        return path == self.prefix or path.startswith(self.prefix.rstrip("/") + "/")


def dialect_for(path: str, dialects: Iterable[Dialect]) -> Dialect:
    """The surface that a path belongs to; the native one where none does."""
    return next((dialect for dialect in dialects if dialect.answers(path)), NATIVE)


def _native_routes(served: Served, group: TaskGroup) -> Sequence[Route]:
    return [Route(one.path, one.endpoint(served), methods=[one.method]) for one in OPERATIONS]


NATIVE = Dialect(
    "/v1",
    _native_routes,
    problem_response,
    without_token=lambda method, path: path == "/healthz",
)
