"""A turn as server-sent events: resumed exactly, kept alive, and never held open for nobody."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest

from contract_tests.llm_suite import open_server
from contract_tests.requirements import requirement
from contract_tests.surfaces.http import begin_turn, client_of, numbers, open_events, state_of
from harness.settings import Settings
from harness.surfaces.server import Server

LETTERS = [{"text": list("abcdefghij")}, {"calls": [{"name": "clock", "id": "c"}]}, {"text": "end"}]
HANG = [{"text": "one"}, {"hang": True}]


@asynccontextmanager
async def native(script: object, **options: Any) -> AsyncGenerator[tuple[Server, httpx2.AsyncClient]]:
    with anyio.fail_after(10):
        async with open_server(script, **options) as server, client_of(server) as client:
            yield server, client


async def finished_turn(client: httpx2.AsyncClient) -> tuple[str, list[dict[str, Any]]]:
    """A turn of `LETTERS` that is over, and all its items."""
    turn = await begin_turn(client)
    async with open_events(client, turn) as events:
        while not (state := state_of(await events.next())).get("pending_requests"):
            pass
        await client.post(f"{turn}/responses", json={"responses": [{"request_id": "c"}]})
        await events.rest()
    state = (await client.get(turn)).json()
    return turn, state["new_output_items"]


async def test_each_event_is_the_turn_at_its_number() -> None:
    async with native([LETTERS]) as (_, client):
        turn = await begin_turn(client)
        states: list[dict[str, Any]] = []
        async with open_events(client, turn) as events:
            while (event := await events.next()) is not None:
                state = state_of(event)
                states.append(state)
                assert (event.event, event.id) == ("state", str(state["sequence_no"]))
                if state.get("pending_requests") and len(state["pending_requests"]) == 1:
                    await client.post(f"{turn}/responses", json={"responses": [{"request_id": "c"}]})
        final = (await client.get(turn)).json()

    assert events.response.headers["content-type"] == "text/event-stream; charset=utf-8"
    items = [item for state in states for item in state["new_output_items"]]
    assert items == final["new_output_items"]
    assert (states[-1]["status"], states[-1]["stop_reason"]) == ("completed", "end_turn")
    assert [state["status"] for state in states[:-1]].count("completed") == 0


@requirement("R-M8")
async def test_a_stream_resumes_exactly_behind_the_last_event_wherever_it_was_cut() -> None:
    async with native([LETTERS]) as (_, client):
        turn, whole = await finished_turn(client)
        last = whole[-1]["sequence_no"]
        for cut in range(last):
            async with open_events(client, turn, str(cut)) as events:
                states = [state_of(event) for event in await events.rest()]
            assert numbers(states) == list(range(cut + 1, last + 1))
        for cut in range(last + 1):
            async with open_events(client, turn, since_sequence_no=cut, max_items=2) as events:
                states = [state_of(event) for event in await events.rest()]
            assert numbers(states) == list(range(cut + 1, last + 1))
            assert states[-1]["status"] == "completed"


@requirement("R-M8")
async def test_a_cut_in_the_middle_of_a_running_turn_loses_and_repeats_nothing() -> None:
    go_on = anyio.Event()
    async with native([[{"text": "a"}, {"text": "b"}, {"until": go_on}, {"text": "c"}]]) as (_, client):
        turn = await begin_turn(client)
        async with open_events(client, turn) as events:
            first = await events.next()
            assert first is not None
        go_on.set()
        async with open_events(client, turn, first.id) as events:
            rest = [state_of(event) for event in await events.rest()]

    seen = numbers([state_of(first), *rest])
    assert seen == list(range(1, rest[-1]["sequence_no"] + 1))


@requirement("R-M8")
async def test_a_stream_tells_when_earlier_items_are_gone() -> None:
    settings = Settings(max_turn_items=5)
    script = [[{"text": list("abcdefghijkl")}, {"notice": {"code": "retry", "text": "again"}}, {"text": "end"}]]
    async with native(script, settings=settings) as (_, client):
        turn = await begin_turn(client)
        while (await client.get(turn, params={"max_wait_ms": 5000, "since_sequence_no": 13})).json()["status"] != (
            "completed"
        ):
            pass
        async with open_events(client, turn, "2") as events:
            [gap] = await events.rest()
        first_kept = state_of(gap)["first_sequence_no"]
        async with open_events(client, turn, str(first_kept - 1)) as events:
            [whole] = await events.rest()

    assert (gap.event, whole.event) == ("resync", "state")
    assert first_kept > 3
    assert numbers([state_of(gap)]) == list(range(first_kept, int(gap.id or 0) + 1))
    assert "notice" in {item["kind"] for item in state_of(gap)["new_output_items"]}


@requirement("R-M8")
async def test_a_silent_stream_has_heartbeats() -> None:
    async with native([HANG], heartbeat_seconds=0.02) as (_, client):
        turn = await begin_turn(client)
        async with open_events(client, turn, "1") as events:
            await events.until_bytes(b": heartbeat\n\n", times=3)


async def test_a_browser_that_has_all_is_told_to_stay_away() -> None:
    async with native([LETTERS]) as (_, client):
        turn, whole = await finished_turn(client)
        async with open_events(client, turn, str(whole[-1]["sequence_no"])) as events:
            assert events.response.status_code == 204


async def test_an_unknown_turn_is_a_problem_before_the_stream_begins() -> None:
    async with native([LETTERS]) as (_, client):
        turn = await begin_turn(client)
        async with open_events(client, turn + "x") as events:
            await events.response.aread()
            assert (events.response.status_code, events.response.json()["code"]) == (404, "unknown_turn")


async def test_a_conversation_that_is_deleted_ends_its_streams() -> None:
    async with native([HANG]) as (_, client):
        turn = await begin_turn(client)
        async with open_events(client, turn) as events:
            await events.next()
            await client.delete(turn.partition("/turns")[0])
            rest = await events.rest()
    last = state_of(rest[-1])
    assert (rest[-1].event, last.get("code", last["status"])) in [
        ("state", "cancelled"),  # the stream was still there to see it
        ("problem", "unknown_conversation"),
    ]


@requirement("http:departure")
async def test_a_client_that_goes_away_frees_its_stream() -> None:
    async with native([HANG]) as (server, client):
        turn = await begin_turn(client)
        async with open_events(client, turn) as events:
            await events.next()
            await server.waiters.wait_for(1)
        await server.waiters.wait_for(0)


@requirement("http:departure")
async def test_a_reader_that_stops_reading_holds_up_neither_the_turn_nor_the_shutdown() -> None:
    script = [[{"text": ["x" * 1_000_000] * 8}]]
    with anyio.fail_after(10):
        async with open_server(script) as server, client_of(server) as client:
            turn = await begin_turn(client)
            async with open_events(client, turn):
                state: dict[str, Any] = {"sequence_no": 0}
                while state.get("status") != "completed":
                    params = {"since_sequence_no": state["sequence_no"], "max_wait_ms": 5000}
                    state = (await client.get(turn, params=params)).json()
                with anyio.fail_after(4):
                    server.waiters.settle()
                    await server.waiters.wait_for(0)


@requirement("http:shutdown")
async def test_a_shutdown_ends_streams_in_order() -> None:
    async with native([HANG]) as (server, client):
        turn = await begin_turn(client)
        async with open_events(client, turn) as events:
            await events.next()
            server.waiters.settle()
            assert await events.rest() == []
        assert not events.raw.endswith(b"data")


@requirement("R-J1")
@pytest.mark.parametrize("text", ["line\u2028para\u2029next\x85", "\x0b\x0c\r", "\U0001f680"])
async def test_separators_inside_strings_end_no_line(text: str) -> None:
    async with native([[{"text": text}]]) as (_, client):
        turn = await begin_turn(client)
        async with open_events(client, turn) as events:
            received = [state_of(event) for event in await events.rest()]

    assert events.raw.isascii()
    lines = events.raw.decode().splitlines()
    data = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert data == received
    assert received[0]["new_output_items"][0]["text"] == text
