"""Client libraries as they come from their index, before the real agents: each does what it does with a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.connectors.processes import until_gone
from contract_tests.requirements import requirement
from contract_tests.surfaces.clients.libraries import (
    BY_ID,
    LIBRARIES,
    every_pair,
    every_pair_by_id,
    every_pair_some_always,
)
from contract_tests.surfaces.clients.lines import Library, Meeting, Place, Weather, open_place
from harness.contract import ConversationInfo
from harness.scripted_model import ReceivedRequest
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.testing.scenario import call

ONE_CITY = [{"calls": [call("get_weather", "c1", city="Oslo")]}, {"text": ["It is ", "{{results.c1}}."]}]
TWO_CITIES = [
    {"text": "I look.", "calls": [call("get_weather", "c1", city="Oslo"), call("get_weather", "c2", city="Rome")]},
    {"text": ["Oslo: {{results.c1}}, ", "Rome: {{results.c2}}."]},
]
WELCOME = {"text": "You are welcome."}
QUESTION = "How is the weather?"


def words(request: ReceivedRequest) -> list[str]:
    """The messages that a model was sent, save the marks for caches, which agents move."""
    body: Any = request.body
    return [json.dumps(_unmarked(one), sort_keys=True) for one in body.get("messages") or body["input"]]


def _unmarked(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _unmarked(one) for name, one in value.items() if name != "cache_control"}
        is_text = set(kept) == {"type", "text"}
        return kept["text"] if is_text else kept
    if isinstance(value, list):
        parts = [_unmarked(one) for one in value]
        return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else parts
    return value


def is_one_history(requests: Sequence[ReceivedRequest]) -> bool:
    """Each request begins with all of the one before it."""
    return all(
        after[: len(before)] == before and len(after) > len(before) for before, after in pairwise(map(words, requests))
    )


async def only_conversation(place: Place) -> ConversationInfo:
    """The only one, behind which is only one process."""
    [conversation] = await place.agent.conversations()
    assert len(await place.agent.pids()) == 1
    return conversation


@requirement("clients:loop")
@every_pair
async def test_a_loop_and_the_next_message_are_one_conversation(library: str, agent: str, tmp_path: Path) -> None:
    async with open_place(LIBRARIES[library], agent, [*ONE_CITY, WELCOME], tmp_path) as place:
        user, line = place.user()
        answer = await user.ask(QUESTION)
        after = await user.ask("Thanks.", answer.history)
        conversation = await only_conversation(place)
        requests = place.agent.model.requests

    assert (answer.text, after.text) == ("It is rain in Oslo.", "You are welcome.")
    assert line.weather.asked == ["Oslo"]
    assert line.conversations == [conversation.conversation_id] * 3
    assert len(requests) == 3
    assert is_one_history(requests)


@requirement("clients:loop", "clients:stream")
@every_pair_some_always
async def test_parallel_calls_are_streamed_and_each_runs_once(library: str, agent: str, tmp_path: Path) -> None:
    async with open_place(LIBRARIES[library], agent, [*TWO_CITIES, WELCOME], tmp_path) as place:
        user, line = place.user()
        answer = await user.ask(QUESTION, streams=True)
        after = await user.ask("Thanks.", answer.history, streams=True)
        conversation = await only_conversation(place)
        requests = place.agent.model.requests

    assert answer.text == "Oslo: rain in Oslo, Rome: rain in Rome."
    assert "".join(answer.pieces).endswith(answer.text)
    assert ("".join(after.pieces), after.text) == ("You are welcome.",) * 2
    assert sorted(line.weather.asked) == ["Oslo", "Rome"]
    assert line.conversations == [conversation.conversation_id] * 3
    assert len(requests) == 3
    assert is_one_history(requests)
    assert {past.call_id: past.result for past in requests[-1].past_calls} == {
        "c1": "rain in Oslo",
        "c2": "rain in Rome",
    }


@requirement("clients:loop")
@pytest.mark.parametrize("streams", [False, True])
@every_pair_by_id
async def test_a_loop_without_its_history_goes_on_by_id(
    library: str, agent: str, streams: bool, tmp_path: Path
) -> None:
    async with open_place(BY_ID[library], agent, [*TWO_CITIES, WELCOME], tmp_path) as place:
        user, line = place.user()
        answer = await user.ask(QUESTION, streams=streams)
        after = await user.ask("Thanks.", answer.history, streams=streams)
        conversation = await only_conversation(place)
        requests = place.agent.model.requests

    assert (answer.text, after.text) == ("Oslo: rain in Oslo, Rome: rain in Rome.", "You are welcome.")
    assert sorted(line.weather.asked) == ["Oslo", "Rome"]
    assert line.conversations == [conversation.conversation_id] * 3
    assert len(requests) == 3
    assert is_one_history(requests)


@requirement("clients:cancel")
@every_pair
async def test_to_leave_a_stream_ends_the_agent(library: str, agent: str, tmp_path: Path) -> None:
    script = [{"text": ["One ", "two"], "hang": True}, WELCOME]
    settings = CompatibleSettings(stream_grace_seconds=0.1)
    async with open_place(LIBRARIES[library], agent, script, tmp_path, settings) as place:
        user, _ = place.user()
        await user.leave(QUESTION)
        assert await place.agent.model.requests[0].wait_ended() == "client_left"
        pids = await place.agent.pids()
        await until_gone(pids)
        after = await user.ask("Hello?")

    assert len(pids) == 1
    assert after.text == "You are welcome."


@requirement("clients:cancel")
@every_pair
async def test_to_cancel_the_task_ends_the_agent(library: str, agent: str, tmp_path: Path) -> None:
    settings = CompatibleSettings(grace_seconds=0.1)
    async with open_place(LIBRARIES[library], agent, [{"text": "One", "hang": True}], tmp_path, settings) as place:
        user, _ = place.user()
        async with anyio.create_task_group() as group:
            group.start_soon(user.ask, QUESTION)
            await place.agent.model.wait_for_request(1)
            group.cancel_scope.cancel()
        assert await place.agent.model.requests[0].wait_ended() == "client_left"
        await until_gone(await place.agent.pids())


@requirement("clients:retry")
@every_pair
async def test_a_client_that_loses_patience_and_tries_again_gets_the_answer(
    library: str, agent: str, tmp_path: Path
) -> None:
    script = [{**entry, "delay_seconds": 2.5} for entry in ONE_CITY]
    async with open_place(LIBRARIES[library], agent, script, tmp_path) as place:
        user, line = place.user(timeout=1.5, max_retries=20)
        answer = await user.ask(QUESTION)
        conversation = await only_conversation(place)
        requests = place.agent.model.requests

    assert len(line.requests) >= 4, "the timeout was never reached"
    assert answer.text == "It is rain in Oslo."
    assert line.weather.asked == ["Oslo"]
    assert set(line.conversations) == {conversation.conversation_id}
    assert len(requests) == 2
    assert is_one_history(requests)


@requirement("clients:users")
@every_pair
async def test_two_users_with_the_same_words_have_an_agent_each(library: str, agent: str, tmp_path: Path) -> None:
    """They talk at the same time: each calls its tool before either has a result."""
    script = [{"calls": [call("get_weather", f"c{number}", city="Oslo")]} for number in (1, 2)]
    script += [{"text": "It is {{results.get_weather}}."}, {"text": "It is {{results.get_weather}}."}]
    meeting = Meeting(2)
    skies = ("rain", "snow")
    said: list[str] = ["", ""]
    async with open_place(LIBRARIES[library], agent, script, tmp_path) as place:
        users = [place.user(number, Weather(sky, meeting)) for number, sky in enumerate(skies)]

        async def ask(number: int) -> None:
            said[number] = (await users[number][0].ask(QUESTION)).text

        async with anyio.create_task_group() as group:
            group.start_soon(ask, 0)
            group.start_soon(ask, 1)
        kept = [await place.agent.conversations(number) for number in (0, 1)]
        pids = [*await place.agent.pids(0), *await place.agent.pids(1)]

    assert said == [f"It is {sky} in Oslo." for sky in skies]
    assert [line.weather.asked for _, line in users] == [["Oslo"], ["Oslo"]]
    assert [len(one) for one in kept] == [1, 1]
    assert len(set(pids)) == 2


@requirement("clients:users")
@every_pair
async def test_two_users_of_one_key_share_the_same_words_and_part_with_their_results(
    library: str, agent: str, tmp_path: Path
) -> None:
    script = [{"calls": [call("get_weather", "c1", city="Oslo")]}, {"text": "One."}, {"text": "Two."}]
    meeting = Meeting(2)
    said: list[str] = []
    async with open_place(LIBRARIES[library], agent, script, tmp_path) as place:
        users = [place.user(weather=Weather(sky, meeting), max_retries=2) for sky in ("rain", "snow")]

        async def ask(user: Library) -> None:
            said.append((await user.ask(QUESTION)).text)

        async with anyio.create_task_group() as group:
            for user, _ in users:
                group.start_soon(ask, user)
        kept = await place.agent.conversations()
        told = [json.dumps(request.body) for request in place.agent.model.requests[1:]]

    assert sorted(said) == ["One.", "Two."]
    assert [line.weather.asked for _, line in users] == [["Oslo"], ["Oslo"]]
    assert len(kept) == 2
    # nobody's model reads what the other one's tool has said
    assert sorted(("rain in Oslo" in text, "snow in Oslo" in text) for text in told) == [(False, True), (True, False)]


@requirement("clients:regenerated")
@every_pair
async def test_a_message_asked_again_is_a_conversation_that_knows_the_history(
    library: str, agent: str, tmp_path: Path
) -> None:
    script = [*ONE_CITY, {"text": "Two."}, {"text": "Three."}]
    async with open_place(LIBRARIES[library], agent, script, tmp_path) as place:
        user, line = place.user()
        first = await user.ask(QUESTION)
        second = await user.ask("And then?", first.history)
        again, _ = place.user(weather=line.weather, default_headers={"Cache-Control": "no-cache"})
        third = await again.ask("And then?", first.history)
        kept = await place.agent.conversations()
        told = json.dumps(place.agent.model.requests[-1].body)

    assert [one.text for one in (first, second, third)] == ["It is rain in Oslo.", "Two.", "Three."]
    assert line.weather.asked == ["Oslo"]
    assert sorted(one.turns for one in kept) == [1, 2]
    assert all(text in told for text in (QUESTION, "It is rain in Oslo.", "And then?"))
    assert "Two." not in told
