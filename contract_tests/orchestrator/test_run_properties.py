"""One result per call, whatever happens in whatever order."""

from __future__ import annotations

from collections import Counter
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract_tests.orchestrator.puppet import Puppet, Watched, settle
from contract_tests.requirements import requirement
from harness import run_to_completion, tool
from harness.contract import HostResponse, RequestOpened, RequestResolved, TextBlock
from harness.errors import PeerLost, ProviderError

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.lists(st.booleans(), min_size=1, max_size=3)),
        st.tuples(st.sampled_from(["finish", "break", "withdraw", "answer elsewhere"]), st.integers(0, 5)),
        st.tuples(st.just("settle"), st.none()),
    ),
    max_size=12,
)
ENDS = st.sampled_from(["end", "fail", "cancel turn", "cancel caller", "stop", "break a poll"])


class Work:
    """The tools: each call waits at its own gate, and notes whether it still runs."""

    def __init__(self) -> None:
        self.gates: dict[int, anyio.Event] = {}
        self.breaks: set[int] = set()
        self.running: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    async def do(self, kind: str, number: int) -> int:
        self.running[kind] += 1
        self.most[kind] = max(self.most[kind], self.running[kind])
        try:
            await self.gates[number].wait()
            if number in self.breaks:
                raise ValueError(number)
            return number
        finally:
            self.running[kind] -= 1

    def tools(self) -> list[Any]:
        @tool(read_only=True)
        async def look(number: int) -> int:
            return await self.do("look", number)

        async def touch(number: int) -> int:
            return await self.do("touch", number)

        return [look, touch]


class Play:
    """One interleaving: pulls the strings, then ends it, and lets everything come to rest in between or not."""

    def __init__(self, peer: Puppet, llm: Watched, work: Work, caller: anyio.CancelScope, stop: anyio.Event) -> None:
        self.peer, self.llm, self.work, self.caller, self.stop = peer, llm, work, caller, stop
        self.count = 0

    async def operate(self, what: str, argument: Any) -> None:
        if what == "call":
            self.call(argument)
        elif what == "settle":
            await settle()
        elif self.count:
            number = argument % self.count
            if what == "withdraw":
                self.peer.withdraw(f"c{number}")
            elif what == "answer elsewhere":
                await self.answer_elsewhere(number)
            else:
                if what == "break":
                    self.work.breaks.add(number)
                self.work.gates[number].set()

    def call(self, kinds: list[bool]) -> None:
        """A round of calls; `True` is the read-only tool."""
        numbers = range(self.count, self.count + len(kinds))
        self.count += len(kinds)
        self.work.gates.update({number: anyio.Event() for number in numbers})
        named = [("look" if kind else "touch", number) for kind, number in zip(kinds, numbers, strict=True)]
        self.peer.call(*((name, f"c{number}", f'{{"number":{number}}}') for name, number in named))

    async def answer_elsewhere(self, number: int) -> None:
        response = HostResponse(request_id=f"c{number}", content=[TextBlock(text="another host")])
        open_ids = {waiting.request.request_id for waiting in await self.llm.list_requests()}
        if response.request_id in open_ids:
            await self.llm.submit_as_another_host(response)

    async def end(self, how: str) -> None:
        match how:
            case "end":
                self.peer.end()
            case "fail":
                self.peer.fail(ProviderError("overloaded"))
            case "cancel turn":
                await self.llm.cancel_turn(*self.llm.turn)
            case "cancel caller":
                self.caller.cancel()
            case "stop":
                self.stop.set()
            case _:
                self.llm.breaks = PeerLost("broken")
                self.call([True])  # wakes the poll


async def play(operations: list[tuple[str, Any]], how: str, lag: int) -> None:
    peer, work, caller, stop = Puppet(), Work(), anyio.CancelScope(), anyio.Event()
    items: list[Any] = []

    async def run(llm: Watched) -> None:
        with caller:
            if how == "break a poll":
                with pytest.raises(PeerLost, match="broken"):
                    await run_to_completion(llm, "go", tools=work.tools(), stop=stop)
            else:
                await run_to_completion(llm, "go", tools=work.tools(), stop=stop)

    with anyio.fail_after(20):
        async with Watched(peer) as llm:
            llm.lag = lag
            async with anyio.create_task_group() as group:
                group.start_soon(run, llm)
                await peer.started.wait()
                acting = Play(peer, llm, work, caller, stop)
                for operation in operations:
                    await acting.operate(*operation)
                await acting.end(how)
            state = await llm.poll_turn(*llm.turn, since_sequence_no=0)
            items = state.new_output_items
            assert state.status in ("completed", "failed", "cancelled")
            assert await llm.list_requests() == []

    opened = [item.request.request_id for item in items if isinstance(item, RequestOpened)]
    resolutions = Counter(item.request_id for item in items if isinstance(item, RequestResolved))
    assert resolutions == Counter(opened)
    assert all(count == 1 for count in Counter(response.request_id for response in llm.submitted).values())
    assert all(count == 1 for count in Counter(response.request_id for response in peer.delivered).values())
    answered = {item.request_id for item in items if isinstance(item, RequestResolved) and item.outcome == "answered"}
    assert {response.request_id for response in peer.delivered} == answered
    assert work.running.total() == 0
    assert work.most["touch"] <= 1


@requirement("orchestrator:run:one-result-per-call")
@settings(max_examples=150)
@given(OPERATIONS, ENDS, st.integers(0, 20))
def test_each_call_gets_one_result_however_it_all_ends(operations: list[tuple[str, Any]], how: str, lag: int) -> None:
    anyio.run(play, operations, how, lag)
