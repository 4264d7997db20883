"""Whatever a peer sends, drops and repeats, and however the host answers: each request gets one answer, or is gone."""

from typing import Any

import anyio
from hypothesis import given
from hypothesis import strategies as st

from bridge_mcp.endpoint import Endpoint, Exchange
from contract_tests.bridge_mcp.desk import Desk, call, request, server, text
from contract_tests.requirements import requirement

KEYS = st.sampled_from(["t1", "t2", "t3", None])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), KEYS),
        st.tuples(st.just("answer"), KEYS),
        st.tuples(st.just("leave"), st.integers(0, 9)),
        st.tuples(st.just("cancel"), st.integers(0, 9)),
        st.tuples(st.just("ask"), st.sampled_from(["ping", "tools/list", "initialize", "nothing"])),
        st.tuples(st.just("next message"), st.none()),
    ),
    max_size=25,
)


@requirement("bridge:http:once")
@given(STEPS)
def test_every_request_gets_one_answer_or_its_place_is_gone(steps: list[tuple[str, Any]]) -> None:
    anyio.run(_walk, steps)


async def _walk(steps: list[tuple[str, Any]]) -> None:
    desk, mcp = Desk(), server()
    waiting: list[Exchange] = []
    gone: list[Exchange] = []
    answers: list[dict[str, Any]] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group:
            endpoint = Endpoint(mcp, desk.on_call, group)
            for number, (what, which) in enumerate(steps):
                match what:
                    case "call":
                        waiting.append(endpoint.received(call(number, which)))
                    case "ask":
                        waiting.append(endpoint.received(request(number, which)))
                    case "answer":
                        desk.answer(which or "call-1", text(f"answer to {which}"))
                    case "leave" if which < len(waiting):
                        gone.append(waiting.pop(which))
                        endpoint.left(gone[-1])
                    case "cancel" if which < len(waiting):
                        params = {"requestId": waiting[which].rpc_id}
                        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
                        assert not endpoint.received(note).is_request
                    case _:
                        mcp.message_started()
                await anyio.lowlevel.checkpoint()
            endpoint.settle("over")
            answers += [await exchange.next() for exchange in waiting]
            for exchange in waiting:
                endpoint.left(exchange)
    # leaving the group proves that no call of the host still runs
    assert [answer["id"] for answer in answers] == [exchange.rpc_id for exchange in waiting]
    assert mcp.open_calls == ()
    for exchange in (*waiting, *gone):
        with anyio.move_on_after(0):
            more = await exchange.next()
            assert exchange in gone, f"a second answer: {more}"
