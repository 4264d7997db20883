"""Approvals and questions during `ask`: a person at the client where it has one, else the server decides."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
import pytest

from contract_tests.llm_suite import Peer
from contract_tests.requirements import requirement
from contract_tests.surfaces.mcp_server.clients import LEGACY, MODERN, Filling, ask, every_way, facts, open_client, told
from harness.surfaces.mcp_server.people import ApprovalChoice
from harness.surfaces.mcp_server.server import Offer

APPROVAL = {"approval": {"tool": "Bash", "arguments": {"command": "rm a"}, "id": "p", "description": "Removes a."}}
LEAVE = [[APPROVAL, {"text": "{{results.p}}"}]]
QUESTIONS = [
    {
        "id": "Which colour?",
        "text": "Which colour?",
        "header": "Colour",
        "options": [{"id": "r", "label": "Red"}, {"id": "g", "label": "Green", "description": "like grass"}],
    },
    {
        "id": "sizes",
        "text": "Which sizes?",
        "options": [{"id": "s", "label": "Small"}, {"id": "l", "label": "Large"}],
        "multi_select": True,
    },
    {"id": "name", "text": "What name?", "allow_free_text": True},
]
ASKED = [[{"question": {"id": "q", "questions": QUESTIONS}}, {"text": "{{results.q}}"}]]


@every_way
@requirement("mcp-server:elicitation")
async def test_a_person_at_the_client_gives_leave(way: str, era: str) -> None:
    person = Filling({"decision": "allow_once"})
    async with open_client(way, era, LEAVE, person=person) as client:
        result = await ask(client)

    [form] = person.asked
    assert form.message == "The agent asks for leave: Bash(rm a)\nRemoves a."
    assert [one["const"] for one in form.requested_schema["properties"]["decision"]["oneOf"]] == [
        "allow_once",
        "allow_always",
        "deny",
    ]
    assert told(result)[0] == "allow_once"
    assert _calls(result) == [("approval", "Bash", "ok", None)]


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@requirement("mcp-server:elicitation")
@pytest.mark.parametrize(
    ("answer", "kind", "why"),
    [
        ("decline", "rejected", "A person rejected this."),
        ("cancel", "approval_unavailable", "closed without an answer"),
        ({"decision": "deny", "reason": "Not a."}, "rejected", "Not a."),
        ({}, "approval_unavailable", "The answer was not usable: 'None' is no decision that was offered."),
        ({"decision": "whatever"}, "approval_unavailable", "The answer was not usable"),
    ],
)
async def test_whatever_is_no_yes_is_a_no(era: str, answer: Any, kind: str, why: str) -> None:
    async with open_client("memory", era, LEAVE, person=Filling(answer)) as client:
        result = await ask(client)

    [call] = facts(result)["calls"]
    assert (told(result)[0], call["outcome"], call["refusal_kind"]) == ("deny", "refused", kind)
    assert why in call["refusal"]


@every_way
@requirement("mcp-server:elicitation")
async def test_questions_become_fields_of_one_form(way: str, era: str) -> None:
    person = Filling({"answer_1": "g", "answer_2": ["s", "l"], "answer_3": "Ada"})
    async with open_client(way, era, ASKED, person=person) as client:
        result = await ask(client)

    [form] = person.asked
    properties = form.requested_schema["properties"]
    assert properties["answer_1"] == {
        "title": "Colour",
        "description": "Which colour?",
        "type": "string",
        "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green: like grass"}],
    }
    assert properties["answer_2"]["items"]["anyOf"][1] == {"const": "l", "title": "Large"}
    assert properties["answer_3"] == {"title": "What name?", "description": "What name?", "type": "string"}
    assert told(result)[0] == "g; s, l; Ada"


@every_way
@requirement("mcp-server:elicitation")
async def test_a_declined_question_is_declined(way: str, era: str) -> None:
    async with open_client(way, era, ASKED, person=Filling("decline")) as client:
        result = await ask(client)
    assert told(result)[0] == "decline"
    assert _calls(result) == [("user_question", None, "refused", "rejected")]


@every_way
@requirement("mcp-server:elicitation")
async def test_many_things_are_asked_one_after_the_other(way: str, era: str) -> None:
    steps = [{"approval": {"tool": f"Tool{number}", "id": f"p{number}"}} for number in range(5)]
    person = Filling(*[{"decision": "allow_once"}] * 4, "decline")
    async with open_client(way, era, [[*steps, {"text": "{{results.p0}} {{results.p4}}"}]], person=person) as client:
        result = await ask(client)
    assert [form.message.rpartition(" ")[2] for form in person.asked] == [f"Tool{number}" for number in range(5)]
    assert told(result)[0] == "allow_once deny"


@every_way
@requirement("mcp-server:elicitation")
async def test_always_means_until_this_answer_is_complete(way: str, era: str) -> None:
    options = [{"id": "y", "kind": "allow_once"}, {"id": "n", "kind": "deny"}]
    asks = {"approval": {"tool": "Bash", "arguments": {"command": "ls"}, "options": options}}
    person = Filling({"decision": "always_in_this_conversation"}, {"decision": "n"}, {"decision": "n"})
    script = {"turns": [[asks, asks, {"text": "done"}]], "repeat": True}
    async with open_client(way, era, script, person=person) as client:
        first = await ask(client)
        second = await ask(client, conversation_id=facts(first)["conversation_id"])

    offered = person.asked[0].requested_schema["properties"]["decision"]["oneOf"]
    assert offered[-1]["title"] == "always, until this answer is complete: Bash(ls)"
    assert [outcome for _, _, outcome, _ in _calls(first)] == ["ok", "ok"]
    assert [outcome for _, _, outcome, _ in _calls(second)] == ["refused", "refused"]
    assert len(person.asked) == 3


@every_way
@requirement("mcp-server:nobody")
async def test_without_a_person_leave_is_denied_and_says_what_helps(way: str, era: str) -> None:
    async with open_client(way, era, LEAVE) as client:
        result = await ask(client)
    [call] = facts(result)["calls"]
    assert (told(result)[0], call["refusal_kind"]) == ("deny", "approval_unavailable")
    assert "--policy" in call["refusal"]


@every_way
@requirement("mcp-server:nobody")
@pytest.mark.parametrize(("choice", "heard"), [(ApprovalChoice.ALLOW, "allow_once"), (ApprovalChoice.DENY, "deny")])
async def test_a_server_may_decide_without_asking_anybody(
    way: str, era: str, choice: ApprovalChoice, heard: str
) -> None:
    person = Filling()
    async with open_client(way, era, LEAVE, offer=Offer(("fake",), approve=choice), person=person) as client:
        result = await ask(client)
    assert (told(result)[0], person.asked) == (heard, [])


@requirement("mcp-server:elicitation")
async def test_a_client_that_fails_to_ask_is_no_consent() -> None:
    async def fails(context: Any, params: Any) -> types.ErrorData:
        return types.ErrorData(code=-32603, message="no screen")

    async with open_client("memory", LEGACY, LEAVE, person=fails) as client:
        result = await ask(client)
    [call] = facts(result)["calls"]
    assert (told(result)[0], call["refusal"]) == ("deny", "The client could not ask: no screen")


@every_way
@requirement("mcp-server:elicitation")
async def test_a_secret_is_never_asked_for_in_a_form(way: str, era: str) -> None:
    question = {"id": "pin", "text": "Which PIN?", "secret": True}
    person = Filling()
    script = [[{"question": {"id": "q", "questions": [question]}}, {"text": "{{results.q}}"}]]
    async with open_client(way, era, script, person=person) as client:
        result = await ask(client)
    assert (told(result)[0], person.asked) == ("decline", [])


@pytest.mark.parametrize("way", ["memory", "http"])
@requirement("mcp-server:cancel")
async def test_a_call_that_is_cancelled_while_a_person_thinks_cancels_the_turn(way: str) -> None:
    peer, asked, withdrawn = Peer(), anyio.Event(), anyio.Event()

    async def thinks(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()
        raise AssertionError("unreachable")

    async with open_client(way, LEGACY, LEAVE, peer, person=thinks) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(ask, client)
            await asked.wait()
            group.cancel_scope.cancel()
        await peer.has_seen("interrupt")
        await withdrawn.wait()


def _calls(result: types.CallToolResult) -> list[tuple[str, str | None, str, str | None]]:
    calls = facts(result)["calls"]
    return [(one["kind"], one.get("tool"), one["outcome"], one.get("refusal_kind")) for one in calls]
