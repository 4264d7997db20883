"""Whole conversations over UJMW: by plain calls, and by our own client of UJMW services through the description."""

from __future__ import annotations

import json
from typing import Any

import anyio
import jsonschema

from contract_tests.llm_suite import Peer, open_server
from contract_tests.orchestrator.test_services import call, said
from contract_tests.requirements import requirement
from contract_tests.surfaces.http import client_of
from contract_tests.surfaces.ujmw.bytes import SERVICE, called
from harness.orchestrator.ujmw_source import UjmwSource, open_ujmw_source
from harness.surfaces.server import Server

TALK: list[dict[str, Any]] = [
    {
        "calls": [
            {"name": "weather", "arguments": {"city": "Oslo"}, "id": "one"},
            {"name": "weather", "arguments": {"city": "Oslo"}, "id": "two"},
        ]
    },
    {
        "approval": {
            "tool": "Bash",
            "id": "p1",
            "call_id": "c1",
            "arguments": {"command": "rm x"},
            "options": [{"id": "go", "kind": "allow_once"}, {"id": "stop", "kind": "deny"}],
        }
    },
    {"text": "{{results.one}} and {{results.two}}"},
    {"usage": {"input_tokens": 7}},
]


@requirement("ujmw:conversation")
async def test_a_whole_conversation_with_parallel_calls_and_an_approval() -> None:
    peer = Peer()
    with anyio.fail_after(20):
        async with open_server([TALK], peer) as server:
            options = {"tools": [{"Name": "weather", "InputJsonSchema": '{"type":"object"}', "ReadOnlyHint": True}]}
            conversation_id = (await called(server, "BeginConversation", options=options))["return"]
            content = [{"type": "Text", "text": "How is Oslo? \N{GREEK SMALL LETTER OMEGA}"}]
            submitted = await called(server, "SubmitUserMessage", conversationId=conversation_id, content=content)
            turn = {"conversationId": conversation_id, "turnId": submitted["return"]}

            first = await _until(server, turn, lambda state: len(state["pendingRequests"]) == 2)
            waiting = (await called(server, "ListRequests"))["return"]
            responses = [
                {"requestId": "two", "content": [{"Type": "Text", "Text": "rain"}]},
                {"requestId": "one", "content": [{"type": "text", "text": "no"}], "isError": True, "reason": None},
            ]
            assert await called(server, "SubmitResponses", **turn, responses=responses) == {}

            second = await _until(server, turn, lambda state: _kinds(state) == ["Approval"])
            [approval] = second["pendingRequests"]
            allowed = [{"requestId": approval["requestId"], "selectedOption": "AllowOnce"}]
            assert await called(server, "SubmitResponses", **turn, responses=allowed) == {}

            final = await _until(server, turn, lambda state: state["status"] == "Completed")
            exported = (await called(server, "ExportConversation", conversationId=conversation_id))["return"]
            assert await called(server, "EndConversation", conversationId=conversation_id) == {}
            listed = (await called(server, "GetConversation", conversationId=conversation_id)).get("return")

    assert [(one["requestId"], one["kind"], one["argumentsJson"]) for one in first["pendingRequests"]] == [
        ("one", "ToolCall", '{"city":"Oslo"}'),
        ("two", "ToolCall", '{"city":"Oslo"}'),
    ]
    assert [one["request"] for one in waiting] == first["pendingRequests"]
    assert approval["options"] == ["go", "stop"]
    assert [option["kind"] for option in approval["optionDetails"]] == ["AllowOnce", "Deny"]
    assert [(one.request_id, one.is_error, one.selected_option) for one in peer.answers] == [
        ("two", False, None),
        ("one", True, None),
        (approval["requestId"], False, "allow_once"),
    ]
    assert (final["status"], final["stopReason"]) == ("Completed", "EndTurn")
    items = exported["turns"][0]["items"]
    assert [item["text"] for item in items if item["kind"] == "TextDelta"] == ["no and rain"]
    assert [item["outcome"] for item in items if item["kind"] == "RequestResolved"] == ["Answered"] * 3
    assert final["usage"]["inputTokens"] == 7
    assert listed is None or listed["state"] == "Ended"


def _kinds(state: dict[str, Any]) -> list[str]:
    return [request["kind"] for request in state["pendingRequests"]]


async def _until(server: Server, turn: dict[str, str], reached: Any) -> dict[str, Any]:
    since = 0
    while True:
        state = (await called(server, "PollTurn", **turn, sinceSequenceNo=since, maxWaitMs=5000))["return"]
        if reached(state):
            return state
        since = state["sequenceNo"]


@requirement("ujmw:conversation")
async def test_a_turn_that_fails_has_its_message_where_the_sketch_has_it() -> None:
    with anyio.fail_after(20):
        async with open_server([[{"error": {"code": "provider_error", "message": "no more credit"}}]]) as server:
            conversation_id = (await called(server, "BeginConversation", options=None))["return"]
            content = [{"type": "Text", "text": "hello"}]
            submitted = await called(server, "SubmitUserMessage", conversationId=conversation_id, content=content)
            turn = {"conversationId": conversation_id, "turnId": submitted["return"]}
            state = await _until(server, turn, lambda state: state["status"] == "Failed")

    assert state["errorMessage"] == state["error"]["message"] == "no more credit"
    assert state["stopReason"] == "Error"


@requirement("ujmw:own-client")
async def test_our_own_client_drives_it_through_the_information_document() -> None:
    with anyio.fail_after(20):
        async with open_server([TALK[:1] + TALK[2:3]]) as server:
            headers = {"Authorization": f"Bearer {server.tokens[0].secret}"}
            url = server.url + "/ujmw/fake:ask/IConversationalLLM"
            async with open_ujmw_source(url, headers=headers) as source:
                tools = {tool.name: json.loads(tool.input_schema_json) for tool in await source.list_tools()}
                conversation_id = said(
                    await call(source, "BeginConversation", options={"tools": [{"name": "weather"}]})
                )
                content = [{"type": "Text", "text": "hello"}]
                turn_id = said(await call(source, "SubmitUserMessage", conversationId=conversation_id, content=content))
                turn = {"conversationId": conversation_id, "turnId": turn_id}
                await _polled(source, turn, "AwaitingHost")
                responses = [{"requestId": one, "content": [{"type": "Text", "text": one}]} for one in ("one", "two")]
                answered = await call(source, "SubmitResponses", **turn, responses=responses)
                text = await _polled(source, turn, "Completed")
                wrong = await call(source, "CancelTurn", conversationId="c_0", turnId="t")

    assert len(tools) == 15
    assert tools["CancelTurn"]["required"] == ["conversationId", "turnId"]
    assert "_" not in tools["CancelTurn"]["properties"]
    assert (said(answered), text) == ("done", "one and two")
    assert wrong.is_error
    assert said(wrong).startswith("[unknown_conversation] ")


async def _polled(source: UjmwSource, turn: dict[str, str], status: str) -> str:
    """The text so far, when the turn has come that far."""
    text, since = "", 0
    while True:
        outcome = await call(source, "PollTurn", **turn, sinceSequenceNo=since, maxWaitMs=5000)
        state = json.loads(outcome.structured_content_json or "")
        text += "".join(item["text"] for item in state["newOutputItems"] if item["kind"] == "TextDelta")
        since = state["sequenceNo"]
        if state["status"] == status:
            return text


@requirement("ujmw:openapi")
async def test_the_description_has_concrete_schemas_that_what_is_sent_fits() -> None:
    with anyio.fail_after(20):
        async with open_server([TALK]) as server, client_of(server) as client:
            document = (await client.get("/openapi.json")).json()
            conversation_id = (await called(server, "BeginConversation", options=None))["return"]
            content = [{"type": "Text", "text": "hello"}]
            submitted = await called(server, "SubmitUserMessage", conversationId=conversation_id, content=content)
            turn = {"conversationId": conversation_id, "turnId": submitted["return"]}
            await _until(server, turn, lambda state: len(state["pendingRequests"]) == 2)
            polled = await called(server, "PollTurn", **turn)
            capabilities = await called(server, "GetCapabilities")

    paths = document["paths"]
    names = [path.removeprefix(f"{SERVICE}/") for path in paths if path.startswith(f"{SERVICE}/")]
    assert len(names) == 15
    assert next(path for path in paths if path.startswith("/ujmw/{connector}/")).endswith("/GetCapabilities")
    _fits(document, "UjmwPollTurnResponse", polled)
    _fits(document, "UjmwGetCapabilitiesResponse", capabilities)
    _fits(document, "UjmwSubmitUserMessageRequest", {"conversationId": "c", "content": content})
    schemas = document["components"]["schemas"]
    assert schemas["UjmwPollTurnRequest"]["required"] == ["conversationId", "turnId"]
    assert schemas["UjmwPollTurnRequest"]["properties"]["maxWaitMs"] == {
        "default": 0,
        "format": "int64",
        "type": "integer",
    }
    assert schemas["UjmwTurnStatus"]["enum"] == ["Running", "AwaitingHost", "Completed", "Failed", "Cancelled"]
    assert "return" not in schemas["UjmwCancelTurnResponse"]["properties"]
    assert {"errorMessage", "newOutputItems"} <= set(schemas["UjmwTurnState"]["properties"])


def _fits(document: dict[str, Any], component: str, value: Any) -> None:
    schema = {"$ref": f"#/components/schemas/{component}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(value)
