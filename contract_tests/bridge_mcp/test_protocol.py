"""The MCP server core: what each message brings, and that every request gets its answer once."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge_mcp.protocol import CallRaised, CallWithdrawn, McpServer, Reply, ToolsListed
from contract_tests.requirements import requirement

ECHO: dict[str, Any] = {"name": "echo", "inputSchema": {"type": "object"}}


def server() -> McpServer:
    return McpServer([ECHO], call_id_of=lambda params: params["_meta"].get("id"))


def request(rpc_id: Any, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}


def call(rpc_id: Any, call_id: str | None, arguments: Any = None, token: Any = None) -> dict[str, Any]:
    meta = {name: value for name, value in (("id", call_id), ("progressToken", token)) if value is not None}
    return request(rpc_id, "tools/call", name="echo", arguments=arguments or {}, _meta=meta)


def text(value: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": value}]}


@requirement("bridge:mcp:handshake")
def test_the_handshake_tells_version_and_tools() -> None:
    mcp = server()

    [reply] = mcp.receive(request(0, "initialize", protocolVersion="2025-11-25", capabilities={}), "here")
    assert isinstance(reply, Reply)
    assert reply.reply_to == "here"
    assert reply.message["result"]["protocolVersion"] == "2025-11-25"
    assert reply.message["result"]["capabilities"] == {"tools": {}}

    assert mcp.receive({"jsonrpc": "2.0", "method": "notifications/initialized"}) == []

    listed, told = mcp.receive(request("x", "tools/list"))
    assert listed == Reply({"jsonrpc": "2.0", "id": "x", "result": {"tools": [ECHO]}})
    assert told == ToolsListed()


@requirement("bridge:mcp:handshake")
@pytest.mark.parametrize(("asked", "told"), [("2025-03-26", "2025-03-26"), ("2026-07-28", "2025-11-25")])
def test_an_older_version_is_spoken_and_a_newer_one_is_not(asked: str, told: str) -> None:
    [reply] = server().receive(request(0, "initialize", protocolVersion=asked))
    assert isinstance(reply, Reply)
    assert reply.message["result"]["protocolVersion"] == told


@requirement("bridge:mcp:errors")
@pytest.mark.parametrize("method", ["server/discover", "resources/list", "anything"])
def test_an_unknown_method_is_answered_so(method: str) -> None:
    [reply] = server().receive(request(7, method))
    assert isinstance(reply, Reply)
    assert (reply.message["id"], reply.message["error"]["code"]) == (7, -32601)


@requirement("bridge:mcp:errors")
@pytest.mark.parametrize(
    ("message", "rpc_id"),
    [
        ("text", None),
        ([request(1, "ping")], None),
        ({"id": 1, "method": "ping"}, 1),
        ({"jsonrpc": "2.0", "id": "a", "method": 5}, "a"),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, None),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, None),
        ({}, None),
    ],
)
def test_a_malformed_message_is_answered_as_an_invalid_request(message: Any, rpc_id: Any) -> None:
    [reply] = server().receive(message, "here")
    assert isinstance(reply, Reply)
    assert (reply.message["id"], reply.message["error"]["code"]) == (rpc_id, -32600)
    assert reply.reply_to == "here"


@requirement("bridge:mcp:errors")
@pytest.mark.parametrize(
    "params", [{"name": "nope"}, {"name": "echo", "arguments": [1]}, {"name": ["echo"]}, {"arguments": {}}]
)
def test_a_call_that_cannot_be_made_is_an_error_and_no_call(params: dict[str, Any]) -> None:
    mcp = server()
    [reply] = mcp.receive(request(3, "tools/call", **params))
    assert isinstance(reply, Reply)
    assert reply.message["error"]["code"] == -32602
    assert mcp.open_calls == ()


@requirement("bridge:mcp:parallel-calls")
def test_calls_are_open_together_and_answered_in_any_order() -> None:
    mcp = server()
    raised = [
        mcp.receive(call(number, f"toolu_{number}", {"n": number}), f"envelope {number}")[0] for number in range(3)
    ]

    assert [event.arguments for event in raised if isinstance(event, CallRaised)] == [{"n": 0}, {"n": 1}, {"n": 2}]
    for number in (2, 0, 1):
        [reply] = mcp.answer(f"toolu_{number}", text(str(number)))
        assert reply == Reply(
            {"jsonrpc": "2.0", "id": number, "result": text(str(number))}, reply_to=f"envelope {number}"
        )
    assert mcp.answer("toolu_1", text("again")) == []


@requirement("bridge:mcp:delivered-twice")
def test_a_call_delivered_twice_is_one_request_with_one_answer_for_both() -> None:
    mcp = server()
    mcp.receive(call(2, "toolu_1"), "first")

    mcp.receive(request(0, "initialize"))  # the peer connected again and repeats itself
    assert mcp.receive(call(2, "toolu_1"), "second") == []

    replies = mcp.answer("toolu_1", text("once"))
    assert [reply.reply_to for reply in replies] == ["first", "second"]
    assert all(reply.message["result"] is replies[0].message["result"] for reply in replies)

    [late] = mcp.receive(call(3, "toolu_1"), "third")
    assert late == Reply({"jsonrpc": "2.0", "id": 3, "result": text("once")}, "third")


@requirement("bridge:mcp:delivered-twice")
def test_the_same_id_after_the_model_spoke_again_is_a_new_call() -> None:
    mcp = server()
    mcp.receive(call(2, "toolu_1"))
    mcp.answer("toolu_1", text("first"))
    mcp.message_started()

    [event] = mcp.receive(call(3, "toolu_1"))
    assert isinstance(event, CallRaised)


@requirement("bridge:mcp:delivered-twice")
def test_calls_without_a_tool_use_id_are_never_taken_for_one_another() -> None:
    mcp = server()
    first, second = (mcp.receive(call(number, None))[0] for number in (1, 2))
    assert isinstance(first, CallRaised) and isinstance(second, CallRaised)
    assert first.key != second.key
    assert not first.tells_id


@requirement("bridge:mcp:withdrawn")
def test_a_cancelled_call_is_withdrawn_and_gets_no_answer() -> None:
    mcp = server()
    mcp.receive(call(2, "toolu_1"))
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2, "reason": "x"}}

    assert mcp.receive(cancelled) == [CallWithdrawn("toolu_1")]
    assert mcp.answer("toolu_1", text("late")) == []
    assert mcp.receive(cancelled) == []


@requirement("bridge:mcp:withdrawn")
def test_a_cancel_of_a_new_connection_leaves_calls_of_the_old_one_alone() -> None:
    mcp = server()
    mcp.receive(call(2, "toolu_1"))
    mcp.receive(request(0, "initialize"))
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}}
    assert mcp.receive(cancelled) == []


@requirement("bridge:mcp:withdrawn")
def test_a_call_is_withdrawn_only_when_the_last_who_waits_is_gone() -> None:
    mcp = server()
    mcp.receive(call(2, "toolu_1"), "first")
    mcp.receive(call(3, "toolu_1"), "second")

    assert mcp.disconnected("first") == []
    assert [reply.reply_to for reply in mcp.answer("toolu_1", text("x"))] == ["second"]

    mcp.receive(call(4, "toolu_2"), "third")
    assert mcp.disconnected("third") == [CallWithdrawn("toolu_2")]


@requirement("bridge:mcp:progress")
def test_progress_grows_and_goes_only_to_those_who_asked_for_it() -> None:
    mcp = server()
    mcp.receive(call(2, "toolu_1", token=9), "asked")
    mcp.receive(call(3, "toolu_1"), "did not ask")

    first, second = (mcp.progress("toolu_1", "still waiting")[0] for _ in range(2))
    assert first.reply_to == "asked"
    assert first.message["params"] == {"progressToken": 9, "progress": 1, "message": "still waiting"}
    assert second.message["params"]["progress"] == 2
    assert mcp.progress("unknown") == []


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.integers(0, 3)),
        st.tuples(st.just("answer"), st.integers(0, 3)),
        st.tuples(st.just("cancel"), st.integers(0, 12)),
        st.tuples(st.just("disconnect"), st.integers(0, 12)),
        st.tuples(st.just("message"), st.just(0)),
        st.tuples(st.just("connect"), st.just(0)),
    ),
    max_size=40,
)


@requirement("bridge:mcp:parallel-calls", "bridge:mcp:delivered-twice", "bridge:mcp:withdrawn")
@given(_STEPS)
def test_in_any_interleaving_each_request_is_answered_once_or_was_withdrawn(steps: list[tuple[str, int]]) -> None:
    """`reply_to` numbers the requests, so replies can be counted; a call is raised only while its key is not open."""
    mcp = server()
    asked: dict[int, str] = {}
    replies: dict[int, list[Any]] = {}
    gone: set[int] = set()
    open_keys: set[str] = set()
    connected_at = 0

    def take(events: list[Any]) -> None:
        for event in events:
            if isinstance(event, Reply) and isinstance(event.reply_to, int):
                replies.setdefault(event.reply_to, []).append(event.message)
            if isinstance(event, CallRaised):
                assert event.key not in open_keys
                open_keys.add(event.key)
            if isinstance(event, CallWithdrawn):
                open_keys.remove(event.key)

    for number, (step, value) in enumerate(steps):
        key = f"toolu_{value}"
        match step:
            case "call":
                rpc_id = len(asked) - connected_at
                asked[number] = key
                take(mcp.receive(call(rpc_id, key), number))
            case "answer":
                was_open = key in open_keys
                answered = mcp.answer(key, text(f"answer {number}"))
                assert bool(answered) == was_open
                open_keys.discard(key)
                take(list(answered))
            case "cancel":
                waiting = [n for n in list(asked)[connected_at:] if n not in replies and n not in gone]
                cancelled = [n for n in waiting if list(asked).index(n) - connected_at == value]
                gone.update(cancelled)
                take(
                    mcp.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": value}})
                )
            case "disconnect":
                gone.update(n for n in asked if n == value and n not in replies)
                take(list(mcp.disconnected(value)))
            case "message":
                mcp.message_started()
            case _:
                connected_at = len(asked)
                take(mcp.receive(request("hello", "initialize")))

    take(list(mcp.answer_all(text("the end"))))
    assert mcp.open_calls == ()
    assert all(len(got) == 1 for got in replies.values())
    assert set(replies) | gone == set(asked)
    assert not set(replies) & gone
