"""Requests in both directions: ids, what waits, and messages of any shape."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors._jsonrpc import Answered, Asked, JsonRpc, Notified, RpcError, Stray
from contract_tests.requirements import requirement


def said(rpc: JsonRpc) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rpc.data_to_send().splitlines()]


def receive(rpc: JsonRpc, message: Any) -> Any:
    return rpc.receive(json.dumps(message).encode())


@requirement("jsonrpc:both-ways")
def test_both_sides_ask_with_ids_of_their_own() -> None:
    rpc = JsonRpc()
    rpc.ask("initialize", {"a": 1})
    rpc.ask("session/prompt", {}, purpose="turn")
    assert said(rpc) == [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"a": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {}},
    ]
    asked = receive(rpc, {"jsonrpc": "2.0", "id": 1, "method": "may", "params": {"x": True}})
    assert asked == Asked("1", "may", {"x": True})
    assert receive(rpc, {"id": 2, "result": {"ok": 1}}) == Answered("turn", {"ok": 1})
    assert rpc.is_waiting_for("initialize")
    assert rpc.answer(asked.key, {"yes": 1})
    assert said(rpc) == [{"jsonrpc": "2.0", "id": 1, "result": {"yes": 1}}]


@requirement("jsonrpc:once")
def test_a_request_of_the_peer_is_answered_once_and_never_after_it_was_taken_back() -> None:
    rpc = JsonRpc(version=None)
    first, second, third = (receive(rpc, {"id": rpc_id, "method": "may"}) for rpc_id in (0, "0", 1))
    assert rpc.open_requests == (first.key, second.key, third.key)
    assert rpc.answer(first.key, {}) and not rpc.answer(first.key, {"again": 1})
    assert rpc.refuse(second.key, -32601, "no")
    assert rpc.forget(third.key) and not rpc.answer(third.key, {})
    assert said(rpc) == [{"id": 0, "result": {}}, {"id": "0", "error": {"code": -32601, "message": "no"}}]


@requirement("jsonrpc:generous")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"method": "n", "params": [1]}, Notified("n", {})),
        ({"method": "n", "id": None}, Notified("n", {})),
        ({"method": "n", "id": True}, Notified("n", {})),
        ({"id": 9, "result": {}}, Stray('{"id": 9, "result": {}}')),
        ({"id": 1, "error": "broken"}, Answered("x", {}, RpcError(0, "broken"))),
        ({"id": 1, "error": {"code": -1, "message": "m", "data": 2}}, Answered("x", {}, RpcError(-1, "m", 2))),
        ({"id": 1, "error": {}}, Answered("x", {}, RpcError(0, "an error without a message"))),
        ({"id": 1, "result": None}, Answered("x", {})),
        ([1], Stray("[1]")),
    ],
)
def test_messages_of_any_shape_are_read_without_falling_over(message: Any, expected: Any) -> None:
    rpc = JsonRpc()
    rpc.ask("x", {})
    assert receive(rpc, message) == expected


@requirement("jsonrpc:generous")
@given(st.binary())
def test_no_line_breaks_the_reader(data: bytes) -> None:
    JsonRpc().receive(data)
