"""A plain HTTP client for the native surface, as a stranger would use it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from harness.surfaces.server import Server
from harness.wire.sse import ServerSentEvent, SseReader


def client_of(server: Server, *, token: int | None = 0, **headers: str) -> httpx2.AsyncClient:
    """A client with one of the server's tokens, or none."""
    authorization = {} if token is None else {"Authorization": f"Bearer {server.tokens[token].secret}"}
    return httpx2.AsyncClient(base_url=server.url, headers={**authorization, **headers}, trust_env=False, timeout=10)


async def begin_turn(client: httpx2.AsyncClient, text: str = "hello") -> str:
    """A new conversation with a running turn; gives the turn's path."""
    created = (await client.post("/v1/conversations", json={})).raise_for_status().json()
    conversation = f"/v1/conversations/{created['conversation_id']}"
    body = {"content": [{"type": "text", "text": text}]}
    submitted = (await client.post(f"{conversation}/turns", json=body)).raise_for_status().json()
    return f"{conversation}/turns/{submitted['turn_id']}"


class EventReader:
    """An open stream: its status, its raw bytes so far, and one event after the other."""

    def __init__(self, response: httpx2.Response) -> None:
        self.response = response
        self.raw = b""
        self._reader = SseReader()
        self._chunks = response.aiter_bytes()
        self._ready: list[ServerSentEvent] = []

    async def next(self) -> ServerSentEvent | None:
        """Null at the end of the stream."""
        while not self._ready:
            try:
                chunk = await anext(self._chunks)
            except StopAsyncIteration:
                return None
            self.raw += chunk
            self._ready += self._reader.feed(chunk)
        return self._ready.pop(0)

    async def until_bytes(self, wanted: bytes, times: int = 1) -> None:
        while self.raw.count(wanted) < times:
            self.raw += await anext(self._chunks)

    async def rest(self) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events


@asynccontextmanager
async def open_events(
    client: httpx2.AsyncClient, path: str, last_event_id: str | None = None, **params: int
) -> AsyncGenerator[EventReader]:
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_event_id} if last_event_id is not None else {})
    async with client.stream("GET", path, params=params, headers=headers) as response:
        yield EventReader(response)


def state_of(event: ServerSentEvent | None) -> dict[str, Any]:
    assert event is not None
    return json.loads(event.data)


def numbers(states: list[dict[str, Any]]) -> list[int]:
    return [item["sequence_no"] for state in states for item in state.get("new_output_items", [])]


def problem_of(response: httpx2.Response) -> Mapping[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert problem["status"] == response.status_code
    return problem


async def chunked(data: bytes, size: int = 65536) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]
