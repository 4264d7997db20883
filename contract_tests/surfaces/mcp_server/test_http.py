"""Over HTTP: one more surface of a server, behind the same door as every other."""

from __future__ import annotations

from typing import Any

import anyio
import httpx2
import pytest
from mcp.shared.exceptions import MCPError

from contract_tests.llm_suite import Peer, open_house, open_server
from contract_tests.requirements import requirement
from contract_tests.surfaces.http import client_of, problem_of
from contract_tests.surfaces.mcp_server.clients import (
    LEGACY,
    MODERN,
    OFFER,
    ask,
    done,
    facts,
    open_http_client,
    told,
)
from harness.settings import Rights
from harness.surfaces.mcp_server.http import mcp_dialect
from harness.surfaces.server import Server, serve
from harness.surfaces.tokens import Token

HELLO = [[{"text": "hi"}]]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "stranger", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def greeting(client: httpx2.AsyncClient, **headers: str) -> Any:
    return client.post("/mcp", json=INITIALIZE, headers={**ACCEPT, **headers})


@requirement("mcp-server:http", "R-K3")
async def test_the_door_is_that_of_every_surface() -> None:
    async with open_server(HELLO, also=(mcp_dialect(OFFER),)) as server:
        async with client_of(server) as client:
            good = await greeting(client)
            host = await greeting(client, Host="rebound.example")
            origin = await greeting(client, Origin="https://evil.example")
        async with client_of(server, token=None) as client:
            stranger = await greeting(client)

    statuses = {name: one.status_code for name, one in (("good", good), ("host", host), ("origin", origin))}
    assert statuses == {"good": 200, "host": 421, "origin": 403}
    assert (stranger.status_code, problem_of(stranger)["code"]) == (401, "unauthorized")
    assert "level2-harness" in good.text


@requirement("mcp-server:http")
async def test_a_server_without_this_surface_has_no_such_path() -> None:
    async with open_server(HELLO) as server, client_of(server) as client:
        assert (await greeting(client)).status_code == 404


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@requirement("mcp-server:http", "http:owners")
async def test_a_conversation_of_another_owner_is_unknown(era: str) -> None:
    tokens = [Token("a", "a", Rights(programs=False)), Token("b", "b", Rights(programs=False))]
    with anyio.fail_after(40):
        async with (
            open_server(HELLO, tokens=tokens, also=(mcp_dialect(OFFER),)) as server,
            open_http_client(server, era) as mine,
            open_http_client(server, era, token=1) as another,
        ):
            conversation_id = facts(await ask(mine))["conversation_id"]
            refused = await ask(another, conversation_id=conversation_id)
            seen = (await done(another, "list_conversations"))["conversations"]

    assert (told(refused)[0].partition("]")[0], seen) == ("[unknown_conversation", [])


@requirement("mcp-server:http")
async def test_the_native_surface_beside_it_sees_the_same_conversations() -> None:
    with anyio.fail_after(40):
        async with (
            open_server(HELLO, also=(mcp_dialect(OFFER),)) as server,
            open_http_client(server) as client,
            client_of(server) as native,
        ):
            conversation_id = facts(await ask(client))["conversation_id"]
            listed = (await native.get("/v1/conversations")).json()["conversations"]
    assert [one["conversation_id"] for one in listed] == [conversation_id]


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@requirement("mcp-server:http", "http:shutdown")
async def test_a_server_that_stops_waits_for_no_call(era: str) -> None:
    peer, ended = Peer(), anyio.Event()

    async def ask_until_the_end(server: Server) -> None:
        try:
            async with open_http_client(server, era) as client:
                result = await ask(client)
                assert told(result) == ["[connector_unavailable] this server is stopping"]
        except* MCPError as errors:  # of the older protocol the stream may end first
            assert era == LEGACY, errors
        ended.set()

    with anyio.fail_after(40):
        async with open_house([[{"text": "one"}, {"hang": True}]], peer) as house, anyio.create_task_group() as group:
            async with serve(house, also=(mcp_dialect(OFFER),)) as server:
                group.start_soon(ask_until_the_end, server)
                await peer.has_seen("message")
                began = anyio.current_time()
            assert anyio.current_time() - began < 4  # uvicorn alone would wait for 5 s
            await peer.has_seen("interrupt")
            await ended.wait()
