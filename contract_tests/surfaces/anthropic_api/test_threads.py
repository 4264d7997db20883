"""A beta of the Messages API, which the `anthropic` package's tool runner uses: only what is new is sent."""

from __future__ import annotations

from typing import Any

import anthropic
import anyio
import pytest

from contract_tests.llm_suite import Peer
from contract_tests.requirements import requirement
from contract_tests.surfaces.anthropic_api.agents import conversations
from contract_tests.surfaces.anthropic_api.test_sdk import HI, QUESTION, WEATHER, answered, create, open_sdk, said

CALL = {"calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"}]}
LOOP = [CALL, {"text": "Oslo: {{results.oslo}}."}]
RESULT: Any = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "oslo", "content": "rain"}]}
ASK: Any = QUESTION
THANKS: Any = {"role": "user", "content": "Thanks."}
ASKED: Any = {"model": "fake", "max_tokens": 1000}


@requirement("anthropic-surface:threads")
async def test_a_thread_that_sends_only_what_is_new_is_one_conversation() -> None:
    peer = Peer()
    async with open_sdk([LOOP, HI, HI], peer) as (server, client):
        thread = client.beta.messages.thread(**ASKED, system="You know.", messages=[ASK], tools=[WEATHER])
        first = await thread.send()
        second = await thread.send(RESULT)
        third = await thread.send(THANKS)
        whole: list[Any] = [QUESTION, *answered(first, {"oslo": "rain"})]  # type: ignore[arg-type]
        whole += [{"role": "assistant", "content": second.content}, THANKS]
        whole += [{"role": "assistant", "content": third.content}, THANKS]
        await create(client, whole, system="You know.")
        [conversation] = await conversations(server)

    assert [said(one) for one in (first, second, third)] == ["", "Oslo: rain.", "Hi."]  # type: ignore[arg-type]
    assert conversation["turns"] == 3
    assert [one.what for one in peer.seen].count("opened") == 1


@requirement("anthropic-surface:threads")
async def test_a_thread_that_cannot_be_continued_sends_the_whole_history() -> None:
    async with open_sdk([HI, HI, HI]) as (server, client):
        thread = client.beta.messages.thread(**ASKED, messages=[ASK])
        await thread.send()
        fork = thread.fork()
        await thread.send(THANKS)
        with pytest.raises(anthropic.NotFoundError) as refused:
            await client.beta.messages.create(
                **ASKED, messages=[THANKS], thread={"type": "continue", "previous_message_id": "msg_made-up"}
            )
        await fork.send({"role": "user", "content": "Another way."})
        kept = await conversations(server)

    assert refused.value.error_code == "thread_not_found"
    assert sorted(one["turns"] for one in kept) == [1, 2]
    assert len(fork.messages) == 4


@requirement("anthropic-surface:threads")
async def test_two_users_with_the_same_words_may_answer_the_same_call_at_the_same_moment() -> None:
    """Whose results come second sends the whole history, which begins a conversation of its own."""
    async with open_sdk([LOOP, HI]) as (server, client):
        threads = [client.beta.messages.thread(**ASKED, messages=[ASK], tools=[WEATHER]) for _ in range(2)]
        calls = [await thread.send() for thread in threads]
        heard: list[str] = []

        async def answer(thread: Any, sky: str) -> None:
            result = {"type": "tool_result", "tool_use_id": "oslo", "content": sky}
            heard.append(said(await thread.send({"role": "user", "content": [result]})))

        async with anyio.create_task_group() as group:
            for thread, sky in zip(threads, ("rain", "snow"), strict=True):
                group.start_soon(answer, thread, sky)
        kept = await conversations(server)

    assert calls[0].id == calls[1].id
    assert len([text for text in heard if text in ("Oslo: rain.", "Oslo: snow.")]) == 1
    assert len(kept) == 2
