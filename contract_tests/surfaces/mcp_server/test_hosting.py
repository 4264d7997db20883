"""Clients that run the inner agent's tools themselves: the operations of the contract as tools."""

from __future__ import annotations

import json
from typing import Any

import mcp_types as types
import pytest
from jsonschema import Draft202012Validator
from mcp import Client

from contract_tests.llm_suite import Peer
from contract_tests.requirements import requirement
from contract_tests.surfaces.mcp_server.clients import LEGACY, MODERN, done, every_way, open_client, told
from harness.contract import ConversationOptions
from harness.contract.schema import PlainSchema

ROUND = [{"calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"}]}, {"text": "{{results.oslo}}"}]


async def begin(client: Client) -> dict[str, str]:
    options = {"tools": [{"name": "weather", "input_schema_json": '{"type":"object"}'}]}
    begun = await done(client, "begin_conversation", options=options)
    content = [{"type": "text", "text": "How is Oslo?"}]
    submitted = await done(client, "submit_user_message", conversation_id=begun["conversation_id"], content=content)
    return {"conversation_id": begun["conversation_id"], "turn_id": submitted["turn_id"]}


async def until(client: Client, turn: dict[str, str], *wanted: str) -> dict[str, Any]:
    state: dict[str, Any] = {"status": "running", "sequence_no": 0}
    items: list[dict[str, Any]] = []
    while state["status"] not in wanted:
        since = {"since_sequence_no": state["sequence_no"], "max_wait_ms": 5000}
        state = await done(client, "poll_turn", **turn, **since)
        items += state["new_output_items"]
    return {**state, "items": items}


@every_way
@requirement("mcp-server:hosting")
async def test_a_client_runs_the_agents_tool(way: str, era: str) -> None:
    peer = Peer()
    async with open_client(way, era, [ROUND], peer) as client:
        turn = await begin(client)
        waiting = await until(client, turn, "awaiting_host")
        [request] = waiting["pending_requests"]
        answers = [{"request_id": request["request_id"], "content": [{"type": "text", "text": "rain"}]}]
        await done(client, "submit_responses", **turn, responses=answers)
        finished = await until(client, turn, "completed")
        await done(client, "end_conversation", conversation_id=turn["conversation_id"])
        ended = await done(client, "get_conversation", conversation_id=turn["conversation_id"])

    assert (request["kind"], request["tool_name"], json.loads(request["arguments_json"])) == (
        "tool_call",
        "weather",
        {"city": "Oslo"},
    )
    assert [item["text"] for item in finished["items"] if item["kind"] == "text_delta"] == ["rain"]
    assert ended["state"] == "ended"
    assert len(peer.answers) == 1


@every_way
@requirement("mcp-server:hosting")
async def test_the_other_operations_do_what_they_say(way: str, era: str) -> None:
    async with open_client(way, era, [ROUND]) as client:
        capabilities = await done(client, "get_capabilities")
        connectors = await done(client, "list_connectors")
        begun = await done(client, "begin_conversation")
        source = {"name": "s", "kind": "mcp_http", "url": "http://127.0.0.1:1/"}
        await done(client, "delegate_tool_sources", **begun, sources=[source])
        await done(client, "delegate_request_policy", **begun, policy={"mode": "read_only"})
        turn = await begin(client)
        await until(client, turn, "awaiting_host")
        [waiting] = (await done(client, "list_requests"))["requests"]
        await done(client, "cancel_turn", **turn)
        cancelled = await until(client, turn, "cancelled")
        exported = await done(client, "export_conversation", conversation_id=turn["conversation_id"])
        fork = await client.call_tool("fork_conversation", {"conversation_id": turn["conversation_id"]})
        await done(client, "delete_conversation", conversation_id=turn["conversation_id"])
        gone = await client.call_tool("get_conversation", {"conversation_id": turn["conversation_id"]})

    assert capabilities["supports_tools"]
    assert connectors == {"connectors": [{"name": "fake", "is_default": True}]}
    assert (waiting["turn_id"], waiting["request"]["tool_name"]) == (turn["turn_id"], "weather")
    assert cancelled["stop_reason"] == "cancelled"
    assert exported["turns"][0]["items"][-1]["kind"] == "turn_ended"
    assert told(fork) == ["[not_supported] connector 'fake' cannot fork a conversation"]
    assert told(gone) == [f"[unknown_conversation] no conversation '{turn['conversation_id']}'"]


@every_way
@requirement("mcp-server:hosting", "mcp-server:errors")
async def test_clients_name_no_programs_and_no_other_directories(way: str, era: str) -> None:
    async with open_client(way, era, [ROUND]) as client:
        script = await client.call_tool(
            "begin_conversation", {"options": {"connector_options_json": '{"script": "/etc/passwd"}'}}
        )
        cwd = await client.call_tool("begin_conversation", {"options": {"cwd": "/"}})
    assert [told(one)[0].partition("]")[0] for one in (script, cwd)] == ["[forbidden", "[forbidden"]


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@requirement("mcp-server:tools")
async def test_each_tool_has_the_schema_of_the_contracts_own_values(era: str) -> None:
    async with open_client("memory", era, [ROUND]) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}

    for tool in tools.values():
        for schema in (tool.input_schema, tool.output_schema):
            if schema is not None:
                Draft202012Validator.check_schema(schema)
                assert schema["type"] == "object"
    options = ConversationOptions.model_json_schema(schema_generator=PlainSchema)["properties"]
    assert tools["begin_conversation"].input_schema["$defs"]["ConversationOptions"]["properties"] == options
    assert tools["submit_responses"].input_schema["required"] == ["conversation_id", "turn_id", "responses"]
    assert {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint} == {
        "export_conversation",
        "get_capabilities",
        "get_conversation",
        "list_connectors",
        "list_conversations",
        "list_requests",
        "poll_turn",
    }


@requirement("mcp-server:tools")
async def test_odd_text_reaches_a_client_whole() -> None:
    text = "a\u2028b\u0085c \U0001f600 d"
    async with open_client("http", LEGACY, [[{"text": text}]]) as client:
        result = await client.call_tool("ask", {"message": text})
        exported = await done(client, "export_conversation", conversation_id=_id(result))
    assert told(result)[0] == text
    assert exported["turns"][0]["content"][0]["text"] == text


@every_way
@requirement("mcp-server:tools", "R-J3")
async def test_an_unpaired_surrogate_breaks_nothing(way: str, era: str) -> None:
    async with open_client(way, era, [[{"text": "x\ud800y"}]]) as client:
        result = await client.call_tool("ask", {"message": "hello"})
    assert (told(result)[0], (result.structured_content or {})["text"]) == ("x\ufffdy", "x\ufffdy")


def _id(result: types.CallToolResult) -> str:
    return (result.structured_content or {})["conversation_id"]
