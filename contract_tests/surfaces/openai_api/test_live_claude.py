"""The `openai` package before the real Claude CLI, whose model follows a script."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import openai
import pytest

from connectors.claude import ClaudeConnector
from contract_tests.connectors.claude.cli import ENVIRONMENT, MODEL, needs_cli
from contract_tests.connectors.processes import until_gone
from contract_tests.requirements import requirement
from contract_tests.surfaces.openai_api.chat import WEATHER, Chat, calls_of, openai_client
from harness.cli.wrapped import WrappedConnector
from harness.contract import ConversationOptions, Notice
from harness.local import LocalHarness
from harness.registry import Registry
from harness.scripted_model import ScriptedModel, open_scripted_model
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.server import Server, serve

pytestmark = needs_cli

SECONDS = 60
PATIENT = CompatibleSettings(quiet_seconds=1.0)
"""On a busy machine the calls of one message may be further apart than the 50 ms of a quiet one."""
TWO_CITIES: dict[str, Any] = {
    "text": ["I will ", "look."],
    "calls": [
        {"name": "weather", "arguments": {"city": "Oslo"}, "id": "toolu_oslo"},
        {"name": "weather", "arguments": {"city": "Rome"}, "id": "toolu_rome"},
    ],
    "usage": {"input_tokens": 50, "output_tokens": 11},
}
ANSWER: dict[str, Any] = {
    "text": ["Oslo: {{results.toolu_oslo}}, ", "Rome: {{results.toolu_rome}}."],
    "usage": {"input_tokens": 80, "cached_input_tokens": 30, "output_tokens": 13},
}
RESULTS = {"toolu_oslo": "rain", "toolu_rome": "sun"}


class Scripted(WrappedConnector):
    """The CLI with a home of its own, led to the scripted model by the server and not by the client."""

    def __init__(self, model: ScriptedModel, directory: Path) -> None:
        super().__init__(ClaudeConnector(ENVIRONMENT))
        self._options = {"key": "sk-made-up", "base_url": model.url, "home": str(directory / "home")}
        self._work = directory / "work"
        self._work.mkdir()

    def completed(self, options: ConversationOptions) -> ConversationOptions:
        chosen = {**self._options, **json.loads(options.connector_options_json or "{}")}
        return options.model_copy(update={"connector_options_json": json.dumps(chosen), "cwd": str(self._work)})


@dataclass
class Place:
    model: ScriptedModel
    house: LocalHarness
    server: Server
    client: openai.AsyncOpenAI

    def chat(self, **options: Any) -> Chat:
        return Chat(self.client, {"model": f"claude/{MODEL}", **options})

    async def pids(self) -> list[int]:
        """Of all CLIs that were started, as the conversations tell."""
        view = self.house.for_owner("local", self.server.tokens[0].rights)
        told = [await view.export_conversation(one.conversation_id) for one in await view.list_conversations()]
        items = [item for one in told for turn in one.turns for item in turn.items]
        texts = [item.text for item in items if isinstance(item, Notice) and item.code == "peer_started"]
        return [int(found[1]) for text in texts if (found := re.search(r"pid (\d+)", text))]


@asynccontextmanager
async def open_place(
    script: Sequence[dict[str, Any]], directory: Path, compatible: CompatibleSettings = PATIENT
) -> AsyncGenerator[Place]:
    with anyio.fail_after(SECONDS):
        async with open_scripted_model(script) as model:
            registry = Registry({"claude": Scripted(model, directory)})
            async with (
                LocalHarness(registry) as house,
                serve(house, connectors=["claude"], compatible=compatible) as server,
                openai_client(server, timeout=SECONDS) as client,
            ):
                yield Place(model, house, server, client)


def said(request: Any) -> list[tuple[str, str]]:
    """Role and kind of each block of a request's messages."""
    messages = request.body["messages"]
    blocks = [(m["role"], m["content"]) for m in messages]
    return [
        (role, block["type"])
        for role, content in blocks
        for block in ([{"type": "text"}] if isinstance(content, str) else content)
    ]


@requirement("openai:claude", "R-M11")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_loop_is_one_process_one_conversation_and_one_history(stream: bool, tmp_path: Path) -> None:
    async with open_place([TWO_CITIES, ANSWER, {"text": "You are welcome."}], tmp_path) as place:
        chat = place.chat(stream=stream)
        asked = await chat.say("How is the weather?")
        conversations = {chat.conversation}
        answered = await chat.answer(RESULTS)
        conversations.add(chat.conversation)
        thanked = await chat.say("Thanks.")
        conversations.add(chat.conversation)
        pids = await place.pids()
        requests = place.model.requests

    assert (asked.finish_reason, asked.message.content) == ("tool_calls", "I will look.")
    assert [(call[0], call[1], json.loads(call[2])) for call in calls_of(asked)] == [
        ("toolu_oslo", "weather", {"city": "Oslo"}),
        ("toolu_rome", "weather", {"city": "Rome"}),
    ]
    assert (answered.finish_reason, answered.message.content) == ("stop", "Oslo: rain, Rome: sun.")
    assert thanked.message.content == "You are welcome."
    assert len(pids) == len(conversations) == 1
    # one continuous history: each request of the model begins with all of the one before it
    assert [request.entry for request in requests if request.is_model_call] == [1, 2, 3]
    talks = [said(request) for request in requests if request.is_model_call]
    for before, after in pairwise(talks):
        assert after[: len(before)] == before
    assert {past.call_id: past.result for past in requests[-1].past_calls} == RESULTS


@requirement("openai:claude")
async def test_usage_of_the_cli_is_told_per_reply(tmp_path: Path) -> None:
    async with open_place([TWO_CITIES, ANSWER], tmp_path) as place:
        chat = place.chat()
        await chat.say("How is the weather?")
        chat.messages += [{"role": "tool", "tool_call_id": one, "content": text} for one, text in RESULTS.items()]
        arguments: Any = {"model": f"claude/{MODEL}", "messages": chat.messages, "tools": [WEATHER]}
        last = await place.client.chat.completions.create(**arguments)

    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (80, 13)


@requirement("openai:claude")
async def test_who_leaves_the_stream_ends_the_cli(tmp_path: Path) -> None:
    script = [{"text": ["one ", "two"], "hang": True}]
    async with open_place(script, tmp_path, CompatibleSettings(stream_grace_seconds=0.1)) as place:
        arguments: Any = {"model": f"claude/{MODEL}", "messages": [{"role": "user", "content": "Go."}]}
        stream = await place.client.chat.completions.create(**arguments, stream=True)
        async for chunk in stream:
            if chunk.choices[0].delta.content:
                break
        pids = await place.pids()
        await stream.close()
        await until_gone(pids)

    assert len(pids) == 1


@requirement("openai:claude")
async def test_calls_that_may_not_come_together_come_one_by_one(tmp_path: Path) -> None:
    async with open_place([TWO_CITIES, ANSWER], tmp_path) as place:
        chat = place.chat(parallel_tool_calls=False)
        first = await chat.say("How is the weather?")
        second = await chat.answer({"toolu_oslo": "rain"})
        last = await chat.answer({"toolu_rome": "sun"})
        pids = await place.pids()

    assert [[call[0] for call in calls_of(one)] for one in (first, second)] == [["toolu_oslo"], ["toolu_rome"]]
    assert last.message.content == "Oslo: rain, Rome: sun."
    assert len(pids) == 1
