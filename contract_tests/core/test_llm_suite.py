"""What holds for every `ConversationalLLM`, whether it is in this process or behind HTTP."""

from __future__ import annotations

import json

import anyio
import pytest

from contract_tests.llm_suite import (
    KINDS,
    TOOLS,
    WAIT_MS,
    Peer,
    begin,
    is_over,
    is_waiting,
    open_llm,
    results,
    say,
    texts,
    to_end,
    until,
)
from contract_tests.requirements import requirement
from harness.contract import (
    ConversationOptions,
    HostResponse,
    OutputItem,
    RequestPolicy,
    TextBlock,
    TurnOptions,
    as_content,
)
from harness.errors import (
    AlreadyAnswered,
    HarnessError,
    InvalidArgument,
    NotSupported,
    TurnInProgress,
    UnknownConversation,
    UnknownRequest,
    UnknownTurn,
)
from harness.settings import Settings

ROUND = [
    {"calls": [{"name": "weather", "arguments": {"city": "Oslo"}, "id": "oslo"}, {"name": "clock", "id": "now"}]},
    {"text": "It is {{results.oslo}}."},
]
ODD_TEXT = "line\u2028para\u2029next\x85tab\x0bfeed\x0creturn\rsnow \u2603 rocket \U0001f680"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@requirement("llm:turn:tool-calls")
async def test_a_turn_asks_for_tools_and_goes_on_with_their_results(kind: str) -> None:
    peer = Peer()
    with anyio.fail_after(5):
        async with open_llm(kind, [ROUND], peer) as llm:
            ids = await begin(llm, "How is Oslo?")
            state, _ = await until(llm, ids, is_waiting)
            await llm.submit_responses(*ids, results(["oslo"], "rainy"))
            await llm.submit_responses(*ids, results(["now"]))
            final, rest = await until(llm, ids, is_over, state.sequence_no)

    assert [(one.request_id, one.call_id, one.tool_name) for one in state.pending_requests] == [
        ("oslo", "oslo", "weather"),
        ("now", "now", "clock"),
    ]
    assert json.loads(state.pending_requests[0].arguments_json or "") == {"city": "Oslo"}
    assert texts(rest) == "It is rainy."
    assert (final.status, final.stop_reason, final.pending_requests) == ("completed", "end_turn", [])
    assert [answer.request_id for answer in peer.answers] == ["oslo", "now"]


@requirement("llm:poll:same-stream")
@pytest.mark.parametrize("max_items", [1, 2, 1000])
async def test_polls_of_any_size_give_the_same_stream_and_never_more_than_asked(kind: str, max_items: int) -> None:
    script = [[{"text": ["a", "b", "c"]}, *ROUND, {"notice": {"code": "retry", "text": "again"}}]]
    with anyio.fail_after(5):
        async with open_llm(kind, script) as llm:
            ids = await begin(llm)
            whole = await to_end(llm, ids)
            items: list[OutputItem] = []
            since, pages = 0, 0
            while True:
                state = await llm.poll_turn(*ids, since, WAIT_MS, max_items)
                assert len(state.new_output_items) <= max_items
                items += state.new_output_items
                since, pages = state.sequence_no, pages + 1
                if is_over(state):
                    break
                assert state.has_more

    assert items == whole
    assert [item.sequence_no for item in whole] == list(range(1, len(whole) + 1))
    assert pages == -(-len(whole) // max_items)


@requirement("llm:poll:waits")
async def test_a_poll_waits_until_something_is_newer_and_one_in_vain_says_so(kind: str) -> None:
    go_on = anyio.Event()
    with anyio.fail_after(5):
        async with open_llm(kind, [[{"text": "one"}, {"until": go_on}, {"text": "two"}]]) as llm:
            ids = await begin(llm)
            await until(llm, ids, lambda state: state.sequence_no == 1)
            in_vain = await llm.poll_turn(*ids, 1, 10)
            woken: list[str] = []

            async def wait() -> None:
                newer = await llm.poll_turn(*ids, 1, WAIT_MS)
                woken.append(texts(newer.new_output_items))

            async with anyio.create_task_group() as waiting:
                for _ in range(3):
                    waiting.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                assert woken == []
                go_on.set()

    assert (in_vain.sequence_no, in_vain.new_output_items, in_vain.status) == (1, [], "running")
    assert woken == ["two"] * 3


@requirement("llm:poll:waits")
async def test_a_finished_turn_keeps_nobody_waiting(kind: str) -> None:
    with anyio.fail_after(5):
        async with open_llm(kind, [[{"text": "done"}]]) as llm:
            ids = await begin(llm)
            items = await to_end(llm, ids)
            for since in (len(items), len(items) + 5, 0):
                state = await llm.poll_turn(*ids, since, WAIT_MS)
                assert (state.status, state.sequence_no) == ("completed", max(since, len(items)))


@requirement("llm:answers:judged-alone")
async def test_each_answer_is_judged_alone_and_the_rejected_ones_are_listed(kind: str) -> None:
    peer = Peer()
    with anyio.fail_after(5):
        async with open_llm(kind, [ROUND], peer) as llm:
            ids = await begin(llm)
            await until(llm, ids, is_waiting)
            with pytest.raises(UnknownRequest) as unknown:
                await llm.submit_responses(*ids, results(["oslo", "nowhere"], "rainy"))
            state, _ = await until(llm, ids, lambda state: len(state.pending_requests) == 1)
            with pytest.raises(AlreadyAnswered) as second:
                await llm.submit_responses(*ids, results(["oslo"], "sunny"))
            await llm.submit_responses(*ids, results(["oslo"], "rainy"))
            await llm.submit_responses(*ids, results(["now"]))
            assert texts(await to_end(llm, ids, since=state.sequence_no)) == "It is rainy."

    assert _rejected(unknown.value) == [("nowhere", "unknown_request")]
    assert _rejected(second.value) == [("oslo", "already_answered")]


def _rejected(error: HarnessError) -> list[tuple[str, str]]:
    listed = error.detail["rejected"]
    assert isinstance(listed, list)
    return [(one["request_id"], one["code"]) for one in listed]


@requirement("llm:answers:never-open-again")
async def test_a_request_whose_answer_was_accepted_is_never_shown_open_again(kind: str) -> None:
    script = [[{"calls": [{"name": "clock", "id": "x"}]}, {"text": "a"}] * 20]
    with anyio.fail_after(10):
        async with open_llm(kind, script) as llm:
            ids = await begin(llm)
            since = 0
            answered: set[str] = set()
            while not is_over(state := await llm.poll_turn(*ids, since, WAIT_MS)):
                since = state.sequence_no
                open_ids = {request.request_id for request in state.pending_requests}
                assert not open_ids & answered
                await llm.submit_responses(*ids, results(sorted(open_ids)))
                answered |= open_ids
    assert len(answered) == 20


@requirement("llm:cancel")
async def test_a_cancel_resolves_what_is_open_and_may_be_repeated(kind: str) -> None:
    peer = Peer()
    with anyio.fail_after(5):
        async with open_llm(kind, [ROUND], peer) as llm:
            ids = await begin(llm)
            state, _ = await until(llm, ids, is_waiting)
            await llm.cancel_turn(*ids)
            after = await llm.poll_turn(*ids, state.sequence_no, WAIT_MS)
            await llm.cancel_turn(*ids)
            final, _ = await until(llm, ids, is_over, state.sequence_no)
            # an answer that crossed the cancel disturbs nobody, and the conversation stays usable
            await llm.submit_responses(*ids, results(["oslo"]))
            reached_peer = [one.what for one in peer.seen if one.what in ("answer", "interrupt")]
            again = await say(llm, ids[0])
            assert again != ids[1]

    assert after.cancel_requested
    assert after.pending_requests == []
    assert (final.status, final.stop_reason) == ("cancelled", "cancelled")
    assert reached_peer[0] == "interrupt"
    assert reached_peer.count("interrupt") == 1


@requirement("llm:turn:one-at-a-time")
async def test_a_second_message_is_refused_and_a_repeated_one_is_the_same_turn(kind: str) -> None:
    with anyio.fail_after(5):
        async with open_llm(kind, [ROUND]) as llm:
            conversation_id, turn_id = await begin(llm, "first")
            await until(llm, (conversation_id, turn_id), is_waiting)
            assert await say(llm, conversation_id, "first") == turn_id
            with pytest.raises(TurnInProgress, match=turn_id):
                await say(llm, conversation_id, "second")


@requirement("llm:client-key")
async def test_a_repeated_begin_or_message_with_a_client_key_is_the_same_one(kind: str) -> None:
    with anyio.fail_after(5):
        async with open_llm(kind, [[{"text": "hi"}]]) as llm:
            options = ConversationOptions(client_key="mine")
            conversation_id = await llm.begin_conversation(options)
            assert await llm.begin_conversation(options) == conversation_id
            turn_id = await say(llm, conversation_id, "one", TurnOptions(client_key="t"))
            await to_end(llm, (conversation_id, turn_id))
            assert await say(llm, conversation_id, "two", TurnOptions(client_key="t")) == turn_id


@requirement("llm:errors:same-classes")
async def test_wrong_ids_and_arguments_are_the_same_errors(kind: str) -> None:
    with anyio.fail_after(5):
        async with open_llm(kind, [[{"text": "hi"}]]) as llm:
            ids = await begin(llm)
            with pytest.raises(UnknownConversation, match="'no where\\?'"):
                await llm.get_conversation("no where?")
            for wait_ms in (0, WAIT_MS):
                with pytest.raises(UnknownConversation, match="'nowhere'"):
                    await llm.poll_turn("nowhere", ids[1], 0, wait_ms)
                with pytest.raises(UnknownTurn, match="'never'"):
                    await llm.poll_turn(ids[0], "never", 0, wait_ms)
                with pytest.raises(InvalidArgument, match="max_items"):
                    await llm.poll_turn(*ids, 0, wait_ms, 0)
            with pytest.raises(InvalidArgument, match="unknown connector 'nobody'"):
                await llm.begin_conversation(ConversationOptions(connector="nobody"))
            with pytest.raises(InvalidArgument, match="no content"):
                await llm.submit_user_message(ids[0], [])
            await to_end(llm, ids)
            with pytest.raises(InvalidArgument):
                await llm.delegate_request_policy(ids[0], RequestPolicy())
            with pytest.raises(NotSupported):
                await llm.fork_conversation(ids[0])


@requirement("R-J1", "R-J3")
async def test_text_arrives_letter_by_letter_in_both_directions(kind: str) -> None:
    peer = Peer()
    arguments = {"text": ODD_TEXT, "big": 12345678901234567890123}
    script = [[{"calls": [{"name": "clock", "id": "c", "arguments": arguments}]}, {"text": "{{results.c}}"}]]
    with anyio.fail_after(5):
        async with open_llm(kind, script, peer) as llm:
            ids = await begin(llm, ODD_TEXT)
            state, _ = await until(llm, ids, is_waiting)
            await llm.submit_responses(*ids, results(["c"], ODD_TEXT))
            spoken = texts(await to_end(llm, ids, since=state.sequence_no))
            exported = await llm.export_conversation(ids[0])

    assert json.loads(state.pending_requests[0].arguments_json or "") == arguments
    assert peer.seen[1].value == tuple(as_content(ODD_TEXT))
    assert peer.answers[0].content == as_content(ODD_TEXT)
    assert spoken == ODD_TEXT
    assert exported.turns[0].content == as_content(ODD_TEXT)


@requirement("R-J3")
async def test_an_unpaired_surrogate_in_json_text_stays_the_escape_it_is(kind: str) -> None:
    peer = Peer()
    arguments_json = r'{"cut": "\ud83d"}'
    script = [[{"calls": [{"name": "clock", "id": "c", "arguments_json": arguments_json}]}]]
    answer = HostResponse(request_id="c", structured_content_json=r'{"half": "\ude80"}')
    with anyio.fail_after(5):
        async with open_llm(kind, script, peer) as llm:
            ids = await begin(llm)
            state, _ = await until(llm, ids, is_waiting)
            await llm.submit_responses(*ids, [answer])
            await to_end(llm, ids, since=state.sequence_no)

    assert json.loads(state.pending_requests[0].arguments_json or "") == json.loads(arguments_json)
    assert peer.answers == [answer]


@requirement("R-B4")
async def test_bodies_of_twenty_megabytes_pass_in_both_directions(kind: str) -> None:
    peer = Peer()
    big = "0123456789abcdef" * (20 * 1024 * 1024 // 16)
    script = [[{"calls": [{"name": "clock", "id": "c"}]}, {"text": "{{results.c}}"}]]
    settings = Settings(max_window_bytes=64 * 1024 * 1024)
    with anyio.fail_after(60):
        async with open_llm(kind, script, peer, settings=settings) as llm:
            ids = await begin(llm)
            state, _ = await until(llm, ids, is_waiting)
            await llm.submit_responses(*ids, results(["c"], big))
            spoken = texts(await to_end(llm, ids, since=state.sequence_no))

    assert peer.answers[0].content == [TextBlock(text=big)]
    assert spoken == big


@requirement("llm:directory")
async def test_the_directory_knows_conversations_and_what_waits(kind: str) -> None:
    with anyio.fail_after(5):
        async with open_llm(kind, [ROUND]) as llm:
            ids = await begin(llm, "look")
            state, _ = await until(llm, ids, is_waiting)
            waiting = await llm.list_requests()
            [listed] = await llm.list_conversations()
            assert listed == await llm.get_conversation(ids[0])
            exported = await llm.export_conversation(ids[0])
            await llm.delete_conversation(ids[0])
            assert await llm.list_conversations() == []
            assert await llm.list_requests() == []
            with pytest.raises(UnknownConversation):
                await llm.export_conversation(ids[0])

    assert [(one.conversation_id, one.turn_id, one.request) for one in waiting] == [
        (*ids, request) for request in state.pending_requests
    ]
    assert (listed.first_message, listed.turns, listed.pending_requests, listed.state) == ("look", 1, 2, "open")
    assert exported.turns[0].items == state.new_output_items


@requirement("llm:end")
async def test_the_end_of_a_conversation_cancels_its_turn_and_may_be_repeated(kind: str) -> None:
    peer = Peer()
    with anyio.fail_after(5):
        async with open_llm(kind, [ROUND], peer) as llm:
            ids = await begin(llm)
            await until(llm, ids, is_waiting)
            await llm.end_conversation(ids[0])
            await llm.end_conversation(ids[0])
            state = await llm.poll_turn(*ids, 0, 0)
            info = await llm.get_conversation(ids[0])
            await peer.has_seen("closed")

    assert state.status == "cancelled"
    assert info.state == "ended"


@requirement("llm:capabilities")
async def test_capabilities_are_those_of_the_options(kind: str) -> None:
    with anyio.fail_after(5):
        async with open_llm(kind, {"resume": "none", "turns": [[{"text": "hi"}]]}) as llm:
            plain = await llm.get_capabilities()
            chosen = ConversationOptions(connector="fake", connector_options_json='{"resume": "exact"}', tools=TOOLS)
            assert (await llm.get_capabilities(chosen)).resume == "exact"
    assert (plain.resume, plain.supports_tools) == ("none", True)
