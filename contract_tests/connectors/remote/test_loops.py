"""Harnesses that stand on each other in a circle refuse the conversation before anything starts."""

from __future__ import annotations

import json

import anyio
import httpx2
import pytest

from connectors.fake import FakeConnector
from contract_tests.connectors.remote.stack import TOKEN, open_house, remote, through
from contract_tests.requirements import requirement
from contract_tests.surfaces.http import client_of, problem_of
from harness.contract import ConversationOptions
from harness.errors import InvalidArgument
from harness.remote import RemoteHarness
from harness.surfaces.server import Server, serve


@requirement("stacking:loop")
async def test_a_circle_of_two_servers_is_refused_with_the_way_it_takes() -> None:
    with anyio.fail_after(20):
        async with (
            open_house(FakeConnector()) as one,
            open_house() as other,
            serve(one, tokens=[TOKEN]) as first,
            serve(other, tokens=[TOKEN]) as second,
            RemoteHarness(first.url, TOKEN.secret) as llm,
        ):
            back = through(first.url, "remote", through(second.url, "remote"))
            options = remote(through(second.url, "remote", back))
            way = [one.instance_id, other.instance_id, one.instance_id]
            for refused in (llm.begin_conversation, llm.get_capabilities):
                with pytest.raises(InvalidArgument, match=" -> ".join(way)) as told:
                    await refused(options)
                assert told.value.detail["hops"] == way
            # also where it would have ended the second time
            with pytest.raises(InvalidArgument, match="in a circle"):
                await llm.begin_conversation(remote(through(second.url, "remote", through(first.url, "fake"))))
            assert await other.list_conversations() == []


@requirement("stacking:loop")
async def test_a_server_that_leads_to_itself_is_refused() -> None:
    async with open_house() as house, serve(house, tokens=[TOKEN]) as server:
        with pytest.raises(InvalidArgument, match="in a circle"):
            await house.begin_conversation(remote(through(server.url, "remote", through(server.url, "remote"))))


def came_through(server: Server, *hops: str) -> httpx2.AsyncClient:
    client = client_of(server)
    client.headers["Harness-Hops"] = ", ".join(hops)
    return client


@requirement("stacking:loop")
async def test_the_way_is_told_by_the_header_alone_too() -> None:
    async with open_house(FakeConnector()) as house, serve(house, tokens=[TOKEN]) as server:
        body = json.loads(ConversationOptions(connector="fake").to_json())
        async with came_through(server, "h_other", house.instance_id) as client:
            problem = problem_of(await client.post("/v1/conversations", json=body))
            assert (problem["code"], problem["status"]) == ("invalid_argument", 400)
        async with came_through(server, *(f"h_{number}" for number in range(8))) as client:
            assert "more than 8" in problem_of(await client.post("/v1/capabilities", json=body))["detail"]
        async with came_through(server, "h_other") as client:
            assert (await client.post("/v1/conversations", json=body)).status_code == 201
