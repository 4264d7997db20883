"""JSON-RPC over two pipes: calls, followed turns, broken lines, and what a client may do wrong."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract_tests.requirements import requirement
from contract_tests.surfaces.stdio.client import Client, Fault, connected
from harness.surfaces.descriptors import write_all
from harness.wire.lines import LineCutter

ROUND = [
    {"text": ["a", "b"]},
    {"calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"}]},
    {"text": "{{results.oslo}}"},
]
HANG = [{"text": "one"}, {"hang": True}]
RAIN = [{"request_id": "oslo", "content": [{"type": "text", "text": "rain \N{LINE SEPARATOR}\ud83d"}]}]


@requirement("stdio:ready")
async def test_the_first_line_says_who_this_is_and_what_may_be_asked() -> None:
    async with connected([ROUND]) as (client, _):
        ready = await client.next()
        connectors = await client.ask("list_connectors")

    assert ready is not None
    assert (ready["method"], "id" in ready) == ("ready", False)
    told = ready["params"]
    assert (told["protocol"], told["version"]) == ("harness-stdio/1", "9")
    assert {"begin_conversation", "follow_turn", "export_conversation"} <= set(told["capabilities"]["methods"])
    assert told["connectors"] == connectors["connectors"] == [{"name": "fake", "is_default": True}]


@requirement("stdio:operations")
async def test_a_whole_conversation_by_long_polls() -> None:
    async with connected([ROUND]) as (client, _):
        turn = await client.begin_turn()
        state = await _polled(client, turn, "awaiting_host")
        waiting = await client.ask("list_requests")
        assert await client.ask("submit_responses", **turn, responses=RAIN) == {}
        final = await _polled(client, turn, "completed")
        conversation = {"conversation_id": turn["conversation_id"]}
        exported = await client.ask("export_conversation", **conversation)
        listed = await client.ask("list_conversations")
        ended = [await client.ask(method, **conversation) for method in ("end_conversation", "delete_conversation")]
        capabilities = await client.ask("get_capabilities")

    assert [one["request"] for one in waiting["requests"]] == state["pending_requests"]
    assert state["pending_requests"][0]["arguments_json"] == '{"city":"Oslo"}'
    assert final["stop_reason"] == "end_turn"
    texts = [item["text"] for item in exported["turns"][0]["items"] if item["kind"] == "text_delta"]
    assert "".join(texts) == "abrain \N{LINE SEPARATOR}\N{REPLACEMENT CHARACTER}"
    assert [one["conversation_id"] for one in listed["conversations"]] == [turn["conversation_id"]]
    assert ended == [{}, {}]
    assert capabilities["inner"]["name"] == "fake"


async def _polled(client: Client, turn: dict[str, str], status: str) -> dict[str, Any]:
    since = 0
    while True:
        state = await client.ask("poll_turn", **turn, since_sequence_no=since, max_wait_ms=30_000)
        if state["status"] == status:
            return state
        since = state["sequence_no"]


@requirement("stdio:follow")
async def test_a_followed_turn_is_told_from_its_submission_to_its_end() -> None:
    async with connected([ROUND]) as (client, _):
        turn = await client.begin_turn(follow=True)
        told_before = len([message for message in client.heard if message.get("method") == "turn/items"])
        waiting = await client.until("turn/items", status="awaiting_host")
        await client.ask("submit_responses", **turn, responses=RAIN)
        await client.until("turn/items", status="completed")
        exported = await client.ask("export_conversation", conversation_id=turn["conversation_id"])

    told = [message["params"] for message in client.heard if message.get("method") == "turn/items"]
    items = [item for params in told for item in params["state"]["new_output_items"]]
    assert told_before == 0
    assert {(params["conversation_id"], params["turn_id"]) for params in told} == {tuple(turn.values())}
    assert [request["request_id"] for request in waiting["state"]["pending_requests"]] == ["oslo"]
    assert items == exported["turns"][0]["items"]
    assert [params["state"]["status"] for params in told].count("completed") == 1


@requirement("stdio:follow")
async def test_a_turn_is_followed_from_any_number_once_and_no_longer_than_wanted() -> None:
    first: list[dict[str, Any]] = []
    async with connected([HANG]) as (client, _):
        turn = await client.begin_turn()
        for _ in range(2):
            assert await client.ask("follow_turn", **turn) == {}
            first.append(await client.until("turn/items"))
        assert await client.ask("unfollow_turn", **turn) == {}
        await client.notify("cancel_turn", **turn)
        ended = await _polled(client, turn, "cancelled")
        before = len(client.heard)
        assert await client.ask("follow_turn", **turn, since_sequence_no=1) == {}
        rest = await client.until("turn/items", status="cancelled")
        with pytest.raises(Fault) as caught:
            await client.ask("follow_turn", **{**turn, "turn_id": "never"})

    assert [item["sequence_no"] for told in first for item in told["state"]["new_output_items"]] == [1, 1]
    assert [item["sequence_no"] for item in rest["state"]["new_output_items"]] == list(
        range(2, ended["sequence_no"] + 1)
    )
    assert not [
        message
        for message in client.heard[:before]
        if message.get("params", {}).get("state", {}).get("status") == "cancelled"
    ]
    assert caught.value.data["code"] == "unknown_turn"


@requirement("stdio:cancel")
async def test_a_parked_call_holds_nobody_up_and_can_be_given_up() -> None:
    async with connected([HANG]) as (client, _):
        turn = await client.begin_turn()
        await client.ask("poll_turn", **turn, max_wait_ms=30_000)
        parked = await client.send("poll_turn", **turn, since_sequence_no=1, max_wait_ms=60_000)
        other = await client.ask("list_conversations")
        with pytest.raises(Fault) as caught:
            await client.write(b'{"jsonrpc":"2.0","id":%d,"method":"list_requests"}' % parked)
            await client.answer_to(parked)
        await client.notify("$/cancelRequest", id=parked + 100)
        await client.notify("$/cancelRequest", id=parked)
        state = await client.answer_to(parked)
        await client.notify("$/cancelRequest", id=parked)
        again = await client.ask("poll_turn", **turn, max_wait_ms=0)

    assert len(other["conversations"]) == 1
    assert caught.value.number == -32600
    assert (state["status"], state["new_output_items"]) == ("running", [])
    assert again["status"] == "running"


@requirement("stdio:errors")
async def test_errors_have_json_rpcs_number_and_our_code_in_their_data() -> None:
    async with connected([HANG]) as (client, _):
        turn = await client.begin_turn()
        faults: dict[str, Fault] = {}
        for name, (method, params) in {
            "method": ("no_such", {}),
            "missing": ("poll_turn", {}),
            "field": ("begin_conversation", {"options": {"effort": "much"}}),
            "unknown": ("cancel_turn", {**turn, "conversation_id": "c_0"}),
            "busy": ("submit_user_message", {**turn, "content": [{"type": "text", "text": "more"}]}),
            "request": ("submit_responses", {**turn, "responses": [{"request_id": "never"}]}),
        }.items():
            with pytest.raises(Fault) as caught:
                await client.ask(method, **params)
            faults[name] = caught.value
        await client.write(b'{"id":"a","method":"poll_turn","params":[1]}')
        with pytest.raises(Fault) as caught:
            await client.answer_to("a")

    assert {name: (fault.number, fault.data.get("code")) for name, fault in faults.items()} == {
        "method": (-32601, None),
        "missing": (-32602, "invalid_argument"),
        "field": (-32602, "invalid_argument"),
        "unknown": (-32000, "unknown_conversation"),
        "busy": (-32000, "turn_in_progress"),
        "request": (-32000, "unknown_request"),
    }
    assert "'options.effort' of the params" in str(faults["field"])
    assert json.loads(faults["request"].data["detail_json"])["rejected"][0]["request_id"] == "never"
    assert caught.value.number == -32602


@requirement("stdio:lines")
async def test_a_line_that_is_no_message_is_answered_and_skipped() -> None:
    async with connected([HANG], max_line_bytes=1000) as (client, _):
        lines = [
            b"{nope",
            b"[]",
            b"7",
            b'{"id":77}',
            b'{"id":{},"method":"x"}',
            b"\xff\xfe",
            b"x" * 500_000,
            b"",
            b" \r",
        ]
        for line in lines:
            await client.write(line)
        await client.write(b'{"jsonrpc":"2.0","id":99,"result":{}}')
        await client.write(b'{"jsonrpc":"2.0","method":"unheard/of"}')
        await client.ask("list_conversations")

    errors = [message["error"] for message in client.heard if "error" in message]
    assert [error["code"] for error in errors] == [-32700, -32600, -32600, -32600, -32600, -32700, -32600]
    assert "longer than 1000 bytes" in errors[-1]["message"]


GARBAGE = st.binary(max_size=40).map(lambda data: data.replace(b"\n", b""))


@settings(max_examples=25, deadline=None)
@given(st.lists(GARBAGE | st.none(), min_size=1, max_size=12), st.integers(1, 200))
@requirement("stdio:lines")
def test_whatever_stands_between_good_lines_and_however_they_are_cut_none_is_lost(
    lines: list[bytes | None], size: int
) -> None:
    good = [number for number, line in enumerate(lines) if line is None]
    data = b"".join(
        (b'{"jsonrpc":"2.0","id":%d,"method":"list_connectors"}' % number if line is None else line) + b"\n"
        for number, line in enumerate(lines)
    )

    async def run() -> list[dict[str, Any]]:
        async with connected([HANG]) as (client, _):
            for start in range(0, len(data), size):
                await write_all(client.writing, data[start : start + size])
            client.close()
            await client.rest_of_it()
        return client.heard

    heard = anyio.run(run)
    answered = [message["id"] for message in heard if message.get("result") is not None]
    assert sorted(answered) == good


@given(st.lists(st.binary(max_size=30), max_size=8), st.integers(1, 40), st.integers(1, 20))
@requirement("stdio:lines")
def test_lines_are_the_same_however_they_are_cut(parts: list[bytes], size: int, most: int) -> None:
    data = b"\n".join(parts)
    cutter = LineCutter(most)
    lines = [line for start in range(0, len(data), size) for line in cutter.feed(data[start : start + size])]
    assert [*lines, cutter.last()] == [line if len(line) <= most else None for line in data.split(b"\n")]


@requirement("stdio:end")
async def test_the_end_of_the_input_answers_what_waits() -> None:
    async with connected([HANG]) as (client, _):
        turn = await client.begin_turn(follow=True)
        await client.until("turn/items")
        parked = await client.send("poll_turn", **turn, since_sequence_no=1, max_wait_ms=60_000)
        client.close()
        rest = await client.rest_of_it()

    assert [(message["id"], message["result"]["status"]) for message in rest] == [(parked, "running")]


@requirement("stdio:end")
async def test_the_answer_to_shutdown_is_the_last_line() -> None:
    async with connected([HANG]) as (client, _):
        turn = await client.begin_turn()
        await client.ask("poll_turn", **turn, max_wait_ms=30_000)
        parked = await client.send("poll_turn", **turn, since_sequence_no=1, max_wait_ms=60_000)
        last = await client.send("shutdown")
        await client.send("list_conversations")
        rest = await client.rest_of_it()

    assert [message["id"] for message in rest] == [parked, last]
    assert rest[-1]["result"] == {}


@requirement("stdio:end")
async def test_a_stop_answers_what_waits_while_the_input_stays_open() -> None:
    async with connected([HANG]) as (client, stopping):
        turn = await client.begin_turn()
        await client.ask("poll_turn", **turn, max_wait_ms=30_000)
        parked = await client.send("poll_turn", **turn, since_sequence_no=1, max_wait_ms=60_000)
        await client.ask("list_connectors")
        stopping.set()
        rest = await client.rest_of_it()

    assert [message["id"] for message in rest] == [parked]
