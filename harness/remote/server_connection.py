"""One server as its client sees it: calls and streams, with our errors for whatever goes wrong on the way."""

from __future__ import annotations

import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

import httpx2

from harness.contract.value import Value
from harness.errors import HarnessError, InvalidArgument, PeerLost, PeerProtocolError, Unauthorized
from harness.server_record import find_local_token, is_loopback
from harness.wire.json_text import read_json, write_json
from harness.wire.problem import decode_problem

V = TypeVar("V", bound=Value)

_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 120.0
"""How long a call may go unanswered, beyond what it asked the server to wait."""
_SILENCE_SECONDS = 60.0
"""A stream has a heartbeat at least every 15 s; one that is silent for this long is dead."""
# below what servers keep idle connections for, so that none is closed just as it is used again
_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=50, keepalive_expiry=30.0)


class StreamCut(Exception):
    """An event stream broke off; whether the server is gone shows when it is opened again."""


class ServerConnection:
    """HTTP to one server. Connections are pooled and kept; a call that fails says whether the server is gone."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArgument(f"'{url}' is no server's URL; it looks like http://127.0.0.1:8080")
        self.url = url.rstrip("/")
        self._token = token
        self._has_token = token is not None
        self._is_local = is_loopback(parts.hostname)
        self._is_plain = parts.scheme == "http"
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        token = self._token or find_local_token(self.url)
        self._has_token = token is not None
        self._client = httpx2.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {token}"} if token is not None else {},
            # reading the machine's certificates takes longer than a call; plain HTTP needs none
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if self._is_plain else True,
            trust_env=not self._is_local,  # no proxy between two programs of one machine
            limits=_LIMITS,
            timeout=httpx2.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS, pool=None),
        )
        await self._client.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.__aexit__(kind, error, traceback)

    async def get(self, kind: type[V], path: str, params: Mapping[str, int] | None = None, *, wait_ms: int = 0) -> V:
        """A value of the server, which may take `wait_ms` to answer."""
        timeout = httpx2.Timeout(_ANSWER_SECONDS + wait_ms / 1000, connect=_CONNECT_SECONDS, pool=None)
        try:
            response = await self._send("GET", path, params=params, timeout=timeout)
        except (httpx2.ReadError, httpx2.RemoteProtocolError):
            # a kept connection may be closed under us; if the server is gone, connecting again tells
            response = await self._answered("GET", path, params=params, timeout=timeout)
        except httpx2.TransportError as error:
            raise self._lost(error) from error
        return self.read(kind, self._checked(response))

    async def call(self, method: str, path: str, body: Value | None = None) -> None:
        self._checked(await self._answered(method, path, body=body))

    async def call_for(
        self,
        kind: type[V],
        method: str,
        path: str,
        body: Value | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> V:
        return self.read(kind, self._checked(await self._answered(method, path, body=body, headers=headers)))

    @asynccontextmanager
    async def events(
        self, path: str, params: Mapping[str, int], headers: Mapping[str, str]
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of an event stream.

        Raises:
            PeerLost: the server cannot be reached.
            StreamCut: it could, but the stream broke off.
        """
        try:
            async with self._open_client().stream(
                "GET",
                path,
                params=params,
                headers={"Accept": "text/event-stream", **headers},
                timeout=httpx2.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS, pool=None),
            ) as response:
                if response.status_code != 200:
                    await response.aread()
                    self._checked(response)
                async with aclosing(response.aiter_bytes()) as chunks:
                    yield chunks
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise self._lost(error) from error
        except httpx2.TransportError as error:
            raise StreamCut(_reason(error)) from error

    def read(self, kind: type[V], data: bytes) -> V:
        """A value that the server sent.

        Raises:
            PeerProtocolError: it sent something else.
        """
        try:
            return read_json(kind, data, f"the answer of the server at '{self.url}'")
        except InvalidArgument as error:
            raise PeerProtocolError(error.message, line=data[:200]) from error

    def lost(self, reason: str) -> PeerLost:
        return PeerLost(f"the server at '{self.url}' is gone: {reason}", url=self.url)

    async def _answered(
        self,
        method: str,
        path: str,
        *,
        body: Value | None = None,
        params: Mapping[str, int] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
    ) -> httpx2.Response:
        try:
            return await self._send(method, path, body=body, params=params, headers=headers, timeout=timeout)
        except httpx2.TransportError as error:
            raise self._lost(error) from error

    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: Value | None = None,
        params: Mapping[str, int] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
    ) -> httpx2.Response:
        content = write_json(body) if body is not None else None
        content_type = {"Content-Type": "application/json"} if body is not None else {}
        client = self._open_client()
        request = client.build_request(
            method,
            path,
            content=content,
            headers={**content_type, **(headers or {})},
            params=params,
            timeout=timeout if timeout is not None else httpx2.USE_CLIENT_DEFAULT,
        )
        return await client.send(request)

    def _checked(self, response: httpx2.Response) -> bytes:
        if response.is_success:
            return response.content
        raise self._with_hint(decode_problem(response.content, response.status_code))

    def _with_hint(self, error: HarnessError) -> HarnessError:
        if isinstance(error, Unauthorized) and not self._has_token:
            return Unauthorized(
                f"the server at '{self.url}' wants a token, and this user runs no server there: give its token"
            )
        return error

    def _lost(self, error: httpx2.TransportError) -> PeerLost:
        if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
            told = f"the server at '{self.url}' is gone, or was not started: it cannot be reached ({_reason(error)})"
            return PeerLost(told, url=self.url)
        if isinstance(error, httpx2.ReadTimeout):
            return self.lost("it did not answer in time")
        return self.lost(f"the connection broke off ({_reason(error)}), so the call may or may not have been done")

    def _open_client(self) -> httpx2.AsyncClient:
        if self._client is None:
            raise RuntimeError("RemoteHarness is used before 'async with'")
        return self._client


def _reason(error: BaseException) -> str:
    """The innermost reason that says something."""
    text = str(error)
    cause = error.__cause__ or error.__context__
    while cause is not None:
        text = str(cause) or text
        cause = cause.__cause__ or cause.__context__
    return text or type(error).__name__
