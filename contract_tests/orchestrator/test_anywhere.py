"""The same loop in process and over HTTP: the tools run here, wherever the harness is."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from contract_tests.llm_suite import KINDS, Peer, open_llm
from contract_tests.orchestrator.puppet import settle
from contract_tests.requirements import requirement
from harness import run_to_completion
from harness.contract import AudioBlock
from harness.orchestrator.completion import Completion
from harness.orchestrator.opening import open_conversation


def results(completion: Completion) -> list[Any]:
    return [block.to_dict().get("text") for call in completion.calls for block in call.result or []]


@requirement("orchestrator:run:identical-calls")
@pytest.mark.parametrize("kind", KINDS)
async def test_identical_parallel_calls_a_failure_and_a_further_round(kind: str) -> None:
    drawn = iter((41, 42))

    def draw(seed: int) -> int:
        return next(drawn)

    def fail() -> None:
        raise RuntimeError("no luck")

    call = {"name": "draw", "arguments": {"seed": 1}}
    script = [
        [{"calls": [call, call, {"name": "fail"}]}, {"calls": [{"name": "fail", "id": "f"}]}, {"text": "{{results.f}}"}]
    ]
    peer = Peer()
    with anyio.fail_after(20):
        async with open_llm(kind, script, peer) as llm:
            done = await run_to_completion(llm, "go", tools=[draw, fail])
    assert results(done) == ["41", "42", "RuntimeError: no luck", "RuntimeError: no luck"]
    assert [call.outcome for call in done.calls] == ["ok", "ok", "failed", "failed"]
    assert "RuntimeError: no luck" in (done.content or "")
    assert [response.is_error for response in peer.answers] == [False, False, True, True]


@requirement("orchestrator:conversation:stream")
@pytest.mark.parametrize("kind", KINDS)
async def test_stream_left_early_cancels_and_the_conversation_goes_on(kind: str) -> None:
    script = [[{"text": "one"}, {"hang": True}], [{"text": "two"}]]
    with anyio.fail_after(20):
        async with open_llm(kind, script) as llm, open_conversation(llm) as conversation:
            async for _ in conversation.stream("go"):
                break
            assert (await conversation.ask("next")).content == "two"


@requirement("orchestrator:run:caller-cancelled")
@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_caller_leaves_nothing_open(kind: str) -> None:
    entered = anyio.Event()

    async def sleep() -> None:
        entered.set()
        await anyio.sleep_forever()

    peer = Peer()
    with anyio.fail_after(20):
        async with open_llm(kind, [[{"calls": [{"name": "sleep"}]}]], peer) as llm:
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: run_to_completion(llm, "go", tools=[sleep]))
                await entered.wait()
                group.cancel_scope.cancel()
            assert await llm.list_requests() == []
            assert [info.state for info in await llm.list_conversations()] == ["ended"]
            await settle()
    assert sum(seen.what == "interrupt" for seen in peer.seen) == 1


@requirement("orchestrator:run:rejected-answers")
@pytest.mark.parametrize("kind", KINDS)
async def test_rejected_result_becomes_an_error_result(kind: str) -> None:
    def listen() -> AudioBlock:
        return AudioBlock(data="aGk=", media_type="audio/wav")

    with anyio.fail_after(20):
        async with open_llm(kind, [[{"calls": [{"name": "listen", "id": "x"}]}, {"text": "{{results.x}}"}]]) as llm:
            done = await run_to_completion(llm, "go", tools=[listen])
    assert [call.outcome for call in done.calls] == ["failed"]
    assert "cannot be passed on" in (done.content or "")
