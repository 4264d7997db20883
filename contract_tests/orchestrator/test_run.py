"""The loop against a real harness with a scripted peer: calls, order, cancellation, answers that are not accepted."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from connectors.fake import FakeConnector
from contract_tests.orchestrator.puppet import Puppet, Watched, settle, until
from contract_tests.requirements import requirement
from harness import run_to_completion, run_to_completion_sync, tool
from harness.contract import (
    Answer,
    AudioBlock,
    ConversationOptions,
    HostRequest,
    HostResponse,
    ImageBlock,
    Question,
    RequestKind,
    RequestResolved,
    TextBlock,
    Timeouts,
)
from harness.errors import InvalidArgument, PeerLost, ProviderError
from harness.local import LocalHarness
from harness.orchestrator.approvals import Decision
from harness.orchestrator.completion import Completion
from harness.orchestrator.lines import Line, ResponseLine
from harness.orchestrator.refusals import RefusalKind
from harness.registry import Registry
from harness.turn.events import RequestRaised


@asynccontextmanager
async def house_with(*turns: list[dict[str, Any]], **script: Any) -> AsyncGenerator[LocalHarness]:
    connector = FakeConnector({"turns": turns, **script})
    async with LocalHarness(Registry({"fake": connector}), default_connector="fake") as house:
        yield house


def calls(*named: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments} for name, arguments in named]}


def resolved(completion: Completion) -> list[str]:
    return [call.outcome for call in completion.calls]


def results(completion: Completion) -> list[str]:
    return [
        "".join(block.text for block in call.result or [] if isinstance(block, TextBlock)) for call in completion.calls
    ]


# --- the main job -------------------------------------------------------------------------------------------------


@requirement("orchestrator:run:identical-calls")
async def test_identical_calls_of_one_round_are_two_runs_with_two_results() -> None:
    drawn = iter((41, 42))

    def draw(seed: int) -> int:
        return next(drawn)

    script = [
        {"calls": [{"name": "draw", "arguments": {"seed": 1}, "id": "x"}] * 2},
        {"text": "{{results.x}}"},
    ]
    async with house_with(script) as house:
        done = await run_to_completion(house, "go", tools=[draw])
    assert sorted(results(done)) == ["41", "42"]
    assert [call.call_id for call in done.calls] == ["x", "x"]
    assert len({call.request_id for call in done.calls}) == 2
    assert (done.status, done.tool_calls, done.exit_code) == ("completed", 2, None)


def test_sync_form_opens_the_harness_itself() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    script = [[{"calls": [{"name": "add", "arguments": {"a": 1, "b": 2}, "id": "x"}]}, {"text": "{{results.x}}"}]]
    house = LocalHarness(Registry({"fake": FakeConnector(script)}), default_connector="fake")
    assert run_to_completion_sync(house, "go", tools=[add]).content == "3"


async def test_conversation_of_its_own_is_ended_and_a_foreign_one_is_not() -> None:
    async with house_with([{"text": "hi"}], repeat=True) as house:
        await run_to_completion(house, "go")
        foreign = await house.begin_conversation(ConversationOptions())
        await run_to_completion(house, "go", conversation_id=foreign)
        states = {info.conversation_id: info.state for info in await house.list_conversations()}
    assert states.pop(foreign) == "open"
    assert list(states.values()) == ["ended"]


async def test_failed_turn_is_a_completion_and_raises_only_when_asked() -> None:
    async with house_with(
        [{"text": "half"}, {"error": {"code": "provider_error", "detail": {"status": 529}}}], repeat=True
    ) as house:
        failed = await run_to_completion(house, "go")
        assert (failed.status, failed.content) == ("failed", "half")
        with pytest.raises(ProviderError) as caught:
            await run_to_completion(house, "go", check=True)
    assert caught.value.detail["status"] == 529


async def test_either_a_message_or_a_turn_is_needed() -> None:
    async with house_with([]) as house:
        with pytest.raises(InvalidArgument, match="message or the 'turn_id'"):
            await run_to_completion(house)


# --- order --------------------------------------------------------------------------------------------------------


@requirement("orchestrator:run:order")
async def test_read_only_calls_run_side_by_side() -> None:
    both = anyio.Event()
    running: list[int] = []

    @tool(read_only=True)
    async def look(number: int) -> int:
        running.append(number)
        if len(running) == 2:
            both.set()
        await both.wait()
        return number

    with anyio.fail_after(5):
        async with house_with([calls(("look", {"number": 1}), ("look", {"number": 2}))]) as house:
            done = await run_to_completion(house, "go", tools=[look])
    assert results(done) == ["1", "2"]


@requirement("orchestrator:run:order")
async def test_other_calls_run_one_after_the_other_as_the_model_asked() -> None:
    log: list[str] = []

    async def touch(number: int) -> None:
        log.append(f"begin {number}")
        await settle()
        log.append(f"end {number}")

    peer = Puppet()
    async with Watched(peer) as llm, anyio.create_task_group() as group:
        group.start_soon(finish_after_answers, peer, 3)

        async def run() -> None:
            await run_to_completion(llm, "go", tools=[touch])

        group.start_soon(run)
        await peer.started.wait()
        # they arrive in another order than the model asked
        requests = [
            HostRequest(
                kind=RequestKind.TOOL_CALL, tool_name="touch", call_id=f"c{n}", peer_request_id=f"c{n}", order=n,
                arguments_json=json.dumps({"number": n}),
            )
            for n in (2, 1, 3)
        ]  # fmt: skip
        peer.emit(*(RequestRaised(request) for request in requests))
    assert log == ["begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3"]


async def finish_after_answers(peer: Puppet, count: int) -> None:
    await peer.started.wait()
    await until(lambda: len(peer.delivered) >= count)
    peer.end()


# --- given up -----------------------------------------------------------------------------------------------------


class Sleeper:
    """A tool that never finishes by itself and notes how it ended."""

    def __init__(self) -> None:
        self.entered = anyio.Event()
        self.ends: list[str] = []

    async def sleep(self) -> str:
        self.entered.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            self.ends.append("cancelled")
            raise
        return "woke up"


@requirement("orchestrator:run:given-up-at-once")
async def test_withdrawn_call_is_cancelled_while_the_turn_goes_on() -> None:
    sleeper, peer = Sleeper(), Puppet()
    completions: list[Completion] = []

    with anyio.fail_after(5):
        async with Watched(peer) as llm, anyio.create_task_group() as group:

            async def run() -> None:
                completions.append(await run_to_completion(llm, "go", tools=[sleeper.sleep]))

            group.start_soon(run)
            await peer.started.wait()
            peer.call(("sleep", "c1", "{}"))
            await sleeper.entered.wait()
            peer.withdraw("c1")
            await until(lambda: sleeper.ends)
            assert completions == []
            peer.end()
    assert sleeper.ends == ["cancelled"]
    assert peer.delivered == []
    assert resolved(completions[0]) == ["unknown"]


@requirement("orchestrator:run:given-up-at-once")
async def test_expired_sync_call_is_left_behind_and_the_model_gets_the_deadline() -> None:
    release = threading.Event()

    def stuck() -> None:
        release.wait(10)

    with anyio.fail_after(5):
        script = [{"calls": [{"name": "stuck", "id": "x"}]}, {"text": "{{results.x}}"}]
        async with house_with(script) as house:
            options = ConversationOptions(timeouts=Timeouts(tool_ms=50))
            done = await run_to_completion(house, "go", tools=[stuck], options=options)
    release.set()
    [call] = done.calls
    assert (call.outcome, call.refusal_kind) == ("failed", RefusalKind.TIMED_OUT)
    assert "no result within 0.05 s" in (done.content or "")


@requirement("orchestrator:run:given-up-at-once")
async def test_stop_cancels_the_turn_and_its_tools_and_still_gives_a_completion() -> None:
    sleeper, stop = Sleeper(), anyio.Event()
    completions: list[Completion] = []

    with anyio.fail_after(5):
        async with house_with([{"text": "wait"}, calls(("sleep", {}))]) as house, anyio.create_task_group() as group:

            async def run() -> None:
                completions.append(await run_to_completion(house, "go", tools=[sleeper.sleep], stop=stop))

            group.start_soon(run)
            await sleeper.entered.wait()
            stop.set()
    [done] = completions
    assert (done.status, done.exit_code, done.content) == ("cancelled", 130, "wait")
    assert done.error is not None
    assert done.error.code == "cancelled"
    assert sleeper.ends == ["cancelled"]


# --- the caller ---------------------------------------------------------------------------------------------------


@requirement("orchestrator:run:caller-cancelled")
async def test_cancelled_caller_leaves_no_open_request_and_no_open_conversation() -> None:
    sleeper, peer = Sleeper(), Puppet()
    with anyio.fail_after(5):
        async with Watched(peer) as llm:
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: run_to_completion(llm, "go", tools=[sleeper.sleep]))
                await peer.started.wait()
                peer.call(("sleep", "c1", "{}"))
                await sleeper.entered.wait()
                group.cancel_scope.cancel()
            assert sleeper.ends == ["cancelled"]
            assert (peer.interrupts, peer.delivered, peer.is_closed) == (1, [], True)
            assert await llm.list_requests() == []
            [info] = await llm.list_conversations()
            assert info.state == "ended"


@requirement("orchestrator:run:caller-cancelled")
async def test_foreign_conversation_is_usable_after_the_caller_was_cancelled() -> None:
    sleeper = Sleeper()
    with anyio.fail_after(5):
        async with house_with([calls(("sleep", {}))], [{"text": "again"}]) as house:
            options = ConversationOptions(tools=[])
            foreign = await house.begin_conversation(options)
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: run_to_completion(house, "go", tools=[sleeper.sleep], conversation_id=foreign))
                await sleeper.entered.wait()
                group.cancel_scope.cancel()
            assert (await run_to_completion(house, "go", conversation_id=foreign)).content == "again"


@requirement("orchestrator:run:caller-cancelled")
async def test_broken_call_cancels_the_turn_and_is_raised() -> None:
    sleeper, peer = Sleeper(), Puppet()
    raised: list[PeerLost] = []
    error = PeerLost("the server is gone")
    with anyio.fail_after(5):
        async with Watched(peer) as llm, anyio.create_task_group() as group:

            async def run() -> None:
                with pytest.raises(PeerLost) as caught:
                    await run_to_completion(llm, "go", tools=[sleeper.sleep])
                raised.append(caught.value)

            group.start_soon(run)
            await peer.started.wait()
            peer.call(("sleep", "c1", "{}"))
            await sleeper.entered.wait()
            llm.breaks = error
            peer.call(("sleep", "c2", "{}"))
    assert raised == [error]
    assert peer.interrupts == 1
    assert peer.delivered == []


@requirement("orchestrator:run:caller-cancelled")
async def test_observer_that_raises_cancels_the_turn() -> None:
    def observe(line: Line) -> None:
        if line.type == "request":
            raise OSError("stdout is closed")

    sleeper, peer = Sleeper(), Puppet()
    with anyio.fail_after(5):
        async with Watched(peer) as llm, anyio.create_task_group() as group:

            async def run() -> None:
                with pytest.raises(OSError, match="stdout is closed"):
                    await run_to_completion(llm, "go", tools=[sleeper.sleep], on_line=observe)

            group.start_soon(run)
            await peer.started.wait()
            peer.call(("sleep", "c1", "{}"))
    assert peer.interrupts == 1


# --- answers that are not accepted --------------------------------------------------------------------------------


@requirement("orchestrator:run:rejected-answers")
async def test_result_that_cannot_be_carried_becomes_an_error_result() -> None:
    def listen() -> AudioBlock:
        return AudioBlock(data="aGk=", media_type="audio/wav")

    script = [{"calls": [{"name": "listen", "id": "x"}]}, {"text": "{{results.x}}"}]
    async with house_with(script) as house:
        done = await run_to_completion(house, "go", tools=[listen])
    assert resolved(done) == ["failed"]
    assert "cannot be passed on" in (done.content or "")
    assert "audio" in (done.content or "")


@requirement("orchestrator:run:rejected-answers")
async def test_option_that_was_not_offered_becomes_a_refusal() -> None:
    class Careless:
        async def decide(self, request: HostRequest) -> Any:
            return Decision(HostResponse(request_id=request.request_id, selected_option="yes please"))

    async with house_with([{"approval": {"tool": "Bash"}}]) as house:
        done = await run_to_completion(house, "go", approver=Careless())
    [call] = done.calls
    assert (call.outcome, call.refusal_kind) == ("refused", RefusalKind.APPROVAL_UNAVAILABLE)
    assert "not usable" in (call.refusal or "")


@requirement("orchestrator:run:rejected-answers")
async def test_answer_of_another_host_wins_and_the_late_one_is_fine() -> None:
    peer = Puppet()
    finish = anyio.Event()
    completions: list[Completion] = []

    async def stubborn() -> str:
        with anyio.CancelScope(shield=True):  # goes on although nobody waits any more
            await finish.wait()
        return "late"

    with anyio.fail_after(5):
        async with Watched(peer) as llm, anyio.create_task_group() as group:

            async def run() -> None:
                completions.append(await run_to_completion(llm, "go", tools=[stubborn]))

            group.start_soon(run)
            await peer.started.wait()
            peer.call(("stubborn", "c1", "{}"))
            await settle()
            await llm.submit_as_another_host(HostResponse(request_id="c1", content=[TextBlock(text="other")]))
            finish.set()
            await settle()
            peer.end()
    assert [response.content for response in peer.delivered] == [[TextBlock(text="other")]]
    [call] = completions[0].calls
    assert (call.outcome, call.result) == ("ok", None)


@requirement("orchestrator:results:fit")
async def test_result_is_fitted_to_what_the_connector_carries() -> None:
    def long() -> str:
        return "h" + "x" * 1000 + "t"

    def picture() -> ImageBlock:
        return ImageBlock(data="aGk=", media_type="image/png")

    capabilities = {"max_result_chars": 200, "images_in_tool_results": False}
    async with house_with([calls(("long", {}), ("picture", {}))], capabilities=capabilities) as house:
        done = await run_to_completion(house, "go", tools=[long, picture])
    assert resolved(done) == ["ok", "failed"]
    assert len(results(done)[0]) == 200
    assert "characters left out" in results(done)[0]
    assert "image/png" in results(done)[1]


# --- approvals, questions, other hosts ----------------------------------------------------------------------------


@requirement("orchestrator:questions:never-invented")
async def test_prepared_answers_reach_the_peer_and_secrets_stay_off_the_lines() -> None:
    seen: list[Any] = []
    lines: list[Line] = []
    questions = [Question(id="pin", text="PIN?", allow_free_text=True, secret=True).to_dict()]
    connector = FakeConnector([[{"question": {"questions": questions}}]], on_seen=seen.append)
    async with LocalHarness(Registry({"fake": connector}), default_connector="fake") as house:
        done = await run_to_completion(house, "go", answers={"pin": "4711"}, on_line=lines.append)
    [answer] = [one.value for one in seen if one.what == "answer"]
    assert answer.answers == [Answer(question_id="pin", text="4711")]
    assert resolved(done) == ["ok"]
    assert any(isinstance(line, ResponseLine) for line in lines)
    assert not any("4711" in line.to_json() for line in lines)


@requirement("orchestrator:approvals:modes")
@pytest.mark.parametrize(("mode", "outcome"), [("allow", "ok"), ("deny", "refused")])
async def test_approval_mode_decides(mode: str, outcome: str) -> None:
    async with house_with([{"approval": {"tool": "Bash", "arguments": {"command": "ls"}}}]) as house:
        done = await run_to_completion(house, "go", approver=mode)
    assert resolved(done) == [outcome]
    assert done.refused_tool_calls == (1 if outcome == "refused" else 0)


@requirement("orchestrator:approvals:modes")
async def test_request_left_to_another_host_is_answered_there() -> None:
    completions: list[Completion] = []
    with anyio.fail_after(5):
        async with house_with([{"approval": {"tool": "Bash"}}]) as house, anyio.create_task_group() as group:

            async def run() -> None:
                completions.append(await run_to_completion(house, "go", approver="wait"))

            group.start_soon(run)
            await settle()
            [waiting] = await house.list_requests()
            response = HostResponse(request_id=waiting.request.request_id, selected_option="deny")
            await house.submit_responses(waiting.conversation_id, waiting.turn_id, [response])
    [call] = completions[0].calls
    assert (call.outcome, call.refusal_kind) == ("refused", RefusalKind.REJECTED)


@requirement("orchestrator:run:takes-up-a-turn")
async def test_turn_that_runs_already_is_taken_up_where_it_stands() -> None:
    ran: list[int] = []

    def note(number: int) -> None:
        ran.append(number)

    with anyio.fail_after(5):
        script = [calls(("note", {"number": 1})), calls(("note", {"number": 2})), {"text": "done"}]
        async with house_with(script) as house:
            conversation_id = await house.begin_conversation(ConversationOptions())
            turn_id = await house.submit_user_message(conversation_id, [TextBlock(text="go")])
            first = await house.poll_turn(conversation_id, turn_id, 0, 5000)
            response = HostResponse(request_id=first.pending_requests[0].request_id)
            await house.submit_responses(conversation_id, turn_id, [response])
            done = await run_to_completion(house, tools=[note], conversation_id=conversation_id, turn_id=turn_id)
    assert ran == [2]
    assert (done.content, resolved(done)) == ("done", ["ok", "ok"])


@requirement("orchestrator:run:one-result-per-call")
async def test_unknown_tool_and_bad_arguments_are_answered_and_the_turn_goes_on() -> None:
    def note(number: int) -> None: ...

    async with house_with([calls(("note", {}), ("other", {})), {"text": "done"}]) as house:
        items: list[Any] = []
        done = await run_to_completion(house, "go", tools=[note], on_item=items.append)
    assert resolved(done) == ["failed", "failed"]
    assert done.calls[0].refusal_kind == RefusalKind.INVALID_ARGUMENTS
    assert done.content == "done"
    assert sum(isinstance(item, RequestResolved) for item in items) == 2
