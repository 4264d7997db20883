"""A service on the network, as tool sources call it: one client, no redirects, answers of a bounded size."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import httpx2

from harness.contract.content import ContentBlock, ImageBlock, ResourceBlock, TextBlock
from harness.errors import ConfigError, ConnectorUnavailable
from harness.orchestrator.tool_provider import without_surrogates

Primitive: TypeAlias = str | int | float | bool | None

CALL_SECONDS = 600.0
CONNECT_SECONDS = 10.0
MAX_ANSWER_BYTES = 16 * 1024 * 1024


class CallFailed(Exception):
    """There is no usable answer; the text says why, for the model and for people."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    media_type: str
    body: bytes

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        return without_surrogates(self.body.decode(errors="replace"))

    def json(self) -> Any:
        """Raises:
        CallFailed: the body is no JSON.
        """
        try:
            return json.loads(self.body)
        except ValueError as error:
            raise CallFailed(f"the service answered with something that is not JSON: {self.text[:200]!r}") from error

    def blocks(self, url: str) -> list[ContentBlock]:
        """The body as content: images as images, text and JSON as they came, all else as data."""
        if self.media_type.startswith("image/"):
            return [ImageBlock(data=b64encode(self.body).decode(), media_type=self.media_type)]
        if not self.body or self.media_type.startswith("text/") or self.is_json or not self.media_type:
            return [TextBlock(text=self.text)]
        return [ResourceBlock(uri=url, media_type=self.media_type, data=b64encode(self.body).decode())]

    @property
    def is_json(self) -> bool:
        return self.media_type == "application/json" or self.media_type.endswith("+json")


class HttpService:
    """Where requests go, with the headers that let us in: those never follow a redirect to somebody else."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def call(
        self,
        method: str,
        url: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """The answer, whatever its status.

        Raises:
            CallFailed: the service cannot be reached, redirects, takes too long or says too much.
        """
        # null leaves the URL's own query alone
        params: list[tuple[str, Primitive]] | None = list(query) or None
        try:
            async with self._http.stream(method, url, params=params, headers=headers, content=body) as response:
                if response.is_redirect:
                    where = response.headers.get("location", "")
                    raise CallFailed(f"the service redirects to '{where}', which is not followed; use that address")
                received = bytearray()
                async for chunk in response.aiter_bytes():
                    received += chunk
                    if len(received) > MAX_ANSWER_BYTES:
                        raise CallFailed(f"the service's answer is longer than {MAX_ANSWER_BYTES} bytes")
        except httpx2.TimeoutException as error:
            raise CallFailed(f"the service did not answer in time ({type(error).__name__})") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise CallFailed(f"the service cannot be reached: {error or type(error).__name__}") from error
        media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        return Answer(response.status_code, media_type, bytes(received))


@asynccontextmanager
async def open_service(
    headers: Mapping[str, str] | None = None, *, call_seconds: float = CALL_SECONDS
) -> AsyncGenerator[HttpService]:
    timeout = httpx2.Timeout(call_seconds, connect=CONNECT_SECONDS)
    async with httpx2.AsyncClient(headers=dict(headers or {}), timeout=timeout, trust_env=False) as http:
        yield HttpService(http)


def is_same_origin(first: str, second: str) -> bool:
    """Scheme, host and port: what one may know the other may."""
    one, other = httpx2.URL(first), httpx2.URL(second)
    return (one.scheme, one.host, one.port) == (other.scheme, other.host, other.port)


async def read_document(service: HttpService, location: str) -> Any:
    """A JSON or YAML document from a URL or a file.

    Raises:
        ConnectorUnavailable: the service does not give it.
        ConfigError: there is no such file, or it is no such document.
    """
    if location.startswith(("http://", "https://")):
        try:
            answer = await service.call("GET", location)
        except CallFailed as error:
            raise ConnectorUnavailable(f"cannot read '{location}': {error}", reason="tools_unavailable") from error
        if not answer.is_ok:
            raise ConnectorUnavailable(
                f"cannot read '{location}': the service answered with status {answer.status}",
                reason="tools_unavailable",
            )
        text = answer.text
    else:
        try:
            text = Path(location).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise ConfigError(f"cannot read '{location}': {error}", file=location) from error
    try:
        return json.loads(text)
    except ValueError:
        return _yaml(text, location)


def _yaml(text: str, location: str) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"'{location}' is neither JSON nor YAML: {reason}", file=location) from error
