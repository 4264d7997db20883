"""Which conversation a Responses request belongs to, as the `openai` package's users see it."""

from __future__ import annotations

import json
from typing import Any

import anyio
import openai
import pytest

from contract_tests.requirements import requirement
from contract_tests.surfaces.openai_api.chat import open_place
from contract_tests.surfaces.openai_api.responses import (
    CLOCK,
    WEATHER,
    Talker,
    calls_of,
    collected,
    kept,
    outputs,
    talker,
)
from harness.contract import text_of
from harness.store.memory import MemoryStore
from harness.surfaces.compatible.headers import CONVERSATION
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.tokens import Token

ROUND: list[Any] = [
    {"thinking": ["Two ", "cities."]},
    {"text": ["I will ", "look."]},
    {
        "calls": [
            {"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"},
            {"name": "weather", "arguments": {"city": "Rome"}, "id": "rome"},
        ]
    },
    {"text": ["Oslo: {{results.oslo}}, ", "Rome: {{results.rome}}."]},
]
HELLO: list[Any] = [{"text": "Hello."}]
RESULTS = {"oslo": "rain", "rome": "sun"}
BODY: Any = {"model": "fake", "input": "Go.", "tools": [WEATHER]}


@requirement("responses:tool-loop", "R-M11")
@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_loop_is_one_peer_one_conversation_and_one_turn(stream: bool, by_id: bool) -> None:
    async with open_place([ROUND, HELLO]) as place:
        talk = talker(place, stream=stream, by_id=by_id)
        asked = await talk.say("How is the weather?")
        conversations = {talk.conversation}
        answered = await talk.answer(RESULTS)
        conversations.add(talk.conversation)
        hello = await talk.say("And you?")
        conversations.add(talk.conversation)

    assert (asked.status, asked.output_text) == ("completed", "I will look.")
    assert [item.type for item in asked.output] == ["reasoning", "message", "function_call", "function_call"]
    assert calls_of(asked) == [("oslo", "weather", '{"city":"Oslo"}'), ("rome", "weather", '{"city":"Rome"}')]
    assert (answered.output_text, hello.output_text) == ("Oslo: rain, Rome: sun.", "Hello.")
    assert answered.previous_response_id == (asked.id if by_id else None)
    assert len(conversations) == 1
    assert [one.what for one in place.peer.seen] == ["opened", "message", "answer", "answer", "message", "closed"]


@requirement("responses:previous")
async def test_ids_and_histories_may_take_turns() -> None:
    async with open_place([ROUND, HELLO, ROUND]) as place:
        talk = talker(place)
        await talk.say("How is the weather?")
        talk.by_id = True
        await talk.answer(RESULTS)
        talk.by_id = False
        await talk.say("And you?")
        talk.by_id = True
        await talk.say("Again?")

    assert place.messages == [["How is the weather?"], ["And you?"], ["Again?"]]
    assert place.count("opened") == 1


@requirement("responses:previous")
async def test_a_response_that_cannot_be_continued_is_refused_with_the_next_step() -> None:
    async with open_place([HELLO]) as place:
        talk = talker(place, by_id=True)
        first = await talk.say("Hi.")
        await talk.say("And you?")
        for previous in (first.id, "resp_none"):
            with pytest.raises(openai.BadRequestError, match="send the whole history") as refused:
                await place.client().responses.create(**BODY, previous_response_id=previous)
            assert (refused.value.code, refused.value.param) == ("previous_response_not_found", "previous_response_id")
        with pytest.raises(openai.BadRequestError, match="only what is new"):
            await talk.send(*talk.items, {"role": "user", "content": "So?"})

    assert place.count("message") == 2


@requirement("responses:previous", "openai:restart")
@pytest.mark.parametrize("resume", ["exact", "continued"])
async def test_the_last_response_is_continued_by_a_server_that_was_started_since(resume: str) -> None:
    script = {"turns": [ROUND, HELLO, ROUND], "resume": resume}
    store, tokens = MemoryStore(), [Token("first", "ada"), Token("second", "bob")]
    async with open_place(script, store=store, tokens=tokens) as place:
        talk = talker(place, by_id=True)
        asked = await talk.say("How is the weather?")
        if resume == "continued":  # whose open turns do not survive
            await talk.answer(RESULTS)
    async with open_place(script, store=store, tokens=tokens) as after:
        if resume == "exact":
            partial: Any = {**BODY, "previous_response_id": asked.id, "input": outputs({"oslo": "rain"})}
            with pytest.raises(openai.BadRequestError, match="rome"):
                await after.client().responses.create(**partial)
            talk.client = after.client()
            await talk.answer(RESULTS)
        answered, talk.client = talk.last, after.client()
        for token, previous in ((0, asked.id), (1, answered), (0, "resp_c-t1-0"), (0, "resp_--")):
            with pytest.raises(openai.BadRequestError, match="send the whole history"):
                await after.client(token).responses.create(**BODY, previous_response_id=previous)
        hello = await talk.say("And you?")
        again = await talk.say("Again?")

    assert (hello.output_text, len(calls_of(again))) == ("Hello.", 2)
    assert after.messages[-2:] == [["And you?"], ["Again?"]]
    assert after.count("opened") == 1


@requirement("responses:previous")
async def test_the_owner_of_another_token_continues_nothing() -> None:
    tokens = [Token("first", "ada"), Token("second", "bob")]
    async with open_place([ROUND], tokens=tokens) as place:
        asked = await talker(place).say("How is the weather?")
        with pytest.raises(openai.BadRequestError) as refused:
            await place.client(1).responses.create(
                model="fake", tools=[WEATHER], previous_response_id=asked.id, input=outputs(RESULTS)
            )

        untouched = place.count("answer")

    assert refused.value.code == "previous_response_not_found"
    assert untouched == 0


@requirement("responses:conversations")
async def test_what_a_running_conversation_cannot_change_is_named() -> None:
    async with open_place([HELLO]) as place:
        talk = talker(place, by_id=True)
        await talk.say("Hi.")
        await talk.say("And you?", tools=[CLOCK], instructions="Be brief.")

    assert talk.ignored == "instructions, tools"
    assert place.count("opened") == 1


@requirement("responses:conversations")
@pytest.mark.parametrize("by_id", [False, True])
@pytest.mark.parametrize("given", [{"oslo": "rain"}, {}])
async def test_some_of_the_results_are_refused_and_change_nothing(given: dict[str, str], by_id: bool) -> None:
    async with open_place([ROUND]) as place:
        talk = talker(place, by_id=by_id)
        await talk.say("How is the weather?")
        new = outputs(given) or [{"role": "user", "content": "Well?"}]
        with pytest.raises(openai.BadRequestError) as refused:
            await talk.send(*new)
        untouched = place.count("answer")
        heard = await talk.answer(RESULTS)

    assert (refused.value.code, refused.value.param) == ("missing_tool_results", "input")
    assert refused.value.response.headers[CONVERSATION] == talk.conversation
    assert untouched == 0
    assert heard.output_text == "Oslo: rain, Rome: sun."


@requirement("responses:conversations")
@pytest.mark.parametrize("edit", ["user", "assistant", "regenerated"])
async def test_an_edited_or_regenerated_message_begins_a_conversation_with_the_history(edit: str) -> None:
    async with open_place([HELLO]) as place:
        talk = talker(place, extra_headers={"Cache-Control": "no-cache"})
        await talk.say("I am Ada.")
        await talk.say("Who am I?")
        before = talk.conversation
        if edit == "user":
            talk.items[0]["content"] = "I am Bob."
        elif edit == "assistant":
            talk.items[1]["content"][0]["text"] = "Good day."
        del talk.items[2:]
        await talk.say("Who am I?")

    assert talk.conversation != before
    assert place.count("opened") == 2
    history = [text_of(one.content) for one in place.connector.opened[1].history]
    assert history == ["I am Bob." if edit == "user" else "I am Ada.", "Good day." if edit == "assistant" else "Hello."]


@requirement("responses:conversations")
async def test_a_conversation_may_go_on_with_the_other_api() -> None:
    async with open_place([ROUND, HELLO]) as place:
        first = place.chat()
        asked = await first.say("How is the weather?")
        history = [{"role": "user", "content": "How is the weather?"}, {"role": "assistant", "content": "I will look."}]
        calls = [
            {"type": "function_call", "call_id": call.id, "name": "weather", "arguments": call.function.arguments}
            for call in asked.message.tool_calls
        ]
        talk = Talker(place.client(), items=[*history, *calls])
        answered = await talk.answer(RESULTS)
        hello = await talk.say("And you?")

    assert (answered.output_text, hello.output_text) == ("Oslo: rain, Rome: sun.", "Hello.")
    assert talk.conversation == first.conversation
    assert place.count("opened") == 1


@requirement("responses:conversations")
async def test_results_that_nobody_waits_for_belong_to_the_history_of_a_new_conversation() -> None:
    async with open_place([HELLO]) as place:
        talk = talker(place)
        talk.items = [
            {"role": "user", "content": "How is Oslo?"},
            {"type": "function_call", "call_id": "x", "name": "weather", "arguments": "{}"},
        ]
        await talk.answer({"x": "rain"})

    history = place.connector.opened[0].history
    assert [one.role for one in history] == ["user", "assistant", "user"]
    assert [text_of(one.content) for one in history[2].tool_results] == ["rain"]


@requirement("responses:conversations")
async def test_an_approval_is_a_call_of_a_reserved_tool_for_who_opts_in() -> None:
    approval = [{"approval": {"tool": "Bash", "arguments": {"command": "ls"}}}, {"text": "Done."}]
    async with open_place([approval]) as place:
        talk = talker(place, by_id=True, extra_headers={"X-Harness-Requests": "tools"})
        [(call_id, name, arguments)] = calls_of(await talk.say("List the files."))
        done = await talk.answer({call_id: '{"selected_option": "allow_once"}'})

    assert (name, json.loads(arguments)["arguments"]) == ("harness_approval", {"command": "ls"})
    assert [one.selected_option for one in place.peer.answers] == ["allow_once"]
    assert done.output_text == "Done."


# --- a reply and those who read it -----------------------------------------------------------------------------------


@requirement("responses:retry")
@pytest.mark.parametrize("stream", [False, True])
async def test_an_equal_request_joins_the_response_that_grows(stream: bool) -> None:
    go_on = anyio.Event()
    async with open_place([[{"text": "one "}, {"until": go_on}, {"text": "two"}]]) as place:
        client = place.client()
        first: Any = await client.responses.create(**BODY, stream=True)
        created: Any = await anext(first)
        heard: list[Any] = []
        last: Any = None

        async def repeat() -> None:
            given: Any = await client.responses.create(**BODY, stream=stream)
            heard.append(await collected(given) if stream else given)

        async with anyio.create_task_group() as group:
            group.start_soon(repeat)
            await place.server.waiters.wait_for(2)
            go_on.set()
            last = [event async for event in first][-1]

    assert [one.to_dict() for one in heard] == [last.response.to_dict()]
    assert (heard[0].id, heard[0].output_text) == (created.response.id, "one two")
    assert place.count("message") == 1


@requirement("responses:retry")
async def test_results_may_be_sent_again_by_id() -> None:
    async with open_place([ROUND]) as place:
        talk = talker(place)
        asked = await talk.say("How is the weather?")
        again = await talker(place).say("How is the weather?")
        given: Any = {"model": "fake", "tools": [WEATHER], "previous_response_id": asked.id, "input": outputs(RESULTS)}
        answers = [await place.client().responses.create(**given) for _ in range(2)]

    assert again.to_dict() == asked.to_dict()
    assert answers[0].to_dict() == answers[1].to_dict()
    assert place.count("answer") == 2


@requirement("responses:retry")
async def test_who_leaves_a_stream_has_cancelled_the_turn() -> None:
    hang = [[{"text": "one"}, {"hang": True}]]
    async with open_place(hang, compatible=CompatibleSettings(stream_grace_seconds=0.1)) as place:
        stream = await place.client().responses.create(**BODY, stream=True)
        await anext(stream)
        await stream.close()
        await place.peer.has_seen("interrupt")
        await place.peer.has_seen("closed")


@requirement("responses:retry")
async def test_a_conversation_whose_turn_failed_is_begun_anew_by_its_history() -> None:
    script = [HELLO, [{"error": {"code": "provider_error", "message": "It rains."}}]]
    async with open_place(script) as place:
        talk = talker(place)
        first = await talk.say("Hi.")
        with pytest.raises(openai.InternalServerError, match="It rains"):
            await talk.say("And you?")
        with pytest.raises(openai.BadRequestError) as gone:
            await place.client().responses.create(**BODY, previous_response_id=first.id)
        hello = await talk.say("And you, again?")

    assert gone.value.code == "previous_response_not_found"
    assert hello.output_text == "Hello."
    assert [text_of(one.content) for one in place.connector.opened[1].history] == ["Hi.", "Hello."]
    assert kept(first) == talk.items[1:2]
