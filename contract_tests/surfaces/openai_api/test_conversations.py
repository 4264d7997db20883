"""Which conversation a request belongs to, as the `openai` package's users see it."""

from __future__ import annotations

from typing import Any

import anyio
import openai
import pytest

from contract_tests.llm_suite import is_waiting, until
from contract_tests.requirements import requirement
from contract_tests.surfaces.openai_api.chat import CLOCK, WEATHER, Chat, calls_of, open_place
from harness.contract import ConversationOptions, TextBlock, text_of
from harness.store.memory import MemoryStore
from harness.surfaces.compatible.headers import CONVERSATION
from harness.surfaces.compatible.settings import CompatibleSettings, SideRequests
from harness.surfaces.server import serve
from harness.surfaces.tokens import Token

ROUND: list[Any] = [
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


@requirement("openai:tool-loop", "R-M11", "R-G2")
@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_loop_is_one_peer_one_conversation_and_one_turn(stream: bool) -> None:
    async with open_place([ROUND]) as place:
        chat = place.chat(stream=stream)
        asked = await chat.say("How is the weather?")
        first = chat.conversation
        answered = await chat.answer(RESULTS)

    assert (asked.finish_reason, asked.message.content) == ("tool_calls", "I will look.")
    assert calls_of(asked) == [("oslo", "weather", '{"city":"Oslo"}'), ("rome", "weather", '{"city":"Rome"}')]
    assert (answered.finish_reason, answered.message.content) == ("stop", "Oslo: rain, Rome: sun.")
    assert first == chat.conversation
    assert [one.what for one in place.peer.seen] == ["opened", "message", "answer", "answer", "closed"]


@requirement("openai:continues")
async def test_the_next_message_goes_on_with_the_same_peer() -> None:
    async with open_place([ROUND, HELLO, ROUND]) as place:
        chat = place.chat()
        await chat.say("How is the weather?")
        await chat.answer(RESULTS)
        await chat.say("And you?")
        again = await chat.say("Again?", stream=True)
        await chat.answer({call[0]: "fog" for call in calls_of(again)}, stream=True)

    assert place.count("opened") == 1
    assert place.messages == [["How is the weather?"], ["And you?"], ["Again?"]]


@requirement("openai:users")
async def test_two_tokens_with_the_same_words_never_meet() -> None:
    tokens = [Token("first", "ada"), Token("second", "bob")]
    async with open_place([ROUND], tokens=tokens) as place:
        ada, bob = place.chat(0), place.chat(1)
        async with anyio.create_task_group() as group:
            group.start_soon(ada.say, "How is the weather?")
            group.start_soon(bob.say, "How is the weather?")
        heard = (await ada.answer({"oslo": "a", "rome": "a"}), await bob.answer({"oslo": "b", "rome": "b"}))

    assert [one.message.content for one in heard] == ["Oslo: a, Rome: a.", "Oslo: b, Rome: b."]
    assert ada.conversation != bob.conversation
    assert place.count("opened") == 2


@requirement("openai:users")
async def test_two_users_of_one_token_share_the_same_words_and_part_with_different_ones() -> None:
    async with open_place([ROUND, HELLO]) as place:
        ada, bob = place.chat(), place.chat()
        await ada.say("How is the weather?")
        await bob.say("How is the weather?")
        shared = ada.conversation == bob.conversation
        first = await ada.answer({"oslo": "a", "rome": "a"})
        other = await bob.answer({"oslo": "b", "rome": "b"})

    assert shared
    assert first.message.content == "Oslo: a, Rome: a."
    assert ada.conversation != bob.conversation
    # the peer of the second user was begun with what that user had seen
    assert other.message.content == "I will look."
    seeded = place.connector.opened[1].history
    assert [call.call_id for call in seeded[1].tool_calls] == ["oslo", "rome"]
    assert [text_of(one.content) for one in seeded[2].tool_results] == ["b", "b"]


@requirement("openai:users")
async def test_two_users_of_one_token_may_answer_the_same_calls_at_the_same_moment() -> None:
    async with open_place([ROUND, HELLO]) as place:
        ada, bob = place.chat(), place.chat()
        await ada.say("How is the weather?")
        await bob.say("How is the weather?")
        heard: dict[str, str] = {}

        async def answer(chat: Chat, name: str) -> None:
            heard[name] = (await chat.answer({"oslo": name, "rome": name})).message.content

        async with anyio.create_task_group() as group:
            group.start_soon(answer, ada, "a")
            group.start_soon(answer, bob, "b")

    # one goes on with the peer, the other one's results are told to a new one
    assert sorted(heard.values()) in (["I will look.", f"Oslo: {name}, Rome: {name}."] for name in "ab")
    assert ada.conversation != bob.conversation
    assert place.count("opened") == 2


@requirement("openai:users")
async def test_calls_of_the_same_id_are_told_apart_by_the_history_before_them() -> None:
    async with open_place([ROUND]) as place:
        chats = [place.chat(), place.chat()]
        for number, chat in enumerate(chats):
            await chat.say(f"I am number {number}.")
        heard = [await chat.answer({"oslo": str(n), "rome": str(n)}) for n, chat in reversed([*enumerate(chats)])]

    assert [one.message.content for one in heard] == ["Oslo: 1, Rome: 1.", "Oslo: 0, Rome: 0."]
    assert place.count("opened") == 2


@requirement("openai:edited")
@pytest.mark.parametrize("edit", ["user", "assistant"])
async def test_an_edited_message_begins_a_conversation_with_the_history(edit: str) -> None:
    async with open_place([HELLO]) as place:
        chat = place.chat()
        await chat.say("I am Ada.")
        await chat.say("And you?")
        before = chat.conversation
        number = 0 if edit == "user" else 1
        chat.messages[number]["content"] = "I am Bob."
        await chat.say("Who am I?")

    assert chat.conversation != before
    assert place.count("opened") == 2
    history = place.connector.opened[1].history
    assert [text_of(one.content) for one in history] == [one["content"] for one in chat.messages[:4]]
    assert place.messages[-1] == ["Who am I?"]


@requirement("openai:edited")
async def test_a_regenerated_message_begins_a_conversation_with_the_history() -> None:
    async with open_place([HELLO, [{"text": "First."}], [{"text": "Second."}]]) as place:
        chat = place.chat(extra_headers={"Cache-Control": "no-cache"})
        await chat.say("I am Ada.")
        await chat.say("Who am I?")
        before, _ = chat.conversation, chat.messages.pop()
        again = await chat.send()

    assert chat.conversation != before
    assert again.message.content == "Hello."  # the first turn of a new peer
    assert [text_of(one.content) for one in place.connector.opened[1].history] == ["I am Ada.", "Hello."]


@requirement("openai:edited")
async def test_of_two_conversations_that_stand_at_the_same_point_neither_is_continued() -> None:
    async with open_place([HELLO]) as place:
        twins = [place.chat(extra_headers={"Cache-Control": "no-cache"}) for _ in range(2)]
        for twin in twins:
            await twin.say("I am Ada.")
        known = {twin.conversation for twin in twins}
        await twins[0].say("Who am I?")

    assert len(known) == 2
    assert twins[0].conversation not in known
    assert place.count("opened") == 3


@requirement("openai:kind")
@pytest.mark.parametrize(
    "change",
    [
        {"tools": [WEATHER, CLOCK]},
        {"model": "fake/other"},
        {"messages": "system"},
    ],
    ids=["tools", "model", "system"],
)
async def test_other_tools_model_or_instructions_are_another_conversation(change: dict[str, Any]) -> None:
    async with open_place([HELLO]) as place:
        chat = place.chat()
        await chat.say("I am Ada.")
        before = chat.conversation
        if change.pop("messages", None):
            chat.messages.insert(0, {"role": "system", "content": "Be brief."})
        await chat.say("Who am I?", **change)

    assert chat.conversation != before
    assert [text_of(one.content) for one in place.connector.opened[1].history] == ["I am Ada.", "Hello."]


@requirement("openai:missing-results")
@pytest.mark.parametrize("given", [{"oslo": "rain"}, {}])
async def test_some_of_the_results_are_refused_and_change_nothing(given: dict[str, str]) -> None:
    async with open_place([ROUND]) as place:
        chat = place.chat()
        await chat.say("How is the weather?")
        results: Any = [{"role": "tool", "tool_call_id": one, "content": text} for one, text in given.items()]
        words: Any = [] if results else [{"role": "user", "content": "Well?"}]
        with pytest.raises(openai.BadRequestError) as refused:
            await place.client().chat.completions.create(
                model="fake", messages=chat.messages + results + words, tools=[WEATHER]
            )
        untouched = place.count("answer")
        heard = await chat.answer(RESULTS)

    assert (refused.value.code, refused.value.param) == ("missing_tool_results", "messages")
    assert "'rome'" in refused.value.message
    assert refused.value.response.headers[CONVERSATION] == chat.conversation
    assert untouched == 0
    assert heard.message.content == "Oslo: rain, Rome: sun."
    assert place.count("opened") == 1


@requirement("openai:late-call")
async def test_a_call_that_comes_later_is_in_the_next_message() -> None:
    late = anyio.Event()
    script = [
        [
            {"calls": [{"name": "weather", "id": "oslo"}], "wait": False},
            {"calls": [{"name": "weather", "id": "bergen"}], "wait": False},
            {"until": late},
            {"calls": [{"name": "weather", "id": "rome"}], "wait": False},
            {"wait": "all"},
            {"text": "{{results.oslo}} {{results.bergen}} {{results.rome}}"},
        ]
    ]
    async with open_place(script) as place:
        chat = place.chat()
        first = await chat.say("Go.")
        late.set()
        second = await chat.answer({"oslo": "1", "bergen": "2"})
        third = await chat.answer({"rome": "3"})

    assert [[call[0] for call in calls_of(one)] for one in (first, second)] == [["oslo", "bergen"], ["rome"]]
    assert third.message.content == "1 2 3"
    assert place.count("opened") == 1


@requirement("openai:named")
async def test_a_named_conversation_goes_on_whatever_the_history_says() -> None:
    async with open_place([HELLO]) as place:
        chat = place.chat()
        await chat.say("I am Ada.")
        named = {"extra_headers": {CONVERSATION: chat.conversation}}
        other = Chat(chat.client, {**chat.options, **named})
        await other.say("Only this.", temperature=0.5, tools=[CLOCK], seed=4)
        with pytest.raises(openai.NotFoundError) as unknown:
            await place.chat(extra_headers={CONVERSATION: "c_none"}).say("Hello?")

    assert other.conversation == chat.conversation
    assert other.ignored == "seed, tools"
    assert place.messages == [["I am Ada."], ["Only this."]]
    assert unknown.value.code == "unknown_conversation"


@requirement("openai:named")
async def test_a_conversation_that_was_begun_elsewhere_can_be_named() -> None:
    async with open_place([ROUND, HELLO]) as place:
        house = place.house.for_owner("local", place.server.tokens[0].rights)
        begun = await house.begin_conversation(ConversationOptions(connector="fake"))
        turn_id = await house.submit_user_message(begun, [TextBlock(text="Go.")])
        await until(house, (begun, turn_id), is_waiting)
        chat = place.chat(extra_headers={CONVERSATION: begun})
        heard = await chat.answer(RESULTS)
        hello = await chat.say("And you?")

    assert (heard.message.content, hello.message.content) == ("Oslo: rain, Rome: sun.", "Hello.")
    assert chat.conversation == begun


@requirement("openai:restart")
async def test_calls_that_wait_are_found_by_a_server_that_has_forgotten_everything() -> None:
    async with open_place([ROUND, HELLO]) as place:
        chat = place.chat()
        await chat.say("How is the weather?")
        async with serve(place.house, connectors=["fake"], tokens=place.server.tokens) as next_server:
            chat.client = place.client(base_url=f"{next_server.url}/openai/v1")
            heard = await chat.answer(RESULTS)
            hello = await chat.say("And you?")

    assert (heard.message.content, hello.message.content) == ("Oslo: rain, Rome: sun.", "Hello.")
    assert place.count("opened") == 1


@requirement("openai:restart")
async def test_results_that_nobody_waits_for_belong_to_the_history_of_a_new_conversation() -> None:
    async with open_place([HELLO]) as place:
        chat = place.chat()
        chat.messages = [
            {"role": "user", "content": "How is Oslo?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "x", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
            },
        ]
        await chat.answer({"x": "rain"})

    history = place.connector.opened[0].history
    assert [one.role for one in history] == ["user", "assistant", "user"]
    assert [text_of(one.content) for one in history[2].tool_results] == ["rain"]
    assert place.messages == [["Go on with these tool results."]]


@requirement("openai:side-requests")
async def test_requests_without_tools_are_refused_or_leave_no_peer_behind() -> None:
    async with open_place([HELLO], compatible=CompatibleSettings(side_requests=SideRequests.REFUSE)) as place:
        with pytest.raises(openai.BadRequestError):
            await place.chat(tools=openai.NOT_GIVEN).say("A title, please.")
        await place.chat().say("Hello.")
    async with open_place([HELLO], compatible=CompatibleSettings(side_requests=SideRequests.ANSWER)) as answering:
        chat = answering.chat(tools=openai.NOT_GIVEN)
        await chat.say("A title, please.")
        await answering.peer.has_seen("closed")
        await chat.say("Another.")

    assert place.count("opened") == 1
    assert [len(one.history) for one in answering.connector.opened] == [0, 2]


@requirement("openai:restart")
@pytest.mark.parametrize("resume", ["exact", "continued"])
async def test_with_a_journal_the_next_process_goes_on(resume: str) -> None:
    script = {"turns": [ROUND, HELLO], "resume": resume}
    store = MemoryStore()
    token = [Token("sesame", "ada")]
    async with open_place(script, store=store, tokens=token) as place:
        chat = place.chat()
        await chat.say("How is the weather?")
        if resume == "continued":  # whose open turns do not survive
            await chat.answer(RESULTS)
        before = chat.conversation
    async with open_place(script, store=store, tokens=token) as after:
        chat.client = after.client()
        if resume == "exact":
            heard = await chat.answer(RESULTS)
            assert heard.message.content == "Oslo: rain, Rome: sun."
        hello = await chat.say("And you?", extra_headers={CONVERSATION: before})

    assert hello.message.content == "Hello."
    assert chat.conversation == before


@requirement("openai:late-call", "R-G1")
@pytest.mark.parametrize("ended", [False, True])
async def test_results_of_calls_that_the_peer_has_given_up_meet_what_it_said_since(ended: bool) -> None:
    gone, go_on = anyio.Event(), anyio.Event()
    script: list[Any] = [
        {"calls": [{"name": "weather", "id": "oslo"}], "wait": False},
        {"until": gone},
        {"withdraw": "oslo"},
        {"text": "Never mind."},
        *([] if ended else [{"until": go_on}]),
        {"text": " Bye."},
    ]
    async with open_place([script, HELLO]) as place:
        chat = place.chat()
        await chat.say("Go.")
        gone.set()
        house = place.house.for_owner("local", place.server.tokens[0].rights)
        [turn] = (await house.export_conversation(chat.conversation or "")).turns
        await until(house, (chat.conversation or "", turn.turn_id), lambda state: not state.pending_requests)
        go_on.set()
        heard = await chat.answer({"oslo": "rain"})
        hello = await chat.say("And you?")

    assert heard.finish_reason == "stop"
    assert heard.message.content.startswith("Never mind.")
    assert hello.message.content == "Hello."
    assert place.count("opened") == 1
    assert place.count("answer") == 0
