"""Any host against any peer, over the real conversation: one outcome per request, nothing pending, nobody hangs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio.lowlevel
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.fake import Seen
from contract_tests.core.conversations import STORES, kinds, open_house
from contract_tests.core.turn_model import fold
from contract_tests.llm_suite import WAIT_MS, Peer, begin, is_over, say, until
from contract_tests.requirements import requirement
from harness.contract import (
    Answer,
    HostRequest,
    HostResponse,
    OutputItem,
    RequestKind,
    RequestOpened,
    RequestResolved,
    Timeouts,
    TurnState,
    as_content,
)
from harness.errors import AlreadyAnswered, HarnessError, InvalidArgument, UnknownRequest
from harness.local import LocalHarness
from harness.settings import Settings

styles = st.sampled_from(["emit", "ask"])
calls = st.lists(
    st.sampled_from([{"name": "clock", "id": "x"}, {"name": "clock", "id": "y"}, {"name": "clock"}]),
    min_size=1,
    max_size=3,
)
raising = {"wait": st.booleans(), "style": styles}
steps = st.one_of(
    st.builds(lambda text: {"text": text}, st.lists(st.text("ab"), min_size=1, max_size=3)),
    st.fixed_dictionaries({"calls": calls, **raising}),
    st.fixed_dictionaries({"approval": st.just({"tool": "Bash", "call_id": "b"}), **raising}),
    st.fixed_dictionaries({"question": st.just({"questions": [{"id": "q", "text": "?"}]}), **raising}),
    st.sampled_from(
        [
            {"withdraw": "x"},
            {"withdraw": "y"},
            {"wait": "all"},
            {"delay_seconds": 0.002},
            {"internal_tool": {"name": "Bash", "call_id": "b"}},
            {"usage": {"output_tokens": 1}},
        ]
    ),
)
endings = st.sampled_from(
    [
        [],
        [{"end": "max_tokens"}],
        [{"end": "end_turn"}, {"text": "a late event"}, {"calls": [{"name": "clock"}], "wait": False}],
        [{"error": {"code": "provider_error"}}],
        [{"die": "now"}],
        [{"die": "later"}],
        [{"hang": True}],
    ]
)
on_interrupt = st.sampled_from(
    [
        [{"end": "cancelled"}],
        [{"end": "end_turn"}],
        [{"text": "last words"}, {"calls": [{"name": "clock", "id": "late"}]}, {"end": "end_turn"}],
        [{"error": {"code": "provider_error"}}],
        [{"die": "now"}],
        [],
    ]
)
timeouts = st.builds(
    Timeouts,
    tool_ms=st.sampled_from([None, None, 1, 4]),
    approval_ms=st.sampled_from([None, None, 3]),
    turn_ms=st.sampled_from([None, None, None, 6]),
)
deeds = st.lists(
    st.sampled_from(["first", "last", "all", "no", "bad", "unknown", "again", "other", "look", "wait", "cancel"]),
    max_size=12,
)


@dataclass
class Host:
    """Follows its plan; when that is over it answers everything, and cancels what would never end."""

    llm: LocalHarness
    ids: tuple[str, str]
    plan: list[str]
    stream: dict[int, OutputItem] = field(default_factory=dict[int, OutputItem])
    given: dict[str, HostResponse] = field(default_factory=dict[str, HostResponse])
    since: int = 0

    async def play(self) -> TurnState:
        state = await self.poll(0)
        while not is_over(state):
            if self.plan:
                deed = self.plan.pop(0)
                await self.do(deed, state)
                state = await self.poll(3 if deed == "wait" else 0)
            else:
                await self.answer(state.pending_requests)
                state = await self.poll(WAIT_MS)
        return state

    async def poll(self, max_wait_ms: int) -> TurnState:
        state = await self.llm.poll_turn(*self.ids, self.since, max_wait_ms)
        for item in state.new_output_items:
            assert self.stream.setdefault(item.sequence_no, item) == item
        assert list(self.stream) == list(range(1, state.sequence_no + 1))
        folded = fold(list(self.stream.values()))
        assert state.status == folded.status
        assert sorted(one.request_id for one in state.pending_requests) == sorted(folded.pending)
        self.since = state.sequence_no
        return state

    async def do(self, deed: str, state: TurnState) -> None:
        waiting = state.pending_requests
        match deed:
            case "first" | "no" if waiting:
                await self.answer(waiting[:1], is_no=deed == "no")
            case "last" if waiting:
                await self.answer(waiting[-1:])
            case "all":
                await self.answer(waiting)
            case "bad" if waiting:
                await self.answer_badly(waiting[0])
            case "unknown":
                await self.refused(HostResponse(request_id="nobody"), UnknownRequest)
            case "again" if self.given:
                await self.llm.submit_responses(*self.ids, [list(self.given.values())[-1]])
            case "other" if self.given:
                await self.answer_differently()
            case "look":
                self.since = 0
                await self.poll(0)
            case "cancel":
                await self.llm.cancel_turn(*self.ids)
                await self.llm.cancel_turn(*self.ids)
            case _:
                await anyio.lowlevel.checkpoint()

    async def answer(self, requests: list[HostRequest], *, is_no: bool = False) -> None:
        """It may be too late for any of them, and that is no error."""
        responses = [answer_to(request, is_no) for request in requests]
        self.given.update({one.request_id: self.given.get(one.request_id, one) for one in responses})
        await self.llm.submit_responses(*self.ids, [self.given[one.request_id] for one in responses])

    async def answer_badly(self, request: HostRequest) -> None:
        is_question = request.kind == RequestKind.USER_QUESTION
        wrong: Any = {"answers": [Answer(question_id="?")]} if is_question else {"selected_option": "maybe"}
        await self.refused(HostResponse(request_id=request.request_id, **wrong), InvalidArgument | AlreadyAnswered)

    async def answer_differently(self) -> None:
        await self.refused(HostResponse(request_id=list(self.given)[-1], reason="other"), AlreadyAnswered)

    async def refused(self, response: HostResponse, error: Any) -> None:
        """Refused, unless the request was resolved without an answer of the host meanwhile."""
        try:
            await self.llm.submit_responses(*self.ids, [response])
        except HarnessError as found:
            assert isinstance(found, error)
        else:
            assert response.request_id != "nobody"


@contextmanager
def errors_logged() -> Generator[list[str]]:
    """What the harness logs as an error: a peer that was told something twice or out of turn would complain there."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(record.getMessage())
    logger = logging.getLogger("harness")
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)


def answer_to(request: HostRequest, is_no: bool) -> HostResponse:
    if request.kind == RequestKind.APPROVAL:
        return HostResponse(request_id=request.request_id, selected_option="deny" if is_no else "allow_once")
    if request.kind == RequestKind.USER_QUESTION:
        return HostResponse(request_id=request.request_id, action="decline")
    return HostResponse(request_id=request.request_id, content=as_content("noon"), is_error=is_no)


@requirement("R-G1", "R-G2", "conversation:any-host-any-peer")
@settings(max_examples=400)
@given(
    script=st.lists(steps, max_size=7),
    ending=endings,
    on_interrupt=on_interrupt,
    style=styles,
    timeouts=timeouts,
    plan=deeds,
    store=st.sampled_from(list(STORES)),
)
async def test_every_request_has_one_outcome_and_at_most_one_delivery_and_the_next_turn_is_clean(
    script: list[Any],
    ending: list[Any],
    on_interrupt: list[Any],
    style: str,
    timeouts: Timeouts,
    plan: list[str],
    store: str,
) -> None:
    peer = Peer()
    whole = {"style": style, "turns": [[*script, *ending], [{"text": "next"}]], "on_interrupt": on_interrupt}
    ends_alone = ending != [{"hang": True}]
    limits = Settings(interrupt_seconds=2, settle_seconds=2)
    with errors_logged() as logged:
        async with open_house(whole, peer, store=STORES[store](), settings=limits) as llm:
            ids = await begin(llm, timeouts=timeouts)
            host = Host(llm, ids, plan if ends_alone else [*plan, "wait", "all", "cancel"])
            final = await host.play()
            until_end = len(peer.seen)
            following = ids[0], await say(llm, ids[0])
            _, clean = await until(llm, following, is_over)

    check_stream(list(host.stream.values()), final)
    check_peer(peer.seen[:until_end], list(host.stream.values()))
    if timeouts.turn_ms is None:  # on a busy machine even one word may take longer
        assert kinds(clean) == ["text_delta", "turn_ended"]
    assert logged == []


def check_stream(items: list[OutputItem], final: TurnState) -> None:
    opened = Counter(item.request.request_id for item in items if isinstance(item, RequestOpened))
    resolved = Counter(item.request_id for item in items if isinstance(item, RequestResolved))
    assert opened == resolved
    assert set(opened.values()) <= {1}
    assert final.pending_requests == []
    assert kinds(items).count("turn_ended") == 1
    assert items[-1].kind == "turn_ended"
    assert final.error is None or final.error.code in ("provider_error", "peer_lost", "turn_timeout", "loop_guard")
    if final.cancel_requested:
        assert final.status == "cancelled"


def check_peer(seen: list[Seen], items: list[OutputItem]) -> None:
    """The peer got each answer at most once, none of another request, and none of the host after its interrupt."""
    of_host = [one.value.request_id if isinstance(one.value, HostResponse) else "" for one in seen]
    delivered = Counter(request_id for request_id in of_host if request_id)
    assert set(delivered.values()) <= {1}
    answered = {
        item.request_id
        for item in items
        if isinstance(item, RequestResolved) and item.outcome in ("answered", "refused", "expired")
    }
    assert set(delivered) <= answered
    whats = [one.what for one in seen]
    assert whats.count("interrupt") <= 1
    if "interrupt" in whats:
        assert not any(of_host[whats.index("interrupt") :])
