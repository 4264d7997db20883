"""A host for the bridge's tests: calls arrive on its desk and wait there until the test answers them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from bridge_mcp.http import BridgeAddress, open_endpoint
from bridge_mcp.protocol import CallRaised, McpServer

READ = {"readOnlyHint": True}
ECHO: dict[str, Any] = {"name": "echo", "inputSchema": {"type": "object"}, "annotations": READ, "_meta": {"a/b": 5}}


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}], **fields}


def server(tools: list[dict[str, Any]] | None = None) -> McpServer:
    return McpServer(tools or [ECHO], call_id_of=lambda params: (params.get("_meta") or {}).get("id"))


class Desk:
    """The calls in order of arrival, and those that were withdrawn."""

    def __init__(self) -> None:
        self.calls: list[CallRaised] = []
        self.withdrawn: list[str] = []
        self._changed = anyio.Event()
        self._answers: dict[str, Any] = {}

    async def on_call(self, call: CallRaised) -> dict[str, Any]:
        self.calls.append(call)
        self._change()
        try:
            await self._until(lambda: call.key in self._answers)
        except anyio.get_cancelled_exc_class():
            self.withdrawn.append(call.key)
            self._change()
            raise
        answer = self._answers[call.key]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def answer(self, key: str, result: Any) -> None:
        self._answers[key] = result
        self._change()

    async def holds(self, number: int) -> list[CallRaised]:
        await self._until(lambda: len(self.calls) >= number)
        return self.calls

    async def has_withdrawn(self, key: str) -> None:
        await self._until(lambda: key in self.withdrawn)

    def _change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def _until(self, reached: Any) -> None:
        while not reached():
            await self._changed.wait()


def request(rpc_id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}


def call(rpc_id: Any, call_id: str | None = None, arguments: Any = None, token: Any = None) -> dict[str, Any]:
    meta = {name: value for name, value in (("id", call_id), ("progressToken", token)) if value is not None}
    return request(rpc_id, "tools/call", name="echo", arguments=arguments or {}, _meta=meta)


def headers(address: BridgeAddress) -> dict[str, str]:
    return {"authorization": f"Bearer {address.token}"}


@asynccontextmanager
async def http_client(address: BridgeAddress) -> AsyncGenerator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(headers=headers(address), timeout=5, trust_env=False) as client:
        yield client


@asynccontextmanager
async def mcp_client(address: BridgeAddress, **options: Any) -> AsyncGenerator[Client]:
    """The `mcp` package as the peer."""
    async with httpx2.AsyncClient(headers=headers(address), timeout=5, trust_env=False) as http:
        transport = streamable_http_client(address.url, http_client=http, max_sse_event_size=None)
        async with Client(transport, **options) as client:
            yield client


@asynccontextmanager
async def bridge(desk: Desk, **options: Any) -> AsyncGenerator[BridgeAddress]:
    async with open_endpoint(server(options.pop("tools", None)), desk.on_call, **options) as address:
        yield address
