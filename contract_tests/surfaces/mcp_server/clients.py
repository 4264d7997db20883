"""The `mcp` package's own client on our server, over every way there is to it but a process, in both eras."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client

from contract_tests.llm_suite import Peer, open_house, open_server
from harness.settings import Rights
from harness.surfaces.mcp_server.http import mcp_dialect
from harness.surfaces.mcp_server.server import Offer, build_server
from harness.surfaces.server import Server
from harness.surfaces.tokens import Token
from harness.surfaces.waiters import Waiters

LEGACY, MODERN = "legacy", "2026-07-28"
WAYS = [(way, era) for way in ("memory", "http") for era in (LEGACY, MODERN)]
every_way = pytest.mark.parametrize(("way", "era"), WAYS, ids=[f"{way}-{era}" for way, era in WAYS])

OFFER = Offer(("fake",))
OWNER = Token("secret", "local", Rights(programs=False, cwd_roots=()))


class Filling:
    """A person who fills in each form with the next of these; what they were shown is in `asked`."""

    def __init__(self, *answers: dict[str, Any] | str) -> None:
        self.asked: list[types.ElicitRequestFormParams] = []
        self._answers = list(answers)

    async def __call__(self, context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        assert isinstance(params, types.ElicitRequestFormParams)
        self.asked.append(params)
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            return types.ElicitResult.model_validate({"action": answer})
        return types.ElicitResult(action="accept", content=answer)


@asynccontextmanager
async def open_client(
    way: str,
    era: str,
    script: object,
    peer: Peer | None = None,
    *,
    offer: Offer = OFFER,
    person: ElicitationFnT | None = None,
    seconds: float = 40,
) -> AsyncGenerator[Client]:
    """A client whose server has one connector that follows the script."""
    with anyio.fail_after(seconds):
        if way == "memory":
            async with open_house(script, peer) as house, anyio.create_task_group() as group:
                server = build_server(house, offer, group, Waiters(), OWNER)
                async with Client(server, mode=era, elicitation_callback=person) as client:
                    yield client
                group.cancel_scope.cancel()
        else:
            async with (
                open_server(script, peer, also=(mcp_dialect(offer),)) as server,
                open_http_client(server, era, person) as client,
            ):
                yield client


@asynccontextmanager
async def open_http_client(
    server: Server, era: str = LEGACY, person: ElicitationFnT | None = None, token: int = 0
) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {server.tokens[token].secret}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=era, elicitation_callback=person) as client:
            yield client


async def ask(client: Client, message: str = "hello", **arguments: Any) -> types.CallToolResult:
    return await client.call_tool("ask", {"message": message, **arguments})


async def done(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured content of a call that succeeds; empty where the tool gives nothing."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, told(result)
    return result.structured_content or {}


def facts(result: types.CallToolResult) -> dict[str, Any]:
    return result.structured_content or {}


def told(result: types.CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, types.TextContent)]
