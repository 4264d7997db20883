"""Conversations as Python code uses them."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from connectors.fake import FakeConnector
from contract_tests.orchestrator.puppet import Puppet, Watched, until
from contract_tests.requirements import requirement
from harness import connect
from harness.contract import TextDelta
from harness.errors import PeerLost
from harness.local import LocalHarness
from harness.orchestrator.opening import open_conversation
from harness.registry import Registry
from harness.turn.events import text_delta


def add(a: int, b: int) -> int:
    return a + b


SUM = [
    {"text": "let me see"},
    {"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}, "id": "x"}]},
    {"text": "it is {{results.x}}"},
]


@requirement("orchestrator:conversation:stream")
async def test_ask_and_stream_in_one_conversation() -> None:
    registry = Registry({"fake": FakeConnector([SUM, SUM, [{"text": "bye"}]])})
    with anyio.fail_after(5):
        async with connect("fake", registry=registry).conversation(tools=[add]) as conversation:
            first = await conversation.ask("one and two?")
            stream = conversation.stream("again?")
            items = [item async for item in stream]
            last = await conversation.ask("bye")
    assert first.content == "let me see\n\nit is 3"
    assert [item.sequence_no for item in items] == list(range(1, len(items) + 1))
    assert items[0].kind == "text_delta"
    assert items[-1].kind == "turn_ended"
    assert stream.completion is not None
    assert stream.completion.content == first.content
    assert (first.conversation_id, last.content) == (stream.completion.conversation_id, "bye")


@requirement("orchestrator:conversation:stream")
async def test_items_come_before_the_turn_is_over() -> None:
    peer = Puppet()
    texts: list[str] = []
    with anyio.fail_after(5):
        async with Watched(peer) as llm, open_conversation(llm) as conversation:

            async def feed() -> None:
                await peer.started.wait()
                for text in ("a", "b"):
                    peer.emit(text_delta(text))
                    await until(lambda text=text: text in texts)
                peer.end()

            async with anyio.create_task_group() as group:
                group.start_soon(feed)
                async for item in conversation.stream("go"):
                    if isinstance(item, TextDelta):
                        texts.append(item.text)
    assert texts == ["a", "b"]


@requirement("orchestrator:conversation:stream")
async def test_leaving_a_stream_early_cancels_the_turn_and_the_next_one_runs() -> None:
    script = [[{"text": "first"}, {"hang": True}], [{"text": "second"}]]
    async with LocalHarness(Registry({"fake": FakeConnector(script)}), default_connector="fake") as house:
        with anyio.fail_after(5):
            async with open_conversation(house) as conversation:
                async for _ in conversation.stream("go"):
                    break
                assert (await conversation.ask("next")).content == "second"
                export = await house.export_conversation(conversation.conversation_id)
    ends: list[Any] = [turn.items[-1] for turn in export.turns]
    assert [end.status for end in ends] == ["cancelled", "completed"]


@requirement("orchestrator:conversation:stream")
async def test_broken_call_is_raised_where_the_stream_is_read() -> None:
    peer = Puppet()
    with anyio.fail_after(5):
        async with Watched(peer) as llm, open_conversation(llm) as conversation:
            llm.breaks = PeerLost("the server is gone")
            with pytest.raises(PeerLost, match="the server is gone"):
                async for _ in conversation.stream("go"):
                    pass


async def test_second_ask_waits_for_the_first() -> None:
    script = [[{"text": "first"}], [{"text": "second"}]]
    contents: list[str | None] = []
    registry = Registry({"fake": FakeConnector(script)})
    async with connect("fake", registry=registry).conversation() as conversation:

        async def ask() -> None:
            contents.append((await conversation.ask("same words")).content)

        with anyio.fail_after(5):
            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                group.start_soon(ask)
    assert contents == ["first", "second"]


async def test_what_the_body_raises_comes_out_as_it_is() -> None:
    registry = Registry({"fake": FakeConnector([SUM])})
    with pytest.raises(KeyError, match="mine"):
        async with connect("fake", registry=registry).conversation(tools=[add]):
            raise KeyError("mine")
