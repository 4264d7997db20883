"""After a crash, `resume: exact`: open requests stay open, and the turn goes on when they are answered."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from contract_tests.core.conversations import kinds, outcomes
from contract_tests.core.lives import Journal, LateClock, life
from contract_tests.llm_suite import Peer, begin, is_over, is_waiting, results, say, texts, to_end, until
from contract_tests.requirements import requirement
from harness import run_to_completion
from harness.contract import (
    Answer,
    ConversationOptions,
    HostResponse,
    ItemDiscarded,
    Message,
    RequestOpened,
    Timeouts,
    TurnOptions,
    as_content,
)
from harness.contract.content import text_of
from harness.errors import TurnInProgress

ROUND = [
    {"text": ["I will ", "look. "]},
    {"calls": [{"name": "weather", "id": "c"}, {"name": "clock", "id": "d"}]},
    {"text": "It is {{results.c}} at {{results.d}}."},
]
ASK_FOUR = [
    {"approval": {"tool": "Bash", "arguments": {"command": "ls"}}, "wait": False},
    {"question": {"questions": [{"id": "why", "text": "Why?", "allow_free_text": True}]}, "wait": False},
    {"calls": [{"name": "weather", "id": "c"}], "wait": False},
    {"wait": "all"},
    {"text": "{{results.c}}"},
]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path)


@requirement("journal:restart:exact", "journal:restart:polls")
@pytest.mark.parametrize("style", ["emit", "ask"])
async def test_open_requests_survive_and_the_turn_goes_on_when_they_are_answered(journal: Journal, style: str) -> None:
    async with life(journal, [ROUND], style=style) as llm:
        ids = await begin(llm)
        before, items = await until(llm, ids, lambda s: len(s.pending_requests) == 2)
        await llm.submit_responses(*ids, results(["c"], "rainy"))
        before, more = await until(llm, ids, lambda s: len(s.pending_requests) == 1, before.sequence_no)
        journal.kill()

    peer = Peer()
    async with life(journal, [ROUND], peer, style=style) as llm:
        [waiting] = await llm.list_requests()
        assert (waiting.turn_id, waiting.request.request_id) == (ids[1], "d")
        state = await llm.poll_turn(*ids)
        assert (state.status, state.session) == ("awaiting_host", "detached")
        assert state.new_output_items == [*items, *more]
        assert state.pending_requests == before.pending_requests
        assert peer.seen == [], "no peer is started for a turn that waits for its host"
        with pytest.raises(TurnInProgress):
            await say(llm, ids[0], "another")

        await llm.submit_responses(*ids, results(["c"], "rainy"))  # again: the host does not know whether it arrived
        await llm.submit_responses(*ids, results(["d"], "noon"))
        final, rest = await until(llm, ids, is_over, before.sequence_no)
        assert (final.status, final.session) == ("completed", "attached")
        assert kinds(rest) == ["request_resolved", "text_delta", "turn_ended"]
        assert texts(rest) == "It is rainy at noon."
        second = ids[0], await say(llm, ids[0])
        await to_end(llm, second)


@requirement("journal:restart:exact", "R-F7")
async def test_all_three_kinds_of_request_survive(journal: Journal) -> None:
    async with life(journal, [ASK_FOUR]) as llm:
        ids = await begin(llm)
        before, _ = await until(llm, ids, lambda s: len(s.pending_requests) == 3)
        journal.kill()
    peer = Peer()
    async with life(journal, [ASK_FOUR], peer) as llm:
        state = await llm.poll_turn(*ids)
        assert state.pending_requests == before.pending_requests
        by_kind = {request.kind: request.request_id for request in state.pending_requests}
        answers = [
            HostResponse(request_id=by_kind["approval"], selected_option="allow_once"),
            HostResponse(request_id=by_kind["user_question"], answers=[Answer(question_id="why", text="so")]),
            *results([by_kind["tool_call"]], "dry"),
        ]
        await llm.submit_responses(*ids, answers)
        final, items = await until(llm, ids, is_over)
    assert final.status == "completed"
    assert [outcome for _, outcome, _ in outcomes(items)] == ["answered"] * 3
    assert texts(items) == "dry"
    assert peer.answers == answers


@requirement("journal:restart:exact")
async def test_a_model_that_was_at_work_is_called_again_and_its_half_message_is_discarded(journal: Journal) -> None:
    held = [{"text": "whole"}, {"calls": [{"name": "clock", "id": "c"}]}, {"text": ["half"]}, {"until": anyio.Event()}]
    async with life(journal, [held]) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        await llm.submit_responses(*ids, results(["c"]))
        before, items = await until(llm, ids, lambda s: "half" in texts(s.new_output_items))
        journal.kill()
    peer = Peer()
    async with life(journal, [[*held[:2], {"text": ["half", " done"]}]], peer) as llm:
        final, rest = await until(llm, ids, is_over, before.sequence_no)
        assert final.status == "completed"
        [discarded] = [item for item in rest if isinstance(item, ItemDiscarded)]
        assert discarded.reason == "restarted"
        assert [item.item_id for item in items if item.kind == "text_delta"].index(discarded.item_id) == 1
        assert texts(rest) == "half done"
        whole = await llm.poll_turn(*ids)
        assert [item.sequence_no for item in whole.new_output_items] == list(range(1, whole.sequence_no + 1))
    assert [one.what for one in peer.seen][:2] == ["opened", "answer"]


@requirement("journal:restart:exact")
async def test_a_turn_whose_message_had_not_reached_the_session_begins(journal: Journal) -> None:
    async with life(journal, [ROUND]) as llm:
        conversation_id = await llm.begin_conversation(ConversationOptions(connector="fake"))
        turn_id = await say(llm, conversation_id)
        journal.kill()  # the turn is durable, and nothing has happened since
    async with life(journal, [ROUND]) as llm:
        items = await to_end(llm, (conversation_id, turn_id), "x")
    assert texts(items) == "I will look. It is x at x."


@requirement("journal:restart:overdue")
async def test_an_overdue_approval_is_a_denial_before_anything_is_shown(journal: Journal) -> None:
    script = [[ASK_FOUR[0], {"wait": "all"}, {"text": "told"}]]
    async with life(journal, script) as llm:
        ids = await begin(llm, timeouts=Timeouts(approval_ms=60_000))
        before, _ = await until(llm, ids, is_waiting)
        journal.kill()
    peer = Peer()
    async with life(journal, script, peer, clock=LateClock(61_000)) as llm:
        assert await llm.list_requests() == []
        state = await llm.poll_turn(*ids)
        assert state.pending_requests == []
        assert outcomes(state.new_output_items) == [("a1", "expired", "deadline")]
        await until(llm, ids, is_over, before.sequence_no)
    [answer] = peer.answers
    assert answer.selected_option == "deny"


@requirement("journal:restart:overdue")
async def test_who_only_looks_is_not_shown_what_is_overdue_either(journal: Journal) -> None:
    async with life(journal, [ASK_FOUR]) as llm:
        ids = await begin(llm, timeouts=Timeouts(approval_ms=60_000))
        await until(llm, ids, lambda s: len(s.pending_requests) == 3)
        journal.kill()
    async with life(journal, [ASK_FOUR], clock=LateClock(61_000), takes_up_turns=False) as llm:
        [waiting] = await llm.list_requests()
        assert waiting.request.kind == "tool_call"
        [info] = await llm.list_conversations()
        assert (info.pending_requests, await llm.get_conversation(ids[0])) == (1, info)


@requirement("journal:restart:overdue")
async def test_a_deadline_that_passes_while_no_peer_runs_lets_the_turn_go_on(journal: Journal) -> None:
    script = [
        [{"calls": [{"name": "clock", "id": "c"}], "wait": False}, ASK_FOUR[0], {"wait": "all"}, {"text": "told"}]
    ]
    async with life(journal, script) as llm:
        ids = await begin(llm, timeouts=Timeouts(approval_ms=60_000))
        await until(llm, ids, lambda s: len(s.pending_requests) == 2)
        await llm.submit_responses(*ids, results(["c"]))
        journal.kill()
    clock = LateClock()
    async with life(journal, script, clock=clock) as llm:
        state = await llm.poll_turn(*ids)
        assert [request.request_id for request in state.pending_requests] == ["a1"]
        clock.ahead_ms = 61_000
        await llm.submit_responses(*ids, results(["c"]))  # changes nothing, and whoever sleeps looks at the clock again
        final, items = await until(llm, ids, is_over, state.sequence_no)
    assert final.status == "completed"
    assert outcomes(items) == [("a1", "expired", "deadline")]


@requirement("journal:restart:exact")
async def test_a_turn_that_waits_for_its_host_may_be_cancelled_instead(journal: Journal) -> None:
    async with life(journal, [ROUND]) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        journal.kill()
    peer = Peer()
    async with life(journal, [ROUND], peer) as llm:
        await llm.cancel_turn(*ids)
        final, items = await until(llm, ids, is_over)
        assert (final.status, final.cancel_requested) == ("cancelled", True)
        assert outcomes(items) == [("c", "cancelled", None), ("d", "cancelled", None)]
        assert peer.seen == []
        await to_end(llm, (ids[0], await say(llm, ids[0])))


@requirement("journal:restart:client-key")
async def test_a_caller_that_was_killed_finds_its_turn_by_its_keys(journal: Journal) -> None:
    options = ConversationOptions(connector="fake", client_key="job 7")
    turn_options = TurnOptions(client_key="message 1")

    async with life(journal, [ROUND]) as llm:
        conversation_id = await llm.begin_conversation(options)
        turn_id = await say(llm, conversation_id, "go", turn_options)
        await until(llm, (conversation_id, turn_id), is_waiting)
        # the caller is killed, and its successor begins all over: nothing happens twice
        assert await llm.begin_conversation(options) == conversation_id
        assert await say(llm, conversation_id, "go", turn_options) == turn_id
        journal.kill()  # and then the server, too
    async with life(journal, [ROUND]) as llm:
        assert await llm.begin_conversation(options) == conversation_id
        assert await say(llm, conversation_id, "go", turn_options) == turn_id
        items = await to_end(llm, (conversation_id, turn_id))
        assert kinds(items)[-1] == "turn_ended"
        assert len(await llm.list_conversations()) == 1


def weather() -> str:
    """The weather."""
    return "rainy"


def clock() -> str:
    """The time."""
    return "noon"


@requirement("journal:restart:run-to-completion")
async def test_run_to_completion_picks_up_a_turn_of_before(journal: Journal) -> None:
    async with life(journal, [ROUND]) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        await llm.submit_responses(*ids, results(["c"], "dry"))
        journal.kill()
    async with life(journal, [ROUND]) as llm:
        done = await run_to_completion(llm, conversation_id=ids[0], turn_id=ids[1], tools=[weather, clock], check=True)
    assert (done.content or "").endswith("It is dry at noon.")
    assert [(call.call_id, call.outcome) for call in done.calls] == [("c", "ok"), ("d", "ok")]


@requirement("journal:restart:ids", "R-G2")
async def test_ids_of_requests_are_never_given_again(journal: Journal) -> None:
    script = [[ASK_FOUR[0], {"wait": "all"}, {"calls": [{"name": "clock", "id": "c"}]}]]
    async with life(journal, script) as llm:
        ids = await begin(llm)
        await until(llm, ids, is_waiting)
        await llm.submit_responses(*ids, [HostResponse(request_id="a1", selected_option="allow_once")])
        await until(llm, ids, lambda s: [r.request_id for r in s.pending_requests] == ["c"])
        journal.kill()
    async with life(journal, script) as llm:
        await llm.submit_responses(*ids, results(["c"]))
        _, items = await until(llm, ids, is_over)
        assert [item.request.request_id for item in items if isinstance(item, RequestOpened)] == ["a1", "c"]
        second = ids[0], await say(llm, ids[0])
        state, _ = await until(llm, second, is_waiting)
        [approval] = state.pending_requests
        await llm.submit_responses(
            *second, [HostResponse(request_id=approval.request_id, selected_option="allow_once")]
        )
        state, _ = await until(llm, second, lambda s: s.pending_requests and s.pending_requests[0].kind == "tool_call")
        [call] = state.pending_requests
        assert approval.request_id not in ("a1", "c")
        assert (call.request_id, call.call_id) == ("c~2", "c")


@requirement("journal:restart:exact")
async def test_leaving_the_harness_keeps_a_turn_that_can_go_on_exactly(journal: Journal) -> None:
    peer = Peer()
    async with life(journal, [ROUND], peer) as llm:
        ids = await begin(llm)
        before, _ = await until(llm, ids, is_waiting)
    assert [one.what for one in peer.seen] == ["opened", "message", "closed"]
    async with life(journal, [ROUND]) as llm:
        state = await llm.poll_turn(*ids, before.sequence_no)
        assert (state.status, state.session, state.new_output_items) == ("awaiting_host", "detached", [])
        await to_end(llm, ids)


@requirement("journal:restart:exact")
async def test_leaving_the_harness_frees_whoever_polls(journal: Journal) -> None:
    async with life(journal, [ROUND]) as llm, anyio.create_task_group() as group:
        ids = await begin(llm)
        before, _ = await until(llm, ids, is_waiting)

        async def poll() -> None:
            state = await llm.poll_turn(*ids, before.sequence_no, 60_000)
            assert state.status == "awaiting_host"

        group.start_soon(poll)
        await anyio.lowlevel.checkpoint()
        await llm.end_all()


@requirement("journal:restart:usage")
async def test_figures_and_structured_output_are_those_of_before(journal: Journal) -> None:
    script = [[{"usage": {"input_tokens": 7, "model_calls": 1}}, {"end": "end_turn", "structured_output": {"a": 1}}]]
    async with life(journal, script) as llm:
        ids = await begin(llm)
        before, _ = await until(llm, ids, is_over)
        second = ids[0], await say(llm, ids[0])
        await until(llm, second, is_over)
        journal.kill()
    async with life(journal, script) as llm:
        assert await llm.poll_turn(*ids) == await llm.poll_turn(*ids)
        after = await llm.poll_turn(*ids)
        assert (after.usage, after.structured_output_json) == (before.usage, '{"a": 1}')
        third = ids[0], await say(llm, ids[0])
        state, _ = await until(llm, third, is_over)
        assert state.conversation_usage is not None and state.conversation_usage.input_tokens == 21


@requirement("journal:restart:old-turns")
async def test_every_turn_can_be_read_however_old(journal: Journal) -> None:
    from harness.settings import Settings

    script = [[{"message": "number"}]]
    few = Settings(kept_turns=2)
    async with life(journal, script, settings=few) as llm:
        ids = await begin(llm, "message 1")
        await until(llm, ids, is_over)
        for number in range(2, 7):
            await until(llm, (ids[0], await say(llm, ids[0], f"message {number}")), is_over)
        state = await llm.poll_turn(*ids)
        assert kinds(state.new_output_items) == ["message", "turn_ended"]
        journal.kill()
    async with life(journal, script, settings=few) as llm:
        for number in range(1, 7):
            state = await llm.poll_turn(ids[0], f"t{number}")
            assert [text_of(i.content) for i in state.new_output_items if isinstance(i, Message)] == ["number"]
        exported = await llm.export_conversation(ids[0])
        assert [text_of(turn.content) for turn in exported.turns] == [f"message {number}" for number in range(1, 7)]
        assert exported.turns[0].content == as_content("message 1")
