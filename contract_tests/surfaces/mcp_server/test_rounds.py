"""Asks that go on between two calls: what a client of the protocol of 2026-07-28 may do, and may get wrong."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp import Client

from contract_tests.llm_suite import Peer, open_server
from contract_tests.requirements import requirement
from contract_tests.surfaces.mcp_server.clients import (
    MODERN,
    OFFER,
    Filling,
    done,
    open_client,
    open_http_client,
    told,
)
from harness.settings import Rights
from harness.surfaces.mcp_server.http import mcp_dialect
from harness.surfaces.tokens import Token

LEAVE = [[{"approval": {"tool": "Bash", "id": "p"}}, {"text": "{{results.p}}"}]]


async def round_of(client: Client, **given: Any) -> types.InputRequiredResult | types.CallToolResult:
    result = await client.session.call_tool("ask", {"message": "Go."}, allow_input_required=True, **given)
    assert isinstance(result, types.InputRequiredResult | types.CallToolResult)
    return result


def state_of(result: types.InputRequiredResult | types.CallToolResult) -> str:
    assert isinstance(result, types.InputRequiredResult) and result.request_state
    return result.request_state


def yes() -> dict[str, types.InputResponse]:
    return {"answer": types.ElicitResult(action="accept", content={"decision": "allow_once"})}


@requirement("mcp-server:elicitation")
async def test_a_call_that_is_repeated_without_an_answer_is_asked_again() -> None:
    peer = Peer()
    async with open_client("memory", MODERN, LEAVE, peer, person=Filling()) as client:
        first = await round_of(client)
        again = await round_of(client, request_state=state_of(first))
        last = await round_of(client, request_state=state_of(first), input_responses=yes())

    assert again == first
    assert isinstance(last, types.CallToolResult) and told(last)[0] == "allow_once"
    assert [one.what for one in peer.seen].count("message") == 1


@requirement("mcp-server:elicitation")
async def test_what_another_host_answered_meanwhile_needs_no_form() -> None:
    async with open_client("memory", MODERN, LEAVE, person=Filling()) as client:
        first = await round_of(client)
        [waiting] = (await done(client, "list_requests"))["requests"]
        denied = {"request_id": waiting["request"]["request_id"], "selected_option": "deny"}
        ids = {name: waiting[name] for name in ("conversation_id", "turn_id")}
        await done(client, "submit_responses", **ids, responses=[denied])
        last = await round_of(client, request_state=state_of(first), input_responses=yes())

    assert isinstance(last, types.CallToolResult) and told(last)[0] == "deny"


@requirement("mcp-server:errors")
async def test_an_ask_is_found_by_its_own_client_only_and_only_once() -> None:
    tokens = [Token("a", "a", Rights(programs=False)), Token("b", "b", Rights(programs=False))]
    async with (
        open_server(LEAVE, tokens=tokens, also=(mcp_dialect(OFFER),)) as server,
        open_http_client(server, MODERN, Filling()) as mine,
        open_http_client(server, MODERN, Filling(), token=1) as another,
    ):
        state = state_of(await round_of(mine))
        results = [
            await round_of(another, request_state=state, input_responses=yes()),
            await round_of(mine, request_state="made-up", input_responses=yes()),
            await round_of(mine, request_state=state, input_responses=yes()),
            await round_of(mine, request_state=state, input_responses=yes()),
        ]

    texts = [told(one)[0] for one in results if isinstance(one, types.CallToolResult)]
    unknown = "[invalid_argument] this 'requestState' is of no ask that goes on here: call 'ask' anew"
    assert texts == [unknown, unknown, "allow_once", unknown]
