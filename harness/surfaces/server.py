"""The server around the application: sockets, start and an orderly stop."""

from __future__ import annotations

import contextlib
import secrets
import socket
import sys
from collections.abc import AsyncGenerator, Collection, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import uvicorn
from starlette.types import ASGIApp

from harness.errors import ConfigError, unwrapped
from harness.local import LOCAL_OWNER
from harness.server_record import is_loopback, recorded
from harness.settings import Rights
from harness.surfaces.app import build_app
from harness.surfaces.call import DEFAULT_MAX_BODY_BYTES, Served, SharedHarness
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.dialect import Dialect
from harness.surfaces.tokens import Token
from harness.surfaces.waiters import Waiters
from harness.wire.bodies import ConnectorInfo

# well above what clients keep idle connections for, so that none is closed just as it is used again
_KEEP_ALIVE_SECONDS = 120
_STOP_SECONDS = 5


@dataclass(frozen=True, slots=True)
class Server:
    """A running server."""

    url: str
    tokens: tuple[Token, ...]
    waiters: Waiters


@asynccontextmanager
async def serve(
    harness: SharedHarness,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    tokens: Sequence[Token] = (),
    connectors: Sequence[str] = (),
    also: Sequence[Dialect] = (),
    allowed_hosts: Collection[str] = (),
    allowed_origins: Collection[str] = (),
    heartbeat_seconds: float = 15.0,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    compatible: CompatibleSettings | None = None,
) -> AsyncGenerator[Server]:
    """The harness over HTTP while the context lasts; port 0 takes a free one; `also` are further surfaces.

    Without tokens one is made, which local clients of this user find by themselves; it may work below the current
    directory and names no programs. Leaving the context refuses new work, answers what waits and then closes the
    listener; the harness is its owner's, who closes it afterwards.

    Raises:
        ConfigError: the address cannot be used, or is reachable from outside while no token was given; or an origin
            or a host that nobody can have.
    """
    if not tokens and not is_loopback(host):
        raise ConfigError(f"host '{host}' can be reached from outside: give a token, by a token file", key="host")
    _check_hosts(allowed_hosts)
    _check_origins(allowed_origins)
    tokens = tuple(tokens) or (local_token(),)
    waiters = Waiters()
    served = Served(
        harness,
        waiters,
        connectors=connectors_of(connectors),
        heartbeat_seconds=heartbeat_seconds,
        max_body_bytes=max_body_bytes,
        compatible=compatible or CompatibleSettings(),
    )
    with unwrapped(), ExitStack() as resources:
        listener = resources.enter_context(_bound_socket(host, port))
        url = _url_of(listener)
        local_url = _local_url(listener)
        if local_url is not None:
            resources.enter_context(recorded(local_url, tokens[0].secret))
        async with anyio.create_task_group() as group:
            app = build_app(
                served,
                group,
                tokens=tokens,
                host=host,
                also=also,
                allowed_hosts=allowed_hosts,
                allowed_origins=allowed_origins,
            )
            async with _running(app, listener, waiters):
                yield Server(url, tokens, waiters)
            group.cancel_scope.cancel()


def _check_hosts(names: Collection[str]) -> None:
    """The port is not looked at in 'Host', so a name with one never fits."""
    for name in names:
        if not name or "/" in name or name.count(":") == 1:
            raise ConfigError(f"'{name}' is no host name: write it without a port or a path", key="allowed_hosts")


def _check_origins(origins: Collection[str]) -> None:
    """One that no browser would send never fits, and nobody would know why."""
    for origin in origins:
        parts = urlsplit(origin)
        if not parts.hostname or origin != f"{parts.scheme}://{parts.netloc}".lower():
            message = f"'{origin}' is no origin of a page; it looks like http://127.0.0.1:8900, without a path"
            raise ConfigError(message, key="allowed_origins")


def connectors_of(names: Sequence[str]) -> tuple[ConnectorInfo, ...]:
    """As callers are told them: the first is the default."""
    return tuple(ConnectorInfo(name=name, is_default=number == 0) for number, name in enumerate(names))


def local_token(secret: str | None = None, directory: Path | None = None, owner: str = LOCAL_OWNER) -> Token:
    """The token of whoever started the server: no programs, and work below one directory only (design 10)."""
    root = (directory or Path.cwd()).resolve()
    return Token(secret or secrets.token_urlsafe(32), owner, Rights(programs=False, cwd_roots=(root,)))


class _Uvicorn(uvicorn.Server):
    """uvicorn without signal handlers of its own, and idle while nothing happens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = anyio.Event()
        self.stop = anyio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.accepting.set()

    async def main_loop(self) -> None:
        await self.on_tick(0)  # sets the headers; uvicorn would do so ten times a second
        await self.stop.wait()


@asynccontextmanager
async def _running(app: ASGIApp, listener: socket.socket, waiters: Waiters) -> AsyncGenerator[None]:
    config = uvicorn.Config(
        app,
        interface="asgi3",
        loop="none",
        http="auto",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    server = _Uvicorn(config)

    async def run() -> None:
        # uvicorn's tasks are not ours to cancel: it always stops in order
        with anyio.CancelScope(shield=True):
            await server.serve(sockets=[listener])

    with unwrapped():
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            with anyio.CancelScope(shield=True):
                await server.accepting.wait()
            try:
                yield
            finally:
                waiters.settle()
                server.stop.set()


@contextlib.contextmanager
def _bound_socket(host: str, port: int) -> Generator[socket.socket]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # asyncio sets TCP_NODELAY only on sockets that say they are TCP; without it each answer takes 40 ms more
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    except OSError as error:
        raise ConfigError(f"cannot listen on '{host}': {error.strerror or error}", key="host") from error
    with listener:
        try:
            if sys.platform != "win32":  # there it would let others take the port as well
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError as error:
            problem = f"cannot listen on '{host}:{port}': {error.strerror or error}; port 0 takes a free one"
            raise ConfigError(problem, key="port") from error
        yield listener


def _url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _local_url(listener: socket.socket) -> str | None:
    """Where programs on this machine reach it; null when only others do."""
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):
        return f"http://127.0.0.1:{port}"
    return _url_of(listener) if is_loopback(host) else None
