"""The suite's own test: a connector whose events or answers are spoilt in one place, which the scenarios should notice.

A mutant drops, doubles, delays, swaps or corrupts the n-th event a session emits, or the n-th answer it is given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import anyio

from harness.connector import Connector, Session, SessionLog, TurnSink
from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock, TextBlock
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostRequest, HostResponse
from harness.errors import HarnessError, Internal
from harness.testing.checks import Divergence
from harness.testing.scenario import Scenario
from harness.turn.events import (
    OutputProduced,
    RequestRaised,
    RequestWithdrawn,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    UsageReported,
)

Change: TypeAlias = Literal["drop", "double", "delay", "swap", "corrupt"]
Door: TypeAlias = Literal["event", "answer"]
CHANGES: tuple[Change, ...] = ("drop", "double", "delay", "swap", "corrupt")
MARK = "[spoilt]"
ASKED = "asked"
"""A request whose session waits for the answer itself."""


@dataclass(frozen=True)
class Mutation:
    """What happens to the n-th event or answer, from 0, that passes a door. `delay`: behind all others of its turn."""

    door: Door
    number: int
    change: Change


@dataclass
class Passage:
    """Counts what passed; `kinds` are those of the events, so that a run without a mutation tells what there is."""

    mutation: Mutation | None = None
    events: list[str] = field(default_factory=list[str])
    answers: list[str] = field(default_factory=list[str])
    """How each came in: `delivered`, or `asked` where a session waited for it."""
    has_struck: bool = False

    def strikes(self, door: Door, number: int) -> Change | None:
        if self.mutation is None or (self.mutation.door, self.mutation.number) != (door, number):
            return None
        self.has_struck = True
        return self.mutation.change


class MutatedConnector:
    """A connector whose sessions are spoilt in one place."""

    def __init__(self, connector: Connector, passage: Passage) -> None:
        self._connector = connector
        self._passage = passage
        self.name = connector.name
        self.variants = connector.variants
        self.restricted_options = connector.restricted_options

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        return await self._connector.get_capabilities(options)

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        async with self._connector.open_session(options, delegation, log) as session:
            yield _MutatedSession(session, self._passage)


class _MutatedSession:
    def __init__(self, session: Session, passage: Passage) -> None:
        self._session = session
        self._passage = passage

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        spoilt = _MutatedSink(sink, self._passage)
        await self._session.run_turn(content, options, spoilt)
        spoilt.release()

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        spoilt = _MutatedSink(sink, self._passage)
        await self._session.resume_turn(options, spoilt)
        spoilt.release()

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        change = self._passage.strikes("answer", len(self._passage.answers))
        self._passage.answers.append("delivered")
        if change == "drop":
            return
        self._session.deliver(request, _corrupted_answer(response) if change == "corrupt" else response)
        if change == "double":
            self._session.deliver(request, response)

    async def interrupt(self) -> None:
        await self._session.interrupt()


class _MutatedSink:
    def __init__(self, sink: TurnSink, passage: Passage) -> None:
        self._sink = sink
        self._passage = passage
        self._held: list[tuple[Change, TurnEvent]] = []

    def emit(self, *events: TurnEvent) -> None:
        passed: list[TurnEvent] = []
        for event in events:
            change = self._passage.strikes("event", len(self._passage.events))
            self._passage.events.append(kind_of(event))
            if change in ("delay", "swap"):
                self._held.append((change, event))
                continue
            passed += _changed(event, change)
            passed += [held for how, held in self._held if how == "swap"]
            self._held = [one for one in self._held if one[0] != "swap"]
        if passed:
            self._sink.emit(*passed)

    def release(self) -> None:
        """What was held back to the end of the turn."""
        held, self._held = self._held, []
        if held:
            self._sink.emit(*(event for _, event in held))

    def ask(self, request: HostRequest) -> AbstractAsyncContextManager[HostResponse]:
        return self._asked(request)

    @asynccontextmanager
    async def _asked(self, request: HostRequest) -> AsyncGenerator[HostResponse]:
        """What is dropped is waited for in vain."""
        change = self._passage.strikes("event", len(self._passage.events))
        self._passage.events.append(ASKED)
        if change == "drop":
            await anyio.sleep_forever()
        if change == "double":
            async with self._sink.ask(request):
                pass
        if change == "corrupt":
            request = _corrupted_request(request)
        async with self._sink.ask(request) as response:
            change = self._passage.strikes("answer", len(self._passage.answers))
            self._passage.answers.append(ASKED)
            if change == "drop":
                await anyio.sleep_forever()
            yield _corrupted_answer(response) if change == "corrupt" else response


def kind_of(event: TurnEvent) -> str:
    """The kind of the item it produces, else what it is."""
    return str(event.item.model_fields["kind"].default) if isinstance(event, OutputProduced) else type(event).__name__


def mutations_of(passage: Passage) -> list[Mutation]:
    """Every mutation of what passed in a run; who asks waits, so that neither order nor number can change."""
    found: list[Mutation] = []
    for number, kind in enumerate(passage.events):
        changes: Sequence[Change] = ("drop", "double", "corrupt") if kind == ASKED else CHANGES
        found += [Mutation("event", number, change) for change in changes]
    for number, way in enumerate(passage.answers):
        changes = ("drop", "corrupt") if way == ASKED else ("drop", "double", "corrupt")
        found += [Mutation("answer", number, change) for change in changes]
    return found


def _changed(event: TurnEvent, change: Change | None) -> list[TurnEvent]:
    match change:
        case "drop":
            return []
        case "double":
            return [event, event]
        case "corrupt":
            return [_corrupted(event)]
        case _:
            return [event]


def _corrupted(event: TurnEvent) -> TurnEvent:
    """The event with one value that is wrong."""
    match event:
        case RequestRaised(request=request):
            return RequestRaised(_corrupted_request(request))
        case RequestWithdrawn():
            return RequestWithdrawn(MARK)
        case UsageReported(usage=usage):
            return UsageReported(usage.model_copy(update={"input_tokens": 7, "output_tokens": 7, "model_calls": 7}))
        case TurnEnded(stop_reason=reason):
            return dataclasses.replace(event, stop_reason="refusal" if reason != "refusal" else "end_turn")  # pyright: ignore[reportArgumentType]
        case TurnFailed():
            return TurnFailed(Internal(MARK))
        case OutputProduced(fields=fields):
            return dataclasses.replace(event, fields={**fields, **_wrong(fields)})
        case _:
            return event


def _corrupted_request(request: HostRequest) -> HostRequest:
    return request.model_copy(update={"arguments_json": '{"spoilt":true}', "tool_name": MARK})


def _wrong(fields: Mapping[str, Any]) -> dict[str, Any]:
    """One field of an item, spoilt."""
    for name in ("result", "code", "text", "reason", "tool_name"):
        if fields.get(name) is not None:
            return {name: MARK}
    return {"content": [TextBlock(text=MARK)]} if "content" in fields else {"item_id": MARK}


def _corrupted_answer(response: HostResponse) -> HostResponse:
    if response.selected_option is not None:
        other = "deny" if response.selected_option != "deny" else "allow_once"
        return response.model_copy(update={"selected_option": other})
    if response.answers:
        return response.model_copy(update={"answers": []})
    return response.model_copy(update={"content": [TextBlock(text=MARK)], "action": None})


@dataclass(frozen=True)
class Survivor:
    """A mutant that neither the scenario nor its trace noticed."""

    scenario: str
    kind: str
    mutation: Mutation

    def __str__(self) -> str:
        return f"{self.scenario}: {self.mutation.change} {self.kind} (number {self.mutation.number})"


@dataclass
class Tally:
    """What became of all mutants."""

    by_scenario: int = 0
    """A claim of the scenario did not hold, or it hung."""
    by_trace: int = 0
    """Only the canonical trace differed from that of the run without a mutation."""
    survivors: list[Survivor] = field(default_factory=list[Survivor])


Play: TypeAlias = Callable[[Scenario, Passage, float], Awaitable[Sequence[str]]]
"""Plays a scenario through the passage, within so many seconds, and gives its trace."""


async def try_mutants(scenarios: Iterable[Scenario], play: Play, *, seconds: float, at_once: int = 16) -> Tally:
    """Every mutation of every event and answer of these scenarios, each in a run of its own."""
    tally, limit = Tally(), anyio.CapacityLimiter(at_once)

    async def run(scenario: Scenario, usual: Passage, trace: Sequence[str], mutation: Mutation) -> None:
        async with limit:
            kind = usual.events[mutation.number] if mutation.door == "event" else "answer"
            try:
                found = await play(scenario, Passage(mutation), seconds)
            except (Divergence, HarnessError):
                tally.by_scenario += 1
                return
            if [*found] != [*trace]:
                tally.by_trace += 1
            else:
                tally.survivors.append(Survivor(scenario.name, kind, mutation))

    async with anyio.create_task_group() as tasks:
        for scenario in scenarios:
            usual = Passage()
            trace = await play(scenario, usual, scenario.seconds)
            for mutation in mutations_of(usual):
                tasks.start_soon(run, scenario, usual, trace, mutation)
    return tally
