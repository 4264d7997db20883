"""The tool `ask` as an MCP client sees it: an answer, progress, conversations that go on, cancel and mistakes."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from contract_tests.llm_suite import Peer
from contract_tests.requirements import requirement
from contract_tests.surfaces.mcp_server.clients import LEGACY, MODERN, ask, done, every_way, facts, open_client, told
from harness.contract.options import ConversationOptions
from harness.surfaces.mcp_server.server import Offer, ToolChoice

USAGE = {"usage": {"input_tokens": 12, "output_tokens": 3, "model_calls": 1}}
WORK = [
    {"text": ["I lo", "ok.\nAt the", " files."]},
    {"internal_tool": {"name": "Bash", "call_id": "b", "arguments": {"command": "ls"}, "result_text": "a.txt"}},
    {"plan": [{"text": "look", "status": "completed"}, {"text": "tell"}]},
    {"text": "There is one."},
    USAGE,
]
HANG = [{"text": "one"}, {"hang": True}]


@every_way
@requirement("mcp-server:ask")
async def test_an_answer_comes_as_text_and_with_its_facts_as_data(way: str, era: str) -> None:
    async with open_client(way, era, [[{"text": "Rain."}, USAGE]]) as client:
        result = await ask(client, "How is Oslo?")
        known = facts(result)
        exported = await done(client, "export_conversation", conversation_id=known["conversation_id"])

    text, rest = told(result)
    assert (result.is_error, text, known["text"]) == (False, "Rain.", "Rain.")
    assert (known["status"], known["stop_reason"], known["usage"]["input_tokens"]) == ("completed", "end_turn", 12)
    # what a model that only sees texts needs to go on
    assert json.loads(rest) == {name: known[name] for name in ("conversation_id", "stop_reason", "usage")}
    [turn] = exported["turns"]
    assert (turn["turn_id"], turn["content"]) == (known["turn_id"], [{"type": "text", "text": "How is Oslo?"}])


@every_way
@requirement("mcp-server:progress")
async def test_progress_tells_what_happens_while_the_turn_runs(way: str, era: str) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with open_client(way, era, [WORK]) as client:
        await client.call_tool("ask", {"message": "Look."}, progress_callback=hear)

    assert [message for _, message in heard] == [
        "I lo",
        "At the",
        "At the files.",
        "uses Bash(ls)",
        "the tool ended: ok",
        "plan: 1 of 2 done",
        "There is one.",
    ]
    numbers = [number for number, _ in heard]
    assert numbers == sorted(set(numbers))


@every_way
@requirement("mcp-server:conversation")
async def test_a_conversation_goes_on_by_its_id_and_else_a_new_one_begins(way: str, era: str) -> None:
    peer = Peer()
    async with open_client(way, era, [[{"text": "one"}], [{"text": "two"}]], peer) as client:
        first = facts(await ask(client))
        second = facts(await ask(client, "more", conversation_id=first["conversation_id"]))
        other = facts(await ask(client))
        listed = (await done(client, "list_conversations"))["conversations"]

    assert (second["conversation_id"], second["text"]) == (first["conversation_id"], "two")
    assert (other["conversation_id"] != first["conversation_id"], other["text"]) == (True, "one")
    assert {one["conversation_id"]: one["turns"] for one in listed} == {
        first["conversation_id"]: 2,
        other["conversation_id"]: 1,
    }


@requirement("mcp-server:ask")
async def test_the_servers_own_options_hold_where_the_client_says_nothing() -> None:
    defaults = ConversationOptions(model="small", system_prompt="Be brief.")
    peer = Peer()
    async with open_client(
        "memory", LEGACY, [[{"text": "yes"}]], peer, offer=Offer(("fake",), defaults=defaults)
    ) as client:
        first = facts(await ask(client))
        second = facts(await ask(client, model="large"))
        models = [
            (await done(client, "get_conversation", conversation_id=one["conversation_id"]))["model"]
            for one in (first, second)
        ]
    assert models == ["small", "large"]


@every_way
@requirement("mcp-server:cancel")
async def test_a_cancelled_call_cancels_the_turn_and_the_conversation_stays_usable(way: str, era: str) -> None:
    peer = Peer()
    async with open_client(way, era, {"turns": [HANG, [{"text": "again"}]]}, peer) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, client, "Wait.")
            await peer.has_seen("message")
            group.cancel_scope.cancel()
        await peer.has_seen("interrupt")
        [one] = (await done(client, "list_conversations"))["conversations"]
        status = await end_of_turn(client, one["conversation_id"], "t1")
        result = await ask(client, "Again.", conversation_id=one["conversation_id"])

    assert (status, told(result)[0]) == ("cancelled", "again")


async def end_of_turn(client: Client, conversation_id: str, turn_id: str) -> str:
    state: dict[str, Any] = {"status": "running", "sequence_no": 0}
    while state["status"] in ("running", "awaiting_host"):
        since = {"since_sequence_no": state["sequence_no"], "max_wait_ms": 5000}
        state = await done(client, "poll_turn", conversation_id=conversation_id, turn_id=turn_id, **since)
    return state["status"]


@every_way
@requirement("mcp-server:errors")
async def test_mistakes_are_results_that_a_model_can_read(way: str, era: str) -> None:
    async with open_client(way, era, [[{"text": "one"}]]) as client:
        known = facts(await ask(client))["conversation_id"]
        results = [
            await client.call_tool("ask", arguments)
            for arguments in (
                {},
                {"message": 1},
                {"message": "x", "conversationId": known},
                {"message": "x", "conversation_id": "c_nobody"},
                {"message": "x", "conversation_id": known, "system_prompt": "Other."},
                {"message": "x", "connector": "nobody"},
            )
        ]

    assert [result.is_error for result in results] == [True] * 6
    assert [told(result)[0].partition("]")[0] for result in results] == [
        "[invalid_argument",
        "[invalid_argument",
        "[invalid_argument",
        "[unknown_conversation",
        "[invalid_argument",
        "[invalid_argument",
    ]
    assert "'message'" in told(results[0])[0] and "'conversationId'" in told(results[2])[0]
    assert (results[3].meta or {})["level2-harness/error"]["code"] == "unknown_conversation"
    assert not any("Traceback" in text for result in results for text in told(result))


@every_way
@requirement("mcp-server:errors")
async def test_a_failed_turn_is_an_error_with_the_conversation_it_belongs_to(way: str, era: str) -> None:
    error = {"error": {"code": "provider_error", "message": "Too many requests.", "detail": {"reason": "rate_limit"}}}
    async with open_client(way, era, [[{"text": "Well"}, error]]) as client:
        result = await ask(client)

    known = facts(result)
    assert (result.is_error, told(result)[:2]) == (True, ["[provider_error] Too many requests.", "Well"])
    assert (known["status"], known["error"]["code"], known["conversation_id"][:2]) == ("failed", "provider_error", "c_")
    assert (result.meta or {})["level2-harness/error"]["detail"]["reason"] == "rate_limit"


@every_way
@requirement("mcp-server:errors")
async def test_a_tool_that_nobody_has_is_an_error_of_the_protocol(way: str, era: str) -> None:
    async with open_client(way, era, [[{"text": "one"}]]) as client:
        with pytest.raises(MCPError, match="unknown tool 'tell'; known: ask") as caught:
            await client.call_tool("tell", {})
    assert caught.value.code == -32602


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@requirement("mcp-server:tools")
async def test_clients_see_the_tools_that_they_are_for(era: str) -> None:
    seen: dict[str, list[str]] = {}
    for choice in ToolChoice:
        async with open_client("memory", era, [[{"text": "one"}]], offer=Offer(("fake", "claude"), choice)) as client:
            tools = (await client.list_tools()).tools
            seen[choice] = [tool.name for tool in tools]
            if choice == ToolChoice.ASK:
                assert "fake, claude" in (tools[0].description or "")
                with pytest.raises(MCPError, match="unknown tool"):
                    await client.call_tool("list_conversations", {})

    assert seen["ask"] == ["ask"]
    assert seen["all"] == ["ask", *seen["operations"]]
    assert {"begin_conversation", "poll_turn", "submit_responses", "list_connectors"} <= set(seen["operations"])
