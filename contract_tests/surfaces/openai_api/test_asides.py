"""Approvals and questions, which OpenAI's wire has no word for: by policy, or as calls of reserved tools."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from contract_tests.requirements import requirement
from contract_tests.surfaces.openai_api.chat import Place, calls_of, open_place
from harness.contract import HostResponse, PolicyRule, RequestPolicy
from harness.policy import Policy

APPROVAL: list[Any] = [{"approval": {"tool": "Bash", "arguments": {"command": "ls"}}}, {"text": "Done."}]
QUESTION: list[Any] = [
    {"question": {"questions": [{"id": "color", "text": "Which?", "options": [{"id": "red", "label": "Red"}]}]}},
    {"text": "Thanks."},
]
OPTED_IN: dict[str, Any] = {"extra_headers": {"X-Harness-Requests": "tools"}}


def answers(place: Place) -> list[HostResponse]:
    return place.peer.answers


@requirement("openai:asides", "R-D11")
async def test_nobody_hangs_on_what_no_client_can_see() -> None:
    async with open_place([APPROVAL, QUESTION]) as place:
        chat = place.chat()
        done = await chat.say("List the files.")
        thanks = await chat.say("And ask.")

    assert (done.message.content, thanks.message.content) == ("Done.", "Thanks.")
    denied, declined = answers(place)
    assert (denied.selected_option, declined.action) == ("deny", "decline")
    assert denied.reason == declined.reason is not None


@requirement("openai:asides")
async def test_the_policy_of_the_server_decides_first() -> None:
    policy = Policy(RequestPolicy(allow=[PolicyRule(tool="Bash")]))
    async with open_place([APPROVAL], policy=policy) as place:
        await place.chat().say("List the files.")

    assert [one.selected_option for one in answers(place)] == ["allow_once"]


@requirement("openai:asides")
@pytest.mark.parametrize("result", ['{"selected_option": "allow_once"}', "allow_once", '"allow_once"'])
async def test_an_approval_is_a_call_of_a_reserved_tool_for_who_opts_in(result: str) -> None:
    async with open_place([APPROVAL]) as place:
        chat = place.chat(**OPTED_IN)
        asked = await chat.say("List the files.")
        [(call_id, name, arguments)] = calls_of(asked)
        with pytest.raises(openai.BadRequestError, match="allow_once"):
            await place.chat(**OPTED_IN, messages=[*chat.messages, _result(call_id, "perhaps")]).send()
        await chat.answer({call_id: result})

    assert name == "harness_approval"
    told = json.loads(arguments)
    assert (told["tool_name"], told["arguments"]) == ("Bash", {"command": "ls"})
    assert [option["id"] for option in told["options"]] == ["allow_once", "allow_always", "deny"]
    assert [one.selected_option for one in answers(place)] == ["allow_once"]


@requirement("openai:asides", "R-D11")
async def test_a_question_is_a_call_of_a_reserved_tool_for_who_opts_in() -> None:
    async with open_place([QUESTION, QUESTION]) as place:
        chat = place.chat(**OPTED_IN)
        [(first, name, arguments)] = calls_of(await chat.say("Ask."))
        await chat.answer({first: '{"answers": [{"question_id": "color", "selected": ["red"]}]}'})
        [(second, _, _)] = calls_of(await chat.say("Ask again."))
        await chat.answer({second: '{"action": "decline"}'})

    assert name == "harness_question"
    assert json.loads(arguments)["questions"][0]["text"] == "Which?"
    assert first != second
    accepted, declined = answers(place)
    assert (accepted.answers[0].selected, declined.action) == (["red"], "decline")


@requirement("openai:asides")
async def test_the_header_has_two_values() -> None:
    async with open_place([APPROVAL]) as place:
        with pytest.raises(openai.BadRequestError) as refused:
            await place.chat(extra_headers={"X-Harness-Requests": "maybe"}).say("Go.")

    assert refused.value.param == "X-Harness-Requests"


def _result(call_id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}
