"""A conversation over a scripted peer: one turn at a time, sessions that come and go, ids and owners."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest

from contract_tests.core.conversations import (
    STORES,
    FunctionConnector,
    call,
    call_and_wait,
    end_at_once,
    kinds,
    nothing,
    open_house,
    outcomes,
)
from contract_tests.llm_suite import TOOLS, Peer, begin, is_over, is_waiting, results, say, texts, to_end, until
from contract_tests.requirements import requirement
from harness.connector import SessionGone, TurnSink
from harness.contract import (
    ConversationOptions,
    HistoryMessage,
    HistoryRole,
    HostResponse,
    RequestOpened,
    ToolCall,
    ToolResult,
    as_content,
)
from harness.errors import (
    AlreadyAnswered,
    ConnectorUnavailable,
    InvalidArgument,
    NotSupported,
    PeerLost,
    TurnInProgress,
    UnknownConversation,
)
from harness.local import LocalHarness
from harness.settings import Rights, Settings
from harness.store import MemoryStore
from harness.turn import TurnEnded

APPROVAL = {"approval": {"tool": "Bash", "call_id": "b"}}
CALL = {"calls": [{"name": "clock", "id": "c"}]}


@pytest.fixture(params=list(STORES))
def store(request: pytest.FixtureRequest) -> MemoryStore | None:
    return STORES[request.param]()


# one turn at a time


@requirement("R-D4", "R-M6")
async def test_a_message_during_a_pending_approval_is_refused_and_disturbs_nothing(store: MemoryStore | None) -> None:
    async with open_house([[APPROVAL, {"text": "went on"}]], store=store) as llm:
        ids = await begin(llm, "first")
        before, _ = await until(llm, ids, is_waiting)
        with pytest.raises(TurnInProgress, match=f"turn '{ids[1]}' of this conversation still runs"):
            await say(llm, ids[0], "second")
        after = await llm.poll_turn(*ids, 0)
        assert after.pending_requests == before.pending_requests
        assert after.sequence_no == before.sequence_no
        approval = before.pending_requests[0].request_id
        await llm.submit_responses(*ids, [HostResponse(request_id=approval, selected_option="allow_once")])
        assert texts(await to_end(llm, ids)) == "went on"


async def test_messages_of_one_conversation_are_turns_with_numbers_of_their_own(store: MemoryStore | None) -> None:
    async with open_house([[{"text": "one"}], [{"text": "two"}]], store=store) as llm:
        ids = await begin(llm)
        first = await to_end(llm, ids)
        second = await to_end(llm, (ids[0], await say(llm, ids[0])))
        assert (texts(first), texts(second)) == ("one", "two")
        assert [item.sequence_no for item in second] == [1, 2]
        assert await to_end(llm, ids) == first


async def test_usage_of_a_conversation_is_that_of_all_its_turns() -> None:
    async with open_house([[{"usage": {"output_tokens": 3}}], [{"usage": {"output_tokens": 4}}]]) as llm:
        ids = await begin(llm)
        await to_end(llm, ids)
        state, _ = await until(llm, (ids[0], await say(llm, ids[0])), is_over)
    assert state.usage is not None
    assert state.conversation_usage is not None
    assert (state.usage.output_tokens, state.conversation_usage.output_tokens) == (4, 7)


# ids and answers


@requirement("R-G4", "conversation:ids:repeated")
async def test_a_call_id_that_a_peer_repeats_gets_a_suffix_and_its_answer_goes_to_the_right_call(
    store: MemoryStore | None,
) -> None:
    same = {"name": "clock", "id": "c"}
    peer = Peer()
    script = [[{"calls": [same, same]}, {"calls": [same]}], [{"calls": [same]}]]
    async with open_house(script, peer, store=store) as llm:
        ids = await begin(llm)
        state, _ = await until(llm, ids, lambda state: len(state.pending_requests) == 2)
        first, second = state.pending_requests
        await llm.submit_responses(*ids, results([second.request_id], "of the second"))
        await llm.submit_responses(*ids, results([first.request_id], "of the first"))
        items = await to_end(llm, ids)
        items += await to_end(llm, (ids[0], await say(llm, ids[0])))
    opened = [item.request for item in items if isinstance(item, RequestOpened)]
    assert [one.request_id for one in opened] == ["c", "c~2", "c~3", "c~4"]
    assert {one.call_id for one in opened} == {"c"}
    assert [(one.request_id, one.content) for one in peer.answers[:2]] == [
        ("c~2", as_content("of the second")),
        ("c", as_content("of the first")),
    ]


@requirement("conversation:ids:repeated")
async def test_a_call_id_that_the_history_has_already_is_a_repeated_one(store: MemoryStore | None) -> None:
    past = ToolCall(call_id="c", tool_name="clock")
    history = [
        HistoryMessage(role=HistoryRole.USER, content=as_content("When?")),
        HistoryMessage(role=HistoryRole.ASSISTANT, tool_calls=[past]),
        HistoryMessage(role=HistoryRole.USER, tool_results=[ToolResult(call_id="c", content=as_content("noon"))]),
    ]
    async with open_house([[{"calls": [{"name": "clock", "id": "c"}]}]], store=store) as llm:
        ids = await begin(llm, history=history)
        state, _ = await until(llm, ids, is_waiting)
        await llm.cancel_turn(*ids)
    assert [(one.request_id, one.call_id) for one in state.pending_requests] == [("c~2", "c")]


@requirement("conversation:answers:rejected-list")
async def test_answers_are_judged_one_by_one_and_an_error_lists_those_that_were_rejected(
    store: MemoryStore | None,
) -> None:
    script = [
        [
            {"calls": [{"name": "clock", "id": "good"}, {"name": "clock", "id": "big"}], "wait": False},
            APPROVAL,
            {"wait": "all"},
        ]
    ]
    capped = {"turns": script, "capabilities": {"max_result_chars": 10}}
    peer = Peer()
    async with open_house(capped, peer, store=store) as llm:
        ids = await begin(llm)
        await until(llm, ids, lambda state: len(state.pending_requests) == 3)
        with pytest.raises(InvalidArgument) as caught:
            await llm.submit_responses(
                *ids,
                [
                    HostResponse(request_id="a1", selected_option="maybe"),
                    *results(["big"], "x" * 11),
                    *results(["good"], "x" * 10),
                    *results(["ghost"]),
                ],
            )
        state = await llm.poll_turn(*ids)
        assert sorted(one.request_id for one in state.pending_requests) == ["a1", "big"]
        with pytest.raises(AlreadyAnswered) as second:
            await llm.submit_responses(*ids, [*results(["good"], "x" * 10), *results(["good"], "other")])
        await llm.submit_responses(*ids, [HostResponse(request_id="a1", selected_option="deny"), *results(["big"])])
        await until(llm, ids, is_over)
    listed: Any = caught.value.detail["rejected"]
    assert [(one["request_id"], one["code"]) for one in listed] == [
        ("a1", "invalid_argument"),
        ("big", "content_not_supported"),
        ("ghost", "unknown_request"),
    ]
    assert second.value.detail["rejected"] == [
        {"request_id": "good", "code": "already_answered", "message": second.value.message}
    ]
    assert sorted(one.request_id for one in peer.answers) == ["a1", "big", "good"]


@requirement("R-G2")
async def test_a_call_the_peer_delivers_twice_is_one_request_and_both_get_the_answer() -> None:
    heard: list[str] = []

    async def ask(sink: TurnSink, name: str) -> None:
        async with sink.ask(call("same")) as response:
            heard.append(f"{name}: {response.content[0].to_dict()['text']}")

    async def run(sink: TurnSink) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, sink, "first")
            tasks.start_soon(ask, sink, "second")
        sink.emit(TurnEnded())

    async with open_house(function=FunctionConnector(run)) as llm:
        items = await to_end(llm, await begin(llm, connector="function"), "noon")
    assert kinds(items) == ["request_opened", "request_resolved", "turn_ended"]
    assert sorted(heard) == ["first: noon", "second: noon"]


@requirement("R-G2")
async def test_of_two_that_wait_for_one_answer_the_first_may_leave() -> None:
    heard: list[object] = []
    first_may_leave, first_left = anyio.Event(), anyio.Event()

    async def first(sink: TurnSink) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, sink)
            await first_may_leave.wait()
            tasks.cancel_scope.cancel()
        first_left.set()

    async def ask(sink: TurnSink) -> None:
        async with sink.ask(call("same")) as response:
            heard.append(response.content)

    async def run(sink: TurnSink) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first, sink)
            tasks.start_soon(ask, sink)
        sink.emit(TurnEnded())

    async with open_house(function=FunctionConnector(run)) as llm:
        ids = await begin(llm, connector="function")
        await until(llm, ids, is_waiting)
        await anyio.wait_all_tasks_blocked()
        first_may_leave.set()
        await first_left.wait()
        items = await to_end(llm, ids, "noon")
    assert outcomes(items) == [("c", "answered", "host")]
    assert heard == [as_content("noon")]


@requirement("R-M2")
async def test_the_last_activity_is_when_the_peer_or_the_host_last_did_something() -> None:
    now = 1_000_000
    gate = anyio.Event()
    async with open_house([[{"text": "a"}, {"until": gate}, CALL]], clock=lambda: now) as llm:
        ids = await begin(llm)
        state, _ = await until(llm, ids, lambda state: state.sequence_no == 1)
        assert (state.started_at, state.last_activity_at) == (1_000_000, 1_000_000)
        now = 1_000_500
        assert (await llm.poll_turn(*ids)).last_activity_at == 1_000_000
        gate.set()
        state, _ = await until(llm, ids, is_waiting)
        assert state.last_activity_at == state.pending_requests[0].opened_at == 1_000_500
        now = 1_000_700
        await to_end(llm, ids)
        state = await llm.poll_turn(*ids)
    assert (state.last_activity_at, state.ended_at) == (1_000_700, 1_000_700)


# sessions come and go


@requirement("conversation:session:on-demand")
async def test_an_unused_conversation_costs_no_session_and_prestart_opens_one() -> None:
    peer = Peer()
    async with open_house([[{"text": "a"}]], peer) as llm:
        await llm.begin_conversation(ConversationOptions())
        await anyio.wait_all_tasks_blocked()
        assert peer.seen == []
        early = await llm.begin_conversation(ConversationOptions(prestart=True))
        await peer.has_seen("opened")
        await to_end(llm, (early, await say(llm, early)))
    assert [one.what for one in peer.seen] == ["opened", "message", "closed"]


@requirement("conversation:session:idle-close")
async def test_an_idle_conversation_is_closed_after_its_time_to_live_and_a_waiting_one_is_not() -> None:
    peer = Peer()
    settings = Settings(idle_ttl_seconds=0.05)
    async with open_house([[CALL]], peer, settings=settings) as llm:
        waiting = await begin(llm)
        idle = await begin(llm)
        await to_end(llm, idle)
        await peer.has_seen("closed")
        while True:
            try:
                await llm.poll_turn(*idle)
            except UnknownConversation:
                break
            await anyio.lowlevel.checkpoint()
        state = await llm.poll_turn(*waiting)
        assert state.status == "awaiting_host"
        assert [one.conversation_id for one in await llm.list_conversations()] == [waiting[0]]


@requirement("conversation:session:idle-close")
async def test_with_a_journal_a_closed_idle_conversation_goes_on_with_its_next_message() -> None:
    peer = Peer()
    async with open_house(
        [[{"text": "one"}], [{"text": "two"}]], peer, settings=Settings(idle_ttl_seconds=0.05), store=MemoryStore()
    ) as llm:
        ids = await begin(llm)
        await to_end(llm, ids)
        await peer.has_seen("closed")
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "two"


@requirement("conversation:session:dead-beside-living")
async def test_a_dead_session_leaves_a_second_conversation_untouched(store: MemoryStore | None) -> None:
    gate = anyio.Event()
    scripts = {
        "dies": json.dumps({"steps": [CALL, {"die": "now"}]}),
        "lives": json.dumps({"steps": [CALL, {"text": "alive"}]}),
    }
    async with open_house(store=store) as llm:
        dying = await begin(llm, connector_options_json=scripts["dies"])
        living = await begin(llm, connector_options_json=scripts["lives"])
        await until(llm, living, is_waiting)
        await until(llm, dying, is_waiting)
        await llm.submit_responses(*dying, results(["c"]))
        state, _ = await until(llm, dying, is_over)
        assert state.error is not None
        assert state.error.code == "peer_lost"
        gate.set()
        assert texts(await to_end(llm, living)) == "alive"


async def _raise_value_error(*_: Any) -> None:
    raise ValueError("a bug")


def _raise_value_error_now(*_: Any) -> None:
    raise ValueError("a bug")


@requirement("conversation:session:dead-beside-living")
@pytest.mark.parametrize(
    "broken",
    [
        FunctionConnector(_raise_value_error),
        FunctionConnector(start=_raise_value_error),
        FunctionConnector(call_and_wait, deliver=_raise_value_error_now),
        FunctionConnector(nothing),
    ],
    ids=["turn", "start", "deliver", "no end"],
)
async def test_a_bug_in_a_connector_fails_its_turn_and_nothing_else(
    broken: FunctionConnector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    async with open_house([[CALL, {"text": "alive"}]], function=broken) as llm:
        living = await begin(llm)
        ids = await begin(llm, connector="function")
        items = await to_end(llm, ids)
        last: Any = items[-1]
        assert (last.status, last.error.code in ("internal", "peer_protocol_error")) == ("failed", True)
        assert texts(await to_end(llm, living)) == "alive"


@requirement("conversation:session:dead-beside-living")
async def test_a_bug_in_an_interrupt_still_ends_the_turn_cancelled(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    connector = FunctionConnector(call_and_wait, interrupt=_raise_value_error)
    async with open_house(function=connector) as llm:
        ids = await begin(llm, connector="function")
        await until(llm, ids, is_waiting)
        await llm.cancel_turn(*ids)
        state, _ = await until(llm, ids, is_over)
        assert state.status == "cancelled"
        again = ids[0], await say(llm, ids[0])
        await until(llm, again, is_waiting)
    assert connector.opened == 2


async def test_a_peer_that_cannot_be_started_fails_the_turn_with_what_to_do() -> None:
    async def refuse() -> None:
        raise ConnectorUnavailable("'x' is not installed; type: pip install x", reason="not_installed")

    async with open_house(function=FunctionConnector(start=refuse)) as llm:
        ids = await begin(llm, connector="function")
        state, _ = await until(llm, ids, is_over)
    assert state.error is not None
    assert (state.error.code, state.error.message) == (
        "connector_unavailable",
        "'x' is not installed; type: pip install x",
    )


@requirement("conversation:session:gone")
async def test_a_turn_that_found_its_peer_dead_runs_in_a_new_session_which_then_stays() -> None:
    peer = Peer()
    async with open_house([[{"die": "later"}], [{"text": "two"}], [{"text": "three"}]], peer) as llm:
        ids = await begin(llm)
        await to_end(llm, ids)
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "two"
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "three"
    assert [one.what for one in peer.seen] == ["opened", "message", "closed", "opened", *["message"] * 2, "closed"]


@requirement("conversation:session:gone")
async def test_a_peer_that_is_dead_in_a_new_session_too_is_lost() -> None:
    async def find_it_dead(_: TurnSink) -> None:
        raise SessionGone

    connector = FunctionConnector(find_it_dead)
    async with open_house(function=connector) as llm:
        ids = await begin(llm, connector="function")
        state, _ = await until(llm, ids, is_over)
    assert state.error is not None
    assert state.error.code == PeerLost.code
    assert connector.opened == 2


async def test_leaving_the_house_ends_what_runs_within_a_bound() -> None:
    peer = Peer()
    script = {"ignore_interrupt": True, "turns": [[CALL]]}
    settings = Settings(interrupt_seconds=0.05, settle_seconds=0.05)
    async with open_house(script, peer, settings=settings) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
    assert [one.what for one in peer.seen] == ["opened", "message", "interrupt", "closed"]


# owners and what is refused


@requirement("conversation:owners")
async def test_a_foreign_conversation_is_unknown_to_every_operation(store: MemoryStore | None) -> None:
    async with open_house([[CALL]], store=store) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        guest = llm.for_owner("guest", Rights())
        operations = [
            guest.poll_turn(*ids),
            guest.submit_user_message(ids[0], as_content("hello")),
            guest.submit_responses(*ids, results(["c"])),
            guest.cancel_turn(*ids),
            guest.end_conversation(ids[0]),
            guest.delete_conversation(ids[0]),
            guest.get_conversation(ids[0]),
            guest.export_conversation(ids[0]),
            guest.fork_conversation(ids[0]),
            guest.delegate_tool_sources(ids[0], []),
        ]
        for operation in operations:
            with pytest.raises(UnknownConversation, match=f"no conversation '{ids[0]}'"):
                await operation
        assert await guest.list_conversations() == []
        assert await guest.list_requests() == []
        assert (await llm.poll_turn(*ids)).status == "awaiting_host"


@requirement("conversation:owners")
async def test_client_keys_are_per_owner(store: MemoryStore | None) -> None:
    async with open_house(store=store) as llm:
        mine = await llm.begin_conversation(ConversationOptions(client_key="k"))
        other = await llm.for_owner("guest", Rights()).begin_conversation(ConversationOptions(client_key="k"))
        assert mine != other
        assert await llm.begin_conversation(ConversationOptions(client_key="k")) == mine


async def begin_at_once(llm: LocalHarness, count: int) -> set[str]:
    found: set[str] = set()

    async def one() -> None:
        found.add(await llm.begin_conversation(ConversationOptions(client_key="k")))

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(one)
    return found


async def test_one_client_key_at_the_same_time_is_one_conversation(store: MemoryStore | None) -> None:
    async with open_house(store=store) as llm:
        assert len(await begin_at_once(llm, 5)) == 1


async def test_a_client_key_of_a_deleted_conversation_begins_a_new_one(store: MemoryStore | None) -> None:
    async with open_house(store=store) as llm:
        first = await llm.begin_conversation(ConversationOptions(client_key="k"))
        await llm.delete_conversation(first)
        assert await llm.begin_conversation(ConversationOptions(client_key="k")) != first


@pytest.mark.parametrize(
    ("options", "capabilities", "error", "message"),
    [
        ({"internal_tools": ["Bash"]}, {}, InvalidArgument, "has no internal tool 'Bash'"),
        ({"tools": [TOOLS[0], TOOLS[0]]}, {}, InvalidArgument, "tool 'weather' is declared twice"),
        ({"tools": TOOLS}, {"supports_tools": False}, NotSupported, "cannot call tools"),
        ({"history": [{"role": "user"}]}, {"seed_history": "none"}, NotSupported, "cannot start from a history"),
        ({"output_schema_json": "{}"}, {"structured_output": "none"}, NotSupported, "no structured output"),
        ({"output_schema_json": "[]"}, {}, InvalidArgument, "must be a JSON object"),
        ({"limits": {"cost_budget_usd": 1}}, {}, NotSupported, "could not be kept"),
    ],
)
async def test_what_a_connector_cannot_honour_is_refused_at_begin(
    options: dict[str, Any], capabilities: dict[str, Any], error: type[Exception], message: str
) -> None:
    async with open_house({"turns": [[{"text": "a"}]], "capabilities": capabilities}) as llm:
        with pytest.raises(error, match=message):
            await llm.begin_conversation(ConversationOptions.model_validate(options))
        assert await llm.list_conversations() == []


async def test_a_session_that_ends_at_once_is_a_turn_without_words() -> None:
    async with open_house(function=FunctionConnector(end_at_once)) as llm:
        assert kinds(await to_end(llm, await begin(llm, connector="function"))) == ["turn_ended"]
