"""Cancel and deadlines, seen from both sides: what the host is shown and what reaches the peer, in which order."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from contract_tests.core.conversations import (
    STORES,
    FunctionConnector,
    call_and_wait,
    end_at_once,
    kinds,
    open_house,
    outcomes,
)
from contract_tests.llm_suite import Peer, begin, is_over, is_waiting, results, say, texts, to_end, until
from contract_tests.requirements import requirement
from harness.contract import HostResponse, RequestOpened, Timeouts
from harness.settings import Settings
from harness.store import MemoryStore

STYLES = ("emit", "ask")
CALLS = {"calls": [{"name": "clock", "id": "a"}, {"name": "clock", "id": "b"}]}
APPROVAL = {"approval": {"tool": "Bash", "call_id": "x"}}
QUESTION = {"question": {"questions": [{"id": "q", "text": "?"}]}}


@pytest.fixture(params=list(STORES))
def store(request: pytest.FixtureRequest) -> MemoryStore | None:
    return STORES[request.param]()


def scripted(style: str, *turns: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"style": style, "turns": list(turns), **more}


def reached(peer: Peer) -> list[str]:
    return [one.what for one in peer.seen if one.what in ("answer", "interrupt")]


# cancel


@requirement("R-H1", "R-H3", "conversation:cancel:order")
@pytest.mark.parametrize("style", STYLES)
async def test_cancel_closes_what_is_open_interrupts_once_and_the_peer_closes_the_rest(
    style: str, store: MemoryStore | None
) -> None:
    peer = Peer()
    script = scripted(style, [{"text": "I look."}, CALLS], [{"text": "next"}])
    async with open_house(script, peer, store=store) as llm:
        ids = await begin(llm)
        state, _ = await until(llm, ids, lambda state: len(state.pending_requests) == 2)
        await llm.cancel_turn(*ids)
        await llm.cancel_turn(*ids)
        await llm.submit_responses(*ids, results(["a"], "crossed the cancel"))
        final, items = await until(llm, ids, is_over, state.sequence_no)
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "next"
    assert kinds(items) == ["notice", "request_resolved", "request_resolved", "turn_ended"]
    assert outcomes(items) == [("a", "cancelled", None), ("b", "cancelled", None)]
    assert (final.status, final.stop_reason, final.error) == ("cancelled", "cancelled", None)
    # nothing was delivered before the interrupt; then the peer closed its calls with the synthetic error
    assert reached(peer) == ["interrupt", "answer", "answer"]
    assert [one.is_error for one in peer.answers] == [True, True]
    assert [one.what for one in peer.seen].count("opened") == 1


@requirement("conversation:cancel:order")
@pytest.mark.parametrize("style", STYLES)
async def test_an_answer_given_before_the_cancel_is_delivered_and_the_other_request_is_not(style: str) -> None:
    peer = Peer()
    async with open_house(scripted(style, [CALLS]), peer) as llm:
        ids = await begin(llm)
        await until(llm, ids, lambda state: len(state.pending_requests) == 2)
        await llm.submit_responses(*ids, results(["b"], "in time"))
        await llm.cancel_turn(*ids)
        _, items = await until(llm, ids, is_over)
    assert outcomes(items) == [("b", "answered", "host"), ("a", "cancelled", None)]
    assert [one.is_error for one in peer.answers] == [False, True]


@requirement("R-H3", "conversation:cancel:order")
@pytest.mark.parametrize(
    "on_interrupt",
    [
        [{"end": "end_turn"}],
        [{"end": "refusal"}],
        [{"error": {"code": "provider_error"}}],
        [{"text": "some last words"}, {"calls": [{"name": "clock", "id": "late"}]}, {"end": "end_turn"}],
        [{"die": "now"}],
        [],
    ],
)
@pytest.mark.parametrize("style", STYLES)
async def test_whatever_the_peer_calls_its_end_the_turn_is_cancelled(
    style: str, on_interrupt: list[dict[str, Any]], store: MemoryStore | None
) -> None:
    script = scripted(style, [CALLS], [{"text": "next"}], on_interrupt=on_interrupt)
    async with open_house(script, store=store) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        await llm.cancel_turn(*ids)
        final, items = await until(llm, ids, is_over)
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "next"
    assert (final.status, final.error) == ("cancelled", None)
    assert [item.request.request_id for item in items if isinstance(item, RequestOpened)] == ["a", "b"]


@requirement("conversation:cancel:before-start")
async def test_a_cancel_before_the_peer_was_started_ends_the_turn_at_once(store: MemoryStore | None) -> None:
    starts = 0

    async def start() -> None:
        nonlocal starts
        starts += 1
        if starts == 1:
            await anyio.sleep_forever()

    async with open_house(function=FunctionConnector(end_at_once, start=start), store=store) as llm:
        ids = await begin(llm, connector="function")
        await llm.cancel_turn(*ids)
        state = await llm.poll_turn(*ids)
        assert (state.status, kinds(state.new_output_items)) == ("cancelled", ["notice", "turn_ended"])
        state, _ = await until(llm, (ids[0], await say(llm, ids[0])), is_over)
        assert state.status == "completed"


@requirement("conversation:cancel:before-start")
async def test_a_cancel_while_the_peer_starts_gives_up_the_start() -> None:
    starting = anyio.Event()

    async def start() -> None:
        starting.set()
        await anyio.sleep_forever()

    async with open_house(function=FunctionConnector(start=start)) as llm:
        ids = await begin(llm, connector="function")
        await starting.wait()
        await llm.cancel_turn(*ids)
        assert (await llm.poll_turn(*ids)).status == "cancelled"
        await llm.end_conversation(ids[0])


@requirement("R-H2", "conversation:cancel:deadline")
@pytest.mark.parametrize("style", STYLES)
async def test_a_peer_that_ignores_the_interrupt_is_left_after_a_bound(style: str, store: MemoryStore | None) -> None:
    peer = Peer()
    script = scripted(style, [CALLS], [{"text": "next"}], ignore_interrupt=True)
    settings = Settings(interrupt_seconds=0.05, settle_seconds=0.05)
    async with open_house(script, peer, settings=settings, store=store) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        await llm.cancel_turn(*ids)
        state, _ = await until(llm, ids, is_over)
        assert state.status == "cancelled"
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "next"
    assert [one.what for one in peer.seen].count("opened") == 2


@requirement("R-H2", "conversation:cancel:deadline")
async def test_a_session_that_never_returns_from_its_turn_is_left_after_a_bound() -> None:
    connector = FunctionConnector(call_and_wait)
    async with open_house(function=connector, settings=Settings(settle_seconds=0.05)) as llm:
        ids = await begin(llm, connector="function")
        await until(llm, ids, is_waiting)
        await llm.cancel_turn(*ids)
        state, _ = await until(llm, ids, is_over)
        assert state.status == "cancelled"
        await until(llm, (ids[0], await say(llm, ids[0])), is_waiting)
    assert connector.opened == 2


async def test_a_cancel_of_a_finished_turn_changes_nothing_and_reaches_nobody() -> None:
    peer = Peer()
    async with open_house([[{"text": "a"}]], peer) as llm:
        ids = await begin(llm)
        items = await to_end(llm, ids)
        await llm.cancel_turn(*ids)
        assert await to_end(llm, ids) == items
    assert "interrupt" not in reached(peer)


# deadlines of requests


@requirement("R-A6", "conversation:deadline:request")
@pytest.mark.parametrize("style", STYLES)
async def test_a_call_nobody_answers_gets_one_error_result_and_the_turn_goes_on(
    style: str, store: MemoryStore | None
) -> None:
    peer = Peer()
    script = scripted(style, [{"calls": [{"name": "clock", "id": "a"}]}, {"text": "{{results.a}}"}])
    async with open_house(script, peer, store=store) as llm:
        ids = await begin(llm, timeouts=Timeouts(tool_ms=30))
        state, _ = await until(llm, ids, is_waiting)
        [request] = state.pending_requests
        assert request.expires_at == request.opened_at + 30
        _, items = await until(llm, ids, is_over)
        await llm.submit_responses(*ids, results(["a"], "too late"))
    assert outcomes(items) == [("a", "expired", "deadline")]
    assert [one.is_error for one in peer.answers] == [True]
    assert texts(items) == "The tool 'clock' gave no result within 0.03 s; whether it took effect is unknown."


@requirement("conversation:deadline:request")
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("step", [APPROVAL, QUESTION], ids=["approval", "question"])
async def test_an_approval_or_question_nobody_answers_is_a_refusal(style: str, step: dict[str, Any]) -> None:
    peer = Peer()
    async with open_house(scripted(style, [step]), peer) as llm:
        # the limit of a tool is no limit of a person
        ids = await begin(llm, timeouts=Timeouts(tool_ms=1, approval_ms=50))
        state, _ = await until(llm, ids, is_waiting)
        assert state.pending_requests[0].expires_at == state.pending_requests[0].opened_at + 50
        _, items = await until(llm, ids, is_over)
    assert [outcome for _, outcome, _ in outcomes(items)] == ["expired"]
    [answer] = peer.answers
    assert answer.selected_option == "deny" or answer.action == "decline"


async def test_an_answer_in_time_keeps_its_request_from_expiring() -> None:
    async with open_house([[CALLS]]) as llm:
        ids = await begin(llm, timeouts=Timeouts(tool_ms=40))
        await until(llm, ids, lambda state: len(state.pending_requests) == 2)
        await llm.submit_responses(*ids, results(["b"]))
        _, items = await until(llm, ids, is_over)
    assert outcomes(items) == [("b", "answered", "host"), ("a", "expired", "deadline")]


# deadlines of turns


@requirement("R-M1", "conversation:deadline:turn")
@pytest.mark.parametrize(
    ("timeouts", "code"), [(Timeouts(turn_ms=30), "turn_timeout"), (Timeouts(idle_ms=30), "turn_stalled")]
)
async def test_the_absolute_and_the_idle_limit_are_told_apart(
    timeouts: Timeouts, code: str, store: MemoryStore | None
) -> None:
    peer = Peer()
    async with open_house([[{"text": "a"}, {"hang": True}], [{"text": "next"}]], peer, store=store) as llm:
        ids = await begin(llm, timeouts=timeouts)
        state, _ = await until(llm, ids, is_over)
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "next"
    assert state.error is not None
    assert (state.status, state.stop_reason, state.error.code) == ("failed", "error", code)
    assert reached(peer) == ["interrupt"]


@requirement("R-M1", "conversation:deadline:turn")
async def test_every_event_resets_the_idle_limit() -> None:
    steps = [{"text": "a"}, {"delay_seconds": 0.05}] * 4
    async with open_house([steps]) as llm:
        ids = await begin(llm, timeouts=Timeouts(idle_ms=150))
        state, _ = await until(llm, ids, is_over)
    assert state.status == "completed"
    assert (state.ended_at or 0) - state.started_at > 150


@requirement("R-M1", "conversation:deadline:turn")
async def test_waiting_for_the_host_is_no_silence_of_the_peer() -> None:
    async with open_house([[APPROVAL, {"hang": True}]]) as llm:
        ids = await begin(llm, timeouts=Timeouts(approval_ms=100, idle_ms=30))
        state, items = await until(llm, ids, is_over)
    assert [outcome for _, outcome, _ in outcomes(items)] == ["expired"]
    assert state.error is not None
    assert state.error.code == "turn_stalled"


@requirement("conversation:deadline:turn")
async def test_open_requests_of_a_turn_that_timed_out_are_lost_and_nothing_is_delivered() -> None:
    peer = Peer()
    async with open_house([[CALLS]], peer) as llm:
        ids = await begin(llm, timeouts=Timeouts(turn_ms=40))
        _, items = await until(llm, ids, is_over)
        await peer.has_seen("answer", 2)
    assert outcomes(items) == [("a", "lost", None), ("b", "lost", None)]
    assert reached(peer) == ["interrupt", "answer", "answer"]


@requirement("conversation:deadline:next-turn-waits")
async def test_after_a_timeout_the_next_turn_starts_when_the_peer_has_stopped() -> None:
    peer = Peer()
    may_stop = anyio.Event()
    script = {
        "turns": [[{"hang": True}], [{"text": "next"}]],
        "on_interrupt": [{"until": may_stop}, {"text": "a late event"}, {"end": "end_turn"}],
    }
    async with open_house(script, peer) as llm:
        ids = await begin(llm, "first", timeouts=Timeouts(turn_ms=30))
        await until(llm, ids, is_over)
        second = ids[0], await say(llm, ids[0], "second")
        await peer.has_seen("interrupt")
        await anyio.wait_all_tasks_blocked()
        assert [one.what for one in peer.seen].count("message") == 1
        may_stop.set()
        assert texts(await to_end(llm, second)) == "next"
        assert texts(await to_end(llm, ids)) == ""


async def test_a_timeout_while_the_peer_starts_gives_up_the_start() -> None:
    async with open_house(function=FunctionConnector(start=anyio.sleep_forever)) as llm:
        ids = await begin(llm, connector="function", timeouts=Timeouts(turn_ms=30))
        state, _ = await until(llm, ids, is_over)
        assert state.error is not None
        assert state.error.code == "turn_timeout"
        await llm.end_conversation(ids[0])


async def test_a_turn_that_grows_too_large_fails_and_the_next_one_works() -> None:
    script = [[{"text": ["x" * 1000] * 100}, {"hang": True}], [{"text": "next"}]]
    async with open_house(script, settings=Settings(max_turn_bytes=50_000)) as llm:
        ids = await begin(llm)
        state, _ = await until(llm, ids, is_over)
        assert state.error is not None
        assert state.error.code == "turn_too_large"
        assert texts(await to_end(llm, (ids[0], await say(llm, ids[0])))) == "next"


async def test_a_denial_of_a_peer_that_ends_its_turn_on_it_is_a_cancelled_turn() -> None:
    script = {"turns": [[APPROVAL, {"text": "never"}]], "capabilities": {"denial": "ends_turn"}}
    async with open_house(script) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        await llm.submit_responses(*ids, [HostResponse(request_id="a1", selected_option="deny")])
        state, items = await until(llm, ids, is_over)
    assert (state.status, texts(items)) == ("cancelled", "")
