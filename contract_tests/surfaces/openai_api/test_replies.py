"""A reply and those who read it: repeated, left, late, long, or never answered."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import openai
import pytest

from contract_tests.requirements import requirement
from contract_tests.surfaces.http import client_of
from contract_tests.surfaces.openai_api.chat import WEATHER, Place, calls_of, collected, open_place
from harness.surfaces.compatible.settings import CompatibleSettings

HANG: list[Any] = [{"text": "one"}, {"hang": True}]
CALL: list[Any] = [{"calls": [{"name": "weather", "id": "oslo"}]}, {"text": "{{results.oslo}}"}]
BODY: Any = {"model": "fake", "messages": [{"role": "user", "content": "Go."}], "tools": [WEATHER]}
SHORT_GRACE = CompatibleSettings(grace_seconds=0.2, stream_grace_seconds=0.2)


def waiting_script(go_on: anyio.Event) -> list[Any]:
    return [[{"text": "one "}, {"until": go_on}, {"text": "two"}]]


@requirement("openai:retry")
async def test_the_sdks_retry_after_a_timeout_joins_the_reply_that_grows() -> None:
    go_on = anyio.Event()
    async with open_place(waiting_script(go_on)) as place:
        client = place.client(timeout=1, max_retries=3)
        waiters = place.server.waiters
        heard: Any = None
        async with anyio.create_task_group() as group:

            async def let_it_end_once_the_first_try_has_left() -> None:
                await waiters.wait_for(1)
                await waiters.wait_for(0)
                await waiters.wait_for(1)
                go_on.set()

            group.start_soon(let_it_end_once_the_first_try_has_left)
            heard = await client.chat.completions.create(**BODY)

    assert heard.choices[0].message.content == "one two"
    assert [one.what for one in place.peer.seen] == ["opened", "message", "closed"]


@requirement("openai:retry")
@pytest.mark.parametrize("stream", [False, True])
async def test_an_equal_request_reads_the_same_reply_from_its_beginning(stream: bool) -> None:
    go_on = anyio.Event()
    async with open_place(waiting_script(go_on)) as place:
        client = place.client()
        first = await client.chat.completions.create(**BODY, stream=True)
        seen = [await anext(first), await anext(first)]
        heard: list[Any] = []
        rest: Any = None

        async def repeat() -> None:
            given: Any = await client.chat.completions.create(**BODY, stream=stream)
            heard.append((await collected(given)).message.content if stream else given.choices[0].message.content)

        async with anyio.create_task_group() as group:
            group.start_soon(repeat)
            await place.server.waiters.wait_for(2)
            go_on.set()
            rest = await collected(first)

    assert [chunk.choices[0].delta.content for chunk in seen] == ["", "one "]
    assert rest.message.content == "two"
    assert heard == ["one two"]
    assert place.count("message") == 1


@requirement("openai:retry")
async def test_a_reply_is_recorded_for_a_while_and_calls_are_too() -> None:
    async with open_place([CALL]) as place:
        client = place.client()
        first = await client.chat.completions.create(**BODY)
        again = await client.chat.completions.create(**BODY)
        messages = [
            *BODY["messages"],
            again.choices[0].message.model_dump(exclude_none=True),
            {"role": "tool", "tool_call_id": "oslo", "content": "rain"},
        ]
        answers = [await client.chat.completions.create(**{**BODY, "messages": messages}) for _ in range(2)]

    assert (first.id, first.choices) == (again.id, again.choices)
    assert [one.choices[0].message.content for one in answers] == ["rain", "rain"]
    assert [one.what for one in place.peer.seen] == ["opened", "message", "answer", "closed"]


@requirement("openai:retry")
async def test_a_reply_that_broke_or_is_too_old_is_made_anew() -> None:
    script = [[{"error": {"code": "provider_error", "message": "It rains."}}], CALL]
    async with open_place(script, compatible=CompatibleSettings(recorded_seconds=0.0)) as place:
        client = place.client()
        for _ in range(2):
            with pytest.raises(openai.InternalServerError, match="It rains"):
                await client.chat.completions.create(**BODY)
    async with open_place([CALL], compatible=CompatibleSettings(recorded_seconds=0.0)) as other:
        client = other.client()
        ids = {(await client.chat.completions.create(**BODY)).id for _ in range(2)}

    assert place.count("message") == 2
    assert len(ids) == 2


@requirement("openai:disconnect")
async def test_who_leaves_a_stream_has_cancelled_the_turn_and_its_peer_ends() -> None:
    async with open_place([HANG], compatible=SHORT_GRACE) as place:
        stream = await place.client().chat.completions.create(**BODY, stream=True)
        await anext(stream)
        await stream.close()
        await place.peer.has_seen("interrupt")
        await place.peer.has_seen("closed")


@requirement("openai:disconnect")
async def test_who_leaves_before_an_answer_has_cancelled_the_turn_and_its_peer_ends() -> None:
    async with open_place([HANG], compatible=SHORT_GRACE) as place:
        with pytest.raises(openai.APITimeoutError):
            await place.client(timeout=0.3).chat.completions.create(**BODY)
        await place.peer.has_seen("interrupt")
        await place.peer.has_seen("closed")


@asynccontextmanager
async def open_left_place() -> AsyncGenerator[Place]:
    """A client has left in mid-stream; within its grace time the reply ends with a call, and nothing was cancelled."""
    go_on = anyio.Event()
    script = [[{"text": "one"}, {"until": go_on}, {"calls": [{"name": "weather", "id": "oslo"}]}, {"text": "two"}]]
    settings = CompatibleSettings(grace_seconds=1, stream_grace_seconds=1)
    async with open_place(script, compatible=settings) as place:
        stream = await place.client().chat.completions.create(**BODY, stream=True)
        await anext(stream)
        await stream.close()
        await place.server.waiters.wait_for(0)
        go_on.set()
        yield place


@requirement("openai:disconnect")
async def test_calls_that_came_after_their_client_had_left_wait_for_nobody() -> None:
    async with open_left_place() as place:
        await place.peer.has_seen("closed")


@requirement("openai:disconnect")
async def test_a_client_that_comes_back_in_time_gets_the_calls_it_has_missed() -> None:
    async with open_left_place() as place:
        chat = place.chat(stream=True)
        assert [call for call, _, _ in calls_of(await chat.say("Go."))] == ["oslo"]
        await anyio.sleep(1.2)  # longer than the grace time: what was told waits for its results
        assert (await chat.answer({"oslo": "rain"})).message.content == "two"


@requirement("openai:disconnect")
async def test_one_of_two_readers_may_leave() -> None:
    go_on = anyio.Event()
    async with open_place(waiting_script(go_on), compatible=SHORT_GRACE) as place:
        client = place.client()
        staying = await client.chat.completions.create(**BODY, stream=True)
        leaving = await client.chat.completions.create(**BODY, stream=True)
        await anext(leaving)
        await leaving.close()
        await place.server.waiters.wait_for(1)
        go_on.set()
        heard = await collected(staying)

    assert heard.message.content == "one two"
    assert place.count("interrupt") == 0


@requirement("openai:abandoned")
async def test_calls_that_nobody_answers_end_their_peer_and_later_results_begin_another() -> None:
    async with open_place([CALL], compatible=CompatibleSettings(abandoned_seconds=0.1)) as place:
        chat = place.chat()
        await chat.say("Go.")
        before = chat.conversation
        await place.peer.has_seen("closed")
        heard = await chat.answer({"oslo": "rain"})

    assert calls_of(heard) != []  # the script begins anew
    assert chat.conversation != before
    assert len(place.connector.opened[1].history) == 3


@requirement("openai:abandoned")
async def test_too_many_conversations_end_the_one_that_was_idle_longest() -> None:
    async with open_place([[{"text": "Hello."}]], compatible=CompatibleSettings(max_conversations=2)) as place:
        chats = [place.chat() for _ in range(3)]
        for number, chat in enumerate(chats):
            await chat.say(f"I am number {number}.")
        await place.peer.has_seen("closed")
        begun = [chat.conversation for chat in chats]
        await chats[2].say("Still there?")
        await chats[0].say("Still there?")

    assert chats[2].conversation == begun[2]
    assert chats[0].conversation != begun[0]


@requirement("openai:keeps-alive")
async def test_a_silent_stream_has_comments_and_a_long_reply_white_space() -> None:
    go_on = anyio.Event()
    settings = CompatibleSettings(patience_seconds=0.01)
    async with (
        open_place(waiting_script(go_on), compatible=settings, heartbeat_seconds=0.02) as place,
        client_of(place.server) as client,
        client.stream("POST", "/openai/v1/chat/completions", json=BODY) as long,
        client.stream("POST", "/openai/v1/chat/completions", json={**BODY, "stream": True}) as streamed,
    ):
        white = await _until(long, b"   ")
        comments = await _until(streamed, b": heartbeat\n\n: heartbeat\n\n")
        go_on.set()
        body = httpx2.Response(200, content=white + await _rest(long)).json()
        events = comments + await _rest(streamed)

    assert body["choices"][0]["message"]["content"] == "one two"
    assert long.headers["x-harness-conversation"] == streamed.headers["x-harness-conversation"]
    assert events.endswith(b"data: [DONE]\n\n")


@requirement("openai:keeps-alive")
async def test_a_long_reply_that_breaks_is_cut_and_never_taken_for_an_answer() -> None:
    go_on = anyio.Event()
    script = [[{"text": "one"}, {"until": go_on}, {"error": {"code": "provider_error"}}]]
    settings = CompatibleSettings(patience_seconds=0.01)
    async with (
        open_place(script, compatible=settings, heartbeat_seconds=0.02) as place,
        client_of(place.server) as client,
    ):
        with pytest.raises(httpx2.RemoteProtocolError):
            async with client.stream("POST", "/openai/v1/chat/completions", json=BODY) as long:
                await _until(long, b" ")
                go_on.set()
                await _rest(long)


@requirement("openai:stops")
async def test_a_server_that_stops_ends_streams_with_an_error_and_refuses_new_requests() -> None:
    async with open_place([HANG]) as place:
        stream = await place.client().chat.completions.create(**BODY, stream=True)
        await anext(stream)
        place.server.waiters.settle()
        with pytest.raises(openai.APIError, match="stopping"):
            await collected(stream)
        with pytest.raises(openai.InternalServerError, match="stopping") as refused:
            await place.client().chat.completions.create(**{**BODY, "user": "somebody else"})

    assert refused.value.status_code == 503


async def _until(response: httpx2.Response, wanted: bytes) -> bytes:
    """The bytes up to those; the rest of the response stays to be read."""
    read = b""
    chunks = _chunks(response)
    while wanted not in read:
        read += await anext(chunks)
    return read


async def _rest(response: httpx2.Response) -> bytes:
    return b"".join([chunk async for chunk in _chunks(response)])


def _chunks(response: httpx2.Response) -> Any:
    if not hasattr(response, "chunks_of_the_test"):
        response.chunks_of_the_test = response.aiter_raw()  # type: ignore[attr-defined]
    return response.chunks_of_the_test  # type: ignore[attr-defined]
