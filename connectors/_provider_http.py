"""HTTP to a model's provider: one client per conversation, streamed answers, errors as ours."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx2

from connectors._json import JsonObject
from harness.contract.value import JsonValue
from harness.errors import ProviderError
from harness.model_loop.provider_errors import error_of

CONNECT_SECONDS = 10.0
LOOKUP_SECONDS = 10.0


def is_loopback(url: str) -> bool:
    """Then no proxy of the machine is asked."""
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


class ProviderClient:
    """Requests to one provider. Cancelling one closes its connection, so that the provider stops."""

    def __init__(self, http: httpx2.AsyncClient, provider: str) -> None:
        self._http = http
        self.provider = provider

    async def lookup(self, method: str, path: str, body: JsonObject | None = None) -> JsonValue:
        """A short question with a short answer.

        Raises:
            HarnessError: the provider refused, or cannot be reached (`ProviderError`, reason `network`).
        """
        try:
            response = await self._http.request(method, path, json=body, timeout=LOOKUP_SECONDS)
        except httpx2.HTTPError as error:
            raise ProviderError(f"{self.provider} cannot be reached: {_text(error)}", reason="network") from error
        parsed = _parsed(response.content)
        if response.is_error:
            raise error_of(response.status_code, parsed, response.headers, self.provider)
        return parsed

    @asynccontextmanager
    async def stream(self, path: str, body: JsonObject) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The answer's bytes as they come, each item one read.

        Raises:
            HarnessError: as `lookup`; a connection that breaks meanwhile too.
        """
        try:
            async with self._http.stream("POST", path, content=json.dumps(body).encode(), headers=_JSON) as response:
                if response.is_error:
                    parsed = _parsed(await response.aread())
                    raise error_of(response.status_code, parsed, response.headers, self.provider)
                yield response.aiter_bytes()
        except httpx2.HTTPError as error:
            raise ProviderError(
                f"the connection to {self.provider} failed: {_text(error)}", reason="network"
            ) from error


_JSON = {"content-type": "application/json"}


@asynccontextmanager
async def open_provider(
    url: str, provider: str, headers: Mapping[str, str] | None = None
) -> AsyncGenerator[ProviderClient]:
    """A client for the server at this address. Silence is the turn's affair, so reads have no limit."""
    timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)
    trust_env = not is_loopback(url)
    async with httpx2.AsyncClient(base_url=url, timeout=timeout, trust_env=trust_env, headers=headers) as http:
        yield ProviderClient(http, provider)


def _parsed(data: bytes) -> JsonValue:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
