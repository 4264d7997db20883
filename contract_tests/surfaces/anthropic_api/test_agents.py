"""The `anthropic` package in front of the real agents: each runs the client's tools over the whole loop."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import Message, MessageParam

from contract_tests.peers_installed import path_with_peers
from contract_tests.requirements import requirement
from contract_tests.surfaces.anthropic_api.agents import QUESTION, WEATHER, conversations, open_agent, rows
from contract_tests.surfaces.anthropic_api.test_sdk import said
from harness.testing.scenario import call

LOOP = [
    {"text": "I look.", "calls": [call("get_weather", "c1", city="Oslo"), call("get_weather", "c2", city="Rome")]},
    {"text": "Oslo: {{results.c1}}, Rome: {{results.c2}}."},
]
ANSWER = "Oslo: rain in Oslo, Rome: rain in Rome."

every_row = pytest.mark.parametrize(
    "row", [*rows("anthropic", "openai", "claude", "codex", "copilot:sdk", "acp:opencode")]
)


@pytest.fixture(autouse=True)
def agents_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of peers.txt are found as a user's are."""
    monkeypatch.setenv("PATH", path_with_peers(os.environ["PATH"]))


def text_of_last(history: Sequence[MessageParam]) -> str:
    content: Any = history[-1]["content"]
    return "".join(block.text for block in content if block.type == "text")


@requirement("anthropic-surface:agents")
@every_row
async def test_a_loop_and_the_next_message_are_one_conversation_with_one_history(row: str, tmp_path: Path) -> None:
    async with open_agent(row, [*LOOP, {"text": "You are welcome."}], tmp_path) as agent:
        history = await agent.run([QUESTION])
        first = text_of_last(history)
        after = await agent.run([*history, {"role": "user", "content": "Thanks."}])
        [conversation] = await conversations(agent.server)
        requests = agent.model.requests

    assert first.endswith(ANSWER)
    assert text_of_last(after).endswith("You are welcome.")
    assert conversation["turns"] == 2
    assert [len(request.past_calls) for request in requests][-2:] == [2, 2]
    assert {past.result for past in requests[-1].past_calls} == {"rain in Oslo", "rain in Rome"}


@requirement("anthropic-surface:agents")
@every_row
async def test_two_users_with_the_same_words_have_an_agent_each(row: str, tmp_path: Path) -> None:
    """Requests that are equal in every member share one answer; those of two users differ in who asks."""
    script = [{"text": "Hello.", "calls": [call("get_weather", f"c{number}", city="Oslo")]} for number in (1, 2)]
    script += [{"text": "Done: {{results.c1}}."}, {"text": "Done: {{results.c2}}."}]
    async with open_agent(row, script, tmp_path) as agent:
        mine = await agent.say([QUESTION])
        yours = await agent.client.messages.create(
            model=agent.name,
            max_tokens=4096,
            tools=[WEATHER],
            system="You know the weather.",
            messages=[QUESTION],
            metadata={"user_id": "another"},
        )
        ids = [block.id for message in (mine, yours) for block in message.content if block.type == "tool_use"]
        assert len(await conversations(agent.server)) == 2
        ends: list[Message] = []
        for message, call_id in zip((mine, yours), ids, strict=True):
            result: Any = {"type": "tool_result", "tool_use_id": call_id, "content": f"for {call_id}"}
            answered: list[Any] = [QUESTION, {"role": "assistant", "content": message.content}]
            ends.append(await agent.say([*answered, {"role": "user", "content": [result]}]))

    assert [said(end).partition("Done: ")[2] for end in ends] == [f"for {call_id}." for call_id in ids]


@requirement("anthropic-surface:agents")
@every_row
async def test_an_answer_that_is_asked_for_again_is_a_new_conversation_with_the_history(
    row: str, tmp_path: Path
) -> None:
    script = [{"text": "One."}, {"text": "Two."}, {"text": "Three."}]
    async with open_agent(row, script, tmp_path) as agent:
        history = await agent.run([QUESTION])
        again: MessageParam = {"role": "user", "content": "Another way."}
        second = await agent.run([*history, again])
        third = await agent.run([*history, {"role": "user", "content": "Yet another way."}])
        kept = await conversations(agent.server)
        told = json.dumps(agent.model.requests[-1].body)

    assert [text_of_last(one) for one in (second, third)] == ["Two.", "Three."]
    assert sorted(one["turns"] for one in kept) == [1, 2]
    assert "How is the weather in Oslo and Rome?" in told
    assert "One." in told
    assert "Two." not in told


@requirement("anthropic-surface:agents")
@every_row
async def test_to_leave_a_stream_stops_the_agent(row: str, tmp_path: Path) -> None:
    async with open_agent(row, [{"text": ["One ", "two"], "hang": True}], tmp_path) as agent:
        async with agent.client.messages.stream(
            model=agent.name, max_tokens=100, messages=[QUESTION], tools=[WEATHER]
        ) as stream:
            async for event in stream:
                if event.type == "text":
                    break
        assert await agent.model.requests[0].wait_ended() == "client_left"
