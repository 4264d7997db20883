"""Three harnesses on top of each other: what goes through all of them, in both directions."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from contract_tests.connectors.remote.stack import open_house, open_stack, remote, through
from contract_tests.llm_suite import is_over, is_waiting, results, say, texts, to_end, until
from contract_tests.requirements import requirement
from harness.contract import (
    ConversationOptions,
    HostResponse,
    InternalToolFinished,
    Notice,
    RequestOpened,
    RequestResolved,
    Resume,
    Timeouts,
    TurnOptions,
)
from harness.errors import ConnectorUnavailable, Forbidden, HarnessError, InvalidArgument, PeerLost
from harness.settings import Rights, Settings

ONE_EACH = Settings(max_sessions=1)
ARGUMENTS = '{ "city" : "Oslo" }'
TWICE = [{"name": "weather", "id": "call_1", "order": order, "arguments_json": ARGUMENTS} for order in range(2)]
CALLS: list[dict[str, Any]] = [{"text": ["Let ", "me ", "see. "]}, {"calls": TWICE}, {"text": "{{results.call_1}}"}]
USAGE = {"input_tokens": 7, "output_tokens": 3, "model_calls": 2, "cost_usd": 0.5}
APPROVAL: dict[str, Any] = {
    "approval": {
        "tool": "run",
        "call_id": "call_9",
        "arguments": {"command": "ls"},
        "options": [
            {"id": "yes-please", "kind": "allow_once", "label": "Yes"},
            {"id": "never", "kind": "deny", "label": "No"},
        ],
    }
}
RUN = {"internal_tool": {"name": "run", "call_id": "call_9", "result_text": "a b"}}
QUESTION = {"question": {"questions": [{"id": "q", "text": "Which?", "options": [{"id": "a", "label": "A"}]}]}}


@requirement("stacking:calls")
async def test_identical_parallel_calls_keep_ids_order_and_text_through_three_harnesses() -> None:
    with anyio.fail_after(20):
        async with open_stack([CALLS], settings=ONE_EACH) as stack:
            ids = await stack.begin()
            state, items = await until(stack.top, ids, lambda state: len(state.pending_requests) == 2)
            first, second = state.pending_requests
            assert [one.request_id for one in (first, second)] == ["call_1", "call_1~2"]
            assert [one.call_id for one in (first, second)] == ["call_1", "call_1"]
            assert [one.order for one in (first, second)] == [0, 1]
            assert {one.arguments_json for one in (first, second)} == {ARGUMENTS}
            assert texts(items) == "Let me see. "

            await stack.top.submit_responses(*ids, results(["call_1~2", "call_1"], "3 °C"))
            state, items = await until(stack.top, ids, is_over, state.sequence_no)
            assert (state.status, state.stop_reason) == ("completed", "end_turn")
            assert texts(items) == "3 °C"
            assert len(stack.peer.answers) == 2


@requirement("stacking:asks")
async def test_an_approval_and_a_question_arrive_with_their_options_and_are_answered_from_the_top() -> None:
    with anyio.fail_after(20):
        async with open_stack([[APPROVAL, RUN, QUESTION, {"text": "Done."}]]) as stack:
            ids = await stack.begin()
            state, _ = await until(stack.top, ids, is_waiting)
            asked = state.pending_requests[0]
            assert [(one.id, one.kind, one.label) for one in asked.options] == [
                ("yes-please", "allow_once", "Yes"),
                ("never", "deny", "No"),
            ]
            answer = HostResponse(request_id=asked.request_id, selected_option="yes-please")
            await stack.top.submit_responses(*ids, [answer])
            state, items = await until(stack.top, ids, is_waiting, state.sequence_no)
            assert [item.result_text for item in items if isinstance(item, InternalToolFinished)] == ["a b"]
            question = state.pending_requests[0]
            assert question.questions[0].options[0].label == "A"
            answers = [{"question_id": "q", "selected": ["a"]}]
            accepted = HostResponse.model_validate(
                {"request_id": question.request_id, "action": "accept", "answers": answers}
            )
            await stack.top.submit_responses(*ids, [accepted])
            state, _ = await until(stack.top, ids, is_over, state.sequence_no)
            assert state.status == "completed"
            assert [one.selected_option for one in stack.peer.answers] == ["yes-please", None]
            assert stack.peer.answers[1].answers == accepted.answers
            assert (asked.request_id, question.request_id) == ("a1", "q2")


@requirement("stacking:cancel")
@pytest.mark.parametrize("open_call", [False, True])
async def test_a_cancel_at_the_top_reaches_the_bottom_once(open_call: bool) -> None:
    step: dict[str, Any] = {"calls": [{"name": "weather", "id": "call_1"}]} if open_call else {"hang": True}
    with anyio.fail_after(20):
        async with open_stack([[{"text": "one"}, step]], settings=ONE_EACH) as stack:
            ids = await stack.begin()
            state, _ = await until(stack.top, ids, is_waiting if open_call else lambda state: state.sequence_no > 1)
            await stack.top.cancel_turn(*ids)
            state, items = await until(stack.top, ids, is_over, state.sequence_no)
            assert (state.status, state.stop_reason) == ("cancelled", "cancelled")
            assert [one.what for one in stack.peer.seen].count("interrupt") == 1
            assert [item.outcome for item in items if isinstance(item, RequestResolved)] == ["cancelled"] * open_call
            assert [item.code for item in items if isinstance(item, Notice)] == ["cancel_requested"]
            # the conversation goes on
            again = ids[0], await say(stack.top, ids[0], "again")
            await until(stack.top, again, lambda state: state.sequence_no > 0)
            await stack.top.cancel_turn(*again)


@requirement("stacking:errors")
async def test_an_error_at_the_bottom_arrives_at_the_top_with_its_code_and_detail() -> None:
    error = {"code": "provider_error", "message": "Slow down.", "detail": {"reason": "rate_limit", "status": 429}}
    with anyio.fail_after(20):
        async with open_stack([[{"text": "one"}, {"error": error}]]) as stack:
            state, _ = await until(stack.top, await stack.begin(), is_over)
            assert state.status == "failed" and state.error is not None
            assert (state.error.code, state.error.message) == ("provider_error", "Slow down.")
            assert json.loads(state.error.detail_json or "") == error["detail"]


@requirement("stacking:errors")
async def test_what_the_lowest_refuses_is_refused_at_the_top() -> None:
    async with open_stack([[{"text": "one"}]]) as stack:
        with pytest.raises(InvalidArgument, match="connector 'remote' has no internal tool 'nope'"):
            await stack.top.begin_conversation(stack.more_options(internal_tools=["nope"]))
        chosen = through(stack.servers[1].url, "missing")
        with pytest.raises(InvalidArgument, match="unknown connector 'missing'"):
            await stack.top.begin_conversation(remote(through(stack.servers[0].url, "remote", chosen)))


@requirement("stacking:capabilities")
async def test_capabilities_are_those_of_the_bottom_except_what_a_stack_cannot() -> None:
    told = {"reports_cost": True, "max_result_chars": 1234, "internal_tools": ["run"], "fork": True}
    for resume, here in ((Resume.EXACT, Resume.CONTINUED), (Resume.CONTINUED, Resume.CONTINUED), ("none", "none")):
        async with open_stack({"turns": [[{"text": "x"}]], "resume": resume, "capabilities": told}) as stack:
            below = await stack.top.get_capabilities(remote(through(stack.servers[1].url, "fake")))
            top = await stack.top.get_capabilities(stack.options)
            assert top == below
            assert (top.resume, top.fork, top.max_result_chars, top.internal_tools) == (here, False, 1234, ["run"])
            assert top.inner is not None and top.inner.name == "fake"


@requirement("stacking:stream")
async def test_deltas_notices_usage_and_structured_output_are_those_of_the_bottom() -> None:
    steps = [
        {"thinking": ["hm ", "hm"]},
        {"text": ["a", "b"], "item_id": "m1"},
        {"notice": {"code": "retry", "text": "again"}},
        {"usage": USAGE},
        {"end": "max_tokens", "structured_output": {"x": 1}},
    ]
    with anyio.fail_after(20):
        async with open_stack([steps]) as stack:
            state, items = await until(stack.top, await stack.begin(), is_over)
            told = [item for item in items if not (isinstance(item, Notice) and item.code == "peer_started")]
            kinds = [getattr(item, "kind", "") for item in told]
            assert list(dict.fromkeys(kinds)) == ["thinking_delta", "text_delta", "notice", "usage", "turn_ended"]
            assert (texts(items), {i.item_id for i in told if i.kind == "text_delta"}) == ("ab", {"m1"})
            assert state.stop_reason == "max_tokens"
            assert state.structured_output_json == '{"x": 1}'
            assert state.usage is not None and state.usage.model_dump(include=set(USAGE)) == USAGE
            assert state.conversation_usage == state.usage
            where = [item.text for item in items if isinstance(item, Notice) and item.code == "peer_started"]
            assert [url in text for url, text in zip([s.url for s in reversed(stack.servers)], where, strict=True)]


@requirement("stacking:one-session")
async def test_with_one_session_at_every_level_conversations_take_turns_and_nothing_deadlocks() -> None:
    with anyio.fail_after(30):
        async with open_stack([CALLS], settings=ONE_EACH) as stack:
            one, _ = first = await stack.begin()
            await to_end(stack.top, first)
            two, _ = second = await stack.begin()  # parks the first, at every level
            await to_end(stack.top, second)
            for conversation_id in (one, two, one):
                turn = conversation_id, await say(stack.top, conversation_id)
                assert "done" in texts(await to_end(stack.top, turn))
            assert [seen.what for seen in stack.peer.seen].count("opened") == 5


@requirement("stacking:deadlines")
async def test_the_deadline_of_the_top_decides_and_the_bottom_hears_its_answer() -> None:
    with anyio.fail_after(20):
        async with open_stack([CALLS]) as stack:
            ids = await stack.begin(timeouts=Timeouts(tool_ms=50))
            state, items = await until(stack.top, ids, is_over)
            assert state.status == "completed"
            assert [item.outcome for item in items if isinstance(item, RequestResolved)] == ["expired", "expired"]
            assert all("gave no result within 0.05 s" in str(one.content) for one in stack.peer.answers)


@requirement("stacking:withdrawn")
async def test_a_request_that_the_bottom_takes_back_is_withdrawn_at_the_top() -> None:
    call = {"calls": [{"name": "weather", "id": "call_1"}], "wait": False}
    with anyio.fail_after(20):
        async with open_stack([[call, {"withdraw": "call_1"}, {"text": "x"}]]) as stack:
            _, items = await until(stack.top, await stack.begin(), is_over)
            assert [item.request.request_id for item in items if isinstance(item, RequestOpened)] == ["call_1"]
            assert [item.outcome for item in items if isinstance(item, RequestResolved)] == ["withdrawn"]


@requirement("stacking:turns")
async def test_the_same_message_twice_is_two_turns_and_a_client_key_of_the_caller_stays_with_the_caller() -> None:
    with anyio.fail_after(20):
        async with open_stack([CALLS]) as stack:
            options = stack.more_options(client_key="mine")
            for owner in ("ada", "bob"):
                house = stack.top.for_owner(owner, Rights())
                conversation_id = await house.begin_conversation(options)
                for _ in range(2):
                    turn_id = await say(house, conversation_id, "same", TurnOptions(client_key=None))
                    assert "done" in texts(await to_end(house, (conversation_id, turn_id)))
            assert [seen.what for seen in stack.peer.seen].count("opened") == 2
            assert [seen.what for seen in stack.peer.seen].count("message") == 4


@requirement("stacking:restricted")
@pytest.mark.parametrize("option", ["url", "token", "token_file", "connector", "options"])
async def test_a_caller_without_programs_does_not_choose_what_is_reached_with_our_token(option: str) -> None:
    async with open_house() as house:
        guest = house.for_owner("guest", Rights(programs=False))
        with pytest.raises(Forbidden, match=f"'{option}'"):
            await guest.get_capabilities(remote({option: "x"}))


@requirement("stacking:options")
async def test_options_that_cannot_be_used_say_so_and_never_show_a_value() -> None:
    async with open_house() as house:
        with pytest.raises(ConnectorUnavailable, match="-O url=http"):
            await house.get_capabilities(ConversationOptions(connector="remote"))
        with pytest.raises(InvalidArgument, match="option 'tokn'") as told:
            await house.get_capabilities(remote({"url": "http://127.0.0.1:9", "tokn": "s3cr3t-value"}))
        assert "s3cr3t" not in str(told.value)
        with pytest.raises(PeerLost, match="cannot be reached"):
            await house.get_capabilities(remote({"url": "http://127.0.0.1:9"}))


@requirement("stacking:options")
async def test_the_token_comes_from_a_file_that_only_this_user_reads(tmp_path: Any) -> None:
    file = tmp_path / "token"
    file.write_text("made-up-secret\n")
    file.chmod(0o600)
    async with open_stack([[{"text": "hi"}]], depth=2) as stack:
        chosen = {"url": stack.servers[0].url, "connector": "fake", "token_file": str(file)}
        assert (await stack.top.get_capabilities(remote(chosen))).supports_tools
        file.chmod(0o644)
        with pytest.raises(HarnessError, match="others can reach"):
            await stack.top.get_capabilities(remote(chosen))
