"""A process that dies at any write of a three-round turn: the next one goes on exactly where the journal stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest

from contract_tests.core.scripted_chat_model import (
    ScriptedChatModel,
    ScriptedConnector,
    Talk,
    answered,
    calls,
    says,
)
from contract_tests.requirements import requirement
from harness.contract import (
    ConversationOptions,
    HostRequest,
    HostResponse,
    Message,
    RequestOpened,
    ToolDescriptor,
    TurnStatus,
)
from harness.local import LOCAL_OWNER, LocalHarness
from harness.model_loop import ModelAnswer, ModelRequest, ToolMessage, UserMessage
from harness.registry import Registry
from harness.store.memory import MemoryStore
from harness.store.port import ConversationRecord, Entry, Summary, TurnBegun

LOOK = ToolDescriptor(name="look")


@dataclass(frozen=True)
class CrashPoint:
    """What is durable after a write, and what the host had been promised by then."""

    record: ConversationRecord
    entries: Sequence[Entry]
    accepted: dict[str, str]
    opened: tuple[str, ...]


class WatchedStore(MemoryStore):
    """Notes the state after every write."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[CrashPoint] = []
        self.accepted: dict[str, str] = {}
        self.opened: list[str] = []

    async def append(self, conversation_id: str, epoch: int, entries: Sequence[Entry], summary: Summary) -> None:
        await super().append(conversation_id, epoch, entries, summary)
        record = await self.find(conversation_id, LOCAL_OWNER)
        assert record is not None
        kept = await self.entries(conversation_id)
        self.points.append(CrashPoint(record, kept, dict(self.accepted), tuple(self.opened)))


def three_rounds(request: ModelRequest) -> ModelAnswer:
    """What the model says is a function of what it is told, so a restarted call says the same."""
    rounds = sum(isinstance(message, ToolMessage) for message in request.messages)
    match rounds:
        case 0:
            return calls(("c1", "look", "{}"), ("c2", "look", "{}"), text="first", usage=(10, 1))
        case 1:
            return calls(("c3", "look", '{"x":1}'), usage=(10, 1))
        case 2:
            return calls(("c4", "look", '{"x":2}'), ("c5", "unknown", "{}"), text="third", usage=(10, 1))
        case _:
            return says("done", usage=(10, 1))


def model() -> ScriptedChatModel:
    return ScriptedChatModel(*[three_rounds] * 20)


async def undisturbed_run() -> WatchedStore:
    store = WatchedStore()
    async with LocalHarness(Registry({"scripted": ScriptedConnector(model())}), store=store) as house:
        options = ConversationOptions(connector="scripted", tools=[LOOK], client_key="the one")
        talk = Talk(house, await house.begin_conversation(options))
        turn = await talk.begin()
        while (
            state := await talk.until(turn, lambda s: bool(s.pending_requests) or s.status == "completed")
        ).pending_requests:
            for request in state.pending_requests:
                store.opened.append(request.request_id)
                text = f"first life, {request.call_id}"
                await talk.answer(turn, answered(request, text))
                store.accepted[request.request_id] = text
    return store


async def second_life(point: CrashPoint) -> tuple[ScriptedChatModel, Talk, list[str]]:
    """A new process on what was durable; it finishes the turn, its host answers in its own words."""
    dead = MemoryStore()
    async with dead:
        _, epoch = await dead.create(point.record)
        assert epoch is not None
        await dead.append(point.record.conversation_id, epoch, point.entries, point.record.summary)
    peer = model()
    reopened: list[str] = []

    def tool(request: HostRequest) -> HostResponse:
        reopened.append(request.request_id)
        return answered(request, f"second life, {request.call_id}")

    async with LocalHarness(Registry({"scripted": ScriptedConnector(peer)}), store=MemoryStore(dead)) as house:
        talk = Talk(house, point.record.conversation_id)
        state = await talk.finish("t1", tool)
        assert state.status == TurnStatus.COMPLETED, state.error
        said = [item.content[0] for item in state.new_output_items if isinstance(item, Message)]
        assert [getattr(block, "text", "") for block in said] == ["first", "third", "done"]
        opened = [item.request.request_id for item in state.new_output_items if isinstance(item, RequestOpened)]
        assert opened == ["c1", "c2", "c3", "c4"], "a request is opened once, whatever happens"
        assert state.usage is not None and state.usage.model_calls == 4
        await talk.run("next")
    return peer, talk, reopened


@requirement("model-loop:resume:exact")
async def test_a_turn_killed_at_any_write_goes_on_without_losing_or_repeating_a_call() -> None:
    store = await undisturbed_run()
    begun = [point for point in store.points if point.record.summary.turn_is_running]
    assert len(begun) >= 7
    for point in begun:
        peer, _, reopened = await second_life(point)
        peer.check_pairs()
        last = peer.requests[-1]
        assert [type(m) for m in last.messages].count(UserMessage) == 2
        results = {
            result.call_id: getattr(result.content[0], "text", "")
            for message in last.messages
            if isinstance(message, ToolMessage)
            for result in message.results
        }
        assert sorted(results) == ["c1", "c2", "c3", "c4", "c5"]
        for request_id, text in point.accepted.items():
            assert results[request_id] == text, "an accepted answer is never lost"
            assert request_id not in reopened, "and never asked for again"
        for call_id, text in results.items():
            assert call_id in reopened or call_id == "c5" or text == f"first life, {call_id}"


@requirement("model-loop:resume:exact")
@pytest.mark.parametrize("answer_first", [True, False])
async def test_an_open_request_survives_under_its_id_and_may_be_cancelled_instead(answer_first: bool) -> None:
    store = await undisturbed_run()
    open_two = [point for point in store.points if len(point.record.summary.open_requests) == 2]
    point = replace(open_two[0], accepted={})
    dead = MemoryStore()
    async with dead:
        _, epoch = await dead.create(point.record)
        assert epoch is not None
        await dead.append(point.record.conversation_id, epoch, point.entries, point.record.summary)
    peer = model()
    async with LocalHarness(Registry({"scripted": ScriptedConnector(peer)}), store=MemoryStore(dead)) as house:
        talk = Talk(house, point.record.conversation_id)
        first, _ = await talk.pending("t1", 2)
        assert first.request_id == "c1"
        if answer_first:
            await talk.answer("t1", answered(first, "seen"))
        await house.cancel_turn(talk.conversation_id, "t1")
        assert (await talk.finish("t1")).status == TurnStatus.CANCELLED
        assert peer.requests == []
        await talk.run("next")
    peer.check_pairs()
    (results,) = [m.results for m in peer.requests[0].messages if isinstance(m, ToolMessage)]
    texts = [getattr(result.content[0], "text", "") for result in results]
    assert texts[0] == ("seen" if answer_first else "The turn was cancelled by the host.")


@requirement("model-loop:resume:exact")
async def test_a_turn_that_never_reached_its_session_begins() -> None:
    store = await undisturbed_run()
    first = store.points[0]
    only_begun = [entry for entry in first.entries if isinstance(entry, TurnBegun)]
    _, talk, _ = await second_life(replace(first, entries=only_begun, accepted={}))
    assert len(talk.opened) == 4
