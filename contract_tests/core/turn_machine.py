"""Arbitrary interleavings of all doors of a turn, each step compared with the simple model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from contract_tests.core.turn_model import Fact, TurnModel, effect_fact, fact, fold, in_order
from contract_tests.core.turn_table import CANCELLING, RUNNING, TRANSITIONS
from harness.contract import (
    Answer,
    HostRequest,
    HostResponse,
    Item,
    OptionKind,
    Question,
    QuestionOption,
    RequestKind,
    RequestOption,
    TextBlock,
    TurnState,
    UsageInfo,
)
from harness.errors import AlreadyAnswered, InvalidArgument, PeerLost, TurnTimeout, UnknownRequest
from harness.turn import (
    RequestRaised,
    RequestWithdrawn,
    Turn,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    UsageReported,
)
from harness.turn.events import text_delta, thinking_delta

OPTIONS = [
    RequestOption(id="yes", kind=OptionKind.ALLOW_ONCE),
    RequestOption(id="no", kind=OptionKind.DENY),
]
QUESTION = Question(id="color", text="Which?", options=[QuestionOption(id="red", label="Red")])
EVERYTHING = 1_000_000

deltas = st.tuples(
    st.sampled_from(["text_delta", "thinking_delta"]), st.sampled_from(["m1", "m2"]), st.text("ab", max_size=2)
)
kinds = st.sampled_from(list(RequestKind))
orders = st.none() | st.integers(0, 5)
stop_reasons = st.sampled_from(["end_turn", "max_tokens", "max_turns", "budget", "refusal"])
reads = st.lists(
    st.one_of(
        deltas.map(lambda delta: ("delta", delta)),
        st.tuples(st.just("raise"), st.tuples(kinds, orders)),
        st.tuples(st.just("withdraw"), st.integers(0, 3)),
        st.tuples(st.just("end"), stop_reasons),
    ),
    min_size=2,
    max_size=5,
)


def request(number: int, kind: RequestKind, order: int | None, peer_request_id: str) -> HostRequest:
    return HostRequest(
        request_id=f"r{number}",
        kind=kind,
        peer_request_id=peer_request_id,
        order=order,
        tool_name="look",  # the same for all: identity is never the tool's name
        options=OPTIONS if kind == RequestKind.APPROVAL else [],
        questions=[QUESTION] if kind == RequestKind.USER_QUESTION else [],
        opened_at=number,
        expires_at=number + 1000,
    )


def answer(request: HostRequest, is_no: bool) -> HostResponse:
    """A proper answer: yes, or no (an error result, a denial, a decline)."""
    if request.kind == RequestKind.APPROVAL:
        return HostResponse(request_id=request.request_id, selected_option="deny" if is_no else "yes")
    if request.kind == RequestKind.USER_QUESTION:
        answers = [] if is_no else [Answer(question_id="color", selected=["red"])]
        return HostResponse(request_id=request.request_id, action="decline" if is_no else "accept", answers=answers)
    return HostResponse(request_id=request.request_id, content=[TextBlock(text="done")], is_error=is_no)


def bad_answer(request: HostRequest) -> HostResponse:
    """An option that was not offered, or an answer to a question that was not asked."""
    if request.kind == RequestKind.USER_QUESTION:
        return HostResponse(request_id=request.request_id, answers=[Answer(question_id="size")])
    return HostResponse(request_id=request.request_id, selected_option="maybe")


class TurnMachine(RuleBasedStateMachine):
    """`turn_class` is what is tested; `reached` counts the cells of the transition table that were seen."""

    turn_class: ClassVar[type[Turn]] = Turn
    reached: ClassVar[Counter[tuple[str, str]]] = Counter()

    @initialize(takes_at_once=st.booleans(), ends_from=st.integers(0, 30), cancels_from=st.integers(0, 30))
    def begin(self, takes_at_once: bool, ends_from: int, cancels_from: int) -> None:
        self.turn = self.turn_class(at=0)
        self.model = TurnModel()
        self.takes_at_once = takes_at_once  # as the shell does; else effects of several doors pile up
        self.ends_from, self.cancels_from = (
            ends_from,
            cancels_from,
        )  # or most turns would end before they are interesting
        self.now = 0
        self.requests = 0
        self.compared = 0
        self.seen: dict[int, Item] = {}
        self.given: list[Fact] = []
        self.final: TurnState | None = None

    # what the peer does

    @rule(read=st.lists(deltas, min_size=1, max_size=4))
    def output(self, read: list[tuple[str, str, str]]) -> None:
        with self.door("output produced"):
            self.turn.receive(*map(event_of_delta, read), at=self.tick())
            self.model.show(*merged(read))

    @rule(tokens=st.integers(0, 99))
    def usage(self, tokens: int) -> None:
        with self.door("usage reported"):
            self.turn.receive(UsageReported(UsageInfo(output_tokens=tokens)), at=self.tick())
            self.model.show(("usage", tokens))

    @rule(kind=kinds, order=orders, reuse=st.booleans())
    def raise_request(self, kind: RequestKind, order: int | None, reuse: bool) -> None:
        with self.door("request raised"):
            asked = self.new_request(kind, order, reuse)
            self.turn.receive(RequestRaised(asked), at=self.tick())
            self.model.raise_(asked)

    @precondition(lambda self: self.model.open)
    @rule(pick=st.integers(0, 9))
    def raise_again(self, pick: int) -> None:
        with self.door("open request raised again"):
            first = self.pick_open(pick)
            again = first.model_copy(update={"request_id": "never"})
            self.turn.receive(RequestRaised(again), at=self.tick())

    @precondition(lambda self: self.model.open)
    @rule(pick=st.integers(0, 9))
    def withdraw(self, pick: int) -> None:
        with self.door(f"{self.last_or_several()} withdrawn"):
            peer_id = self.pick_open(pick).peer_request_id or ""
            self.turn.receive(RequestWithdrawn(peer_id), at=self.tick())
            self.model.withdraw(peer_id)

    @rule()
    def withdraw_unknown(self) -> None:
        with self.door("unknown request withdrawn"):
            self.turn.receive(RequestWithdrawn("nobody"), at=self.tick())

    @precondition(lambda self: self.now >= self.ends_from)
    @rule(
        how=st.sampled_from(["peer says cancelled", "peer fails", "we give up", "peer ends"]), stop_reason=stop_reasons
    )
    def finish(self, how: str, stop_reason: str) -> None:
        with self.door(how):
            match how:
                case "peer ends":
                    self.turn.receive(TurnEnded(stop_reason), at=self.tick())
                    self.model.finish("completed", stop_reason, None)
                case "peer says cancelled":
                    self.turn.receive(TurnEnded("cancelled"), at=self.tick())
                    self.model.finish("cancelled", "cancelled", None)
                case "peer fails":
                    self.turn.receive(TurnFailed(PeerLost("gone")), at=self.tick())
                    self.model.finish("failed", "error", "peer_lost")
                case _:
                    self.turn.fail(TurnTimeout("too long"), self.tick())
                    self.model.finish("failed", "error", "turn_timeout", by_us=True)

    @rule(read=reads)
    def mixed_read(self, read: list[tuple[str, Any]]) -> None:
        """All events of one read: what follows an end in it is late, and only neighbours are merged."""
        events: list[TurnEvent] = []
        run: list[tuple[str, str, str]] = []
        ends_too_early = self.now < self.ends_from
        for what, value in [*(one for one in read if one[0] != "end" or not ends_too_early), ("nothing", None)]:
            if what == "delta":
                run.append(value)
                events.append(event_of_delta(value))
                continue
            self.model.show(*merged(run))
            run = []
            match what:
                case "raise":
                    asked = self.new_request(*value, reuse=False)
                    events.append(RequestRaised(asked))
                    self.model.raise_(asked)
                case "withdraw":
                    peer_id = f"p{self.requests - value}"
                    events.append(RequestWithdrawn(peer_id))
                    self.model.withdraw(peer_id)
                case "end":
                    events.append(TurnEnded(value))
                    self.model.finish("completed", value, None)
                case _:
                    pass
        self.turn.receive(*events, at=self.tick())

    # what the host and our own clock do

    @precondition(lambda self: self.model.open)
    @rule(pick=st.integers(0, 9), is_no=st.booleans())
    def respond(self, pick: int, is_no: bool) -> None:
        with self.door(f"{self.last_or_several()} answered"):
            asked = self.pick_open(pick)
            response = answer(asked, is_no)
            self.turn.respond(response, self.tick())
            is_call = asked.kind == RequestKind.TOOL_CALL
            outcome = "refused" if is_no and not is_call else "answered"
            self.model.resolve(asked.request_id, outcome, "host", is_no and is_call, response)
            self.model.deliver(asked.request_id, response.is_error)

    @precondition(lambda self: self.model.open)
    @rule(pick=st.integers(0, 9))
    def respond_badly(self, pick: int) -> None:
        with self.door("request answered badly"), pytest.raises(InvalidArgument):
            self.turn.respond(bad_answer(self.pick_open(pick)), self.tick())

    @precondition(lambda self: self.model.answers)
    @rule(pick=st.integers(0, 9), is_equal=st.booleans())
    def respond_again(self, pick: int, is_equal: bool) -> None:
        with self.door("resolved request answered"):
            request_id, first = list(self.model.answers.items())[pick % len(self.model.answers)]
            other = HostResponse(request_id=request_id, content=[TextBlock(text="something else")])
            if first is None or is_equal:
                self.turn.respond(first or other, self.tick())
            else:
                with pytest.raises(AlreadyAnswered):
                    self.turn.respond(other, self.tick())

    @rule()
    def respond_to_nothing(self) -> None:
        with pytest.raises(UnknownRequest):
            self.turn.respond(HostResponse(request_id="nobody"), self.tick())

    @precondition(lambda self: self.model.open)
    @rule(pick=st.integers(0, 9))
    def expire(self, pick: int) -> None:
        with self.door(f"{self.last_or_several()} expires"):
            asked = self.pick_open(pick)
            self.turn.expire(asked.request_id, self.tick())
            is_call = asked.kind == RequestKind.TOOL_CALL
            self.model.resolve(asked.request_id, "expired", "deadline", is_call)
            self.model.deliver(asked.request_id, is_call)

    @precondition(lambda self: self.model.answers)
    @rule(pick=st.integers(0, 9))
    def expire_resolved(self, pick: int) -> None:
        with self.door("resolved request expires"):
            self.turn.expire(list(self.model.answers)[pick % len(self.model.answers)], self.tick())

    @precondition(lambda self: self.now >= self.cancels_from)
    @rule()
    def cancel(self) -> None:
        with self.door("host cancels"):
            self.turn.cancel(self.tick())
            self.model.cancel()

    # what is looked at

    @rule()
    def take_effects(self) -> None:
        effects = [effect_fact(effect) for effect in self.turn.take_effects()]
        assert effects == self.model.effects
        self.model.effects = []
        self.given += effects

    @rule(since=st.integers(0, 60), max_items=st.integers(1, 6) | st.just(1000), upto=st.none() | st.integers(0, 60))
    def poll(self, since: int, max_items: int, upto: int | None) -> None:
        """A host may repeat an old number, lose an answer, and take small pieces."""
        visible = self.turn.head if upto is None else min(upto, self.turn.head)
        since = min(since, visible)
        state = self.turn.state(since, upto=upto, max_items=max_items)
        items = state.new_output_items
        assert [item.sequence_no for item in items] == list(range(since + 1, since + 1 + len(items)))
        assert state.sequence_no == since + len(items)
        assert state.has_more == (state.sequence_no < visible)
        assert len(items) == max_items or not state.has_more
        for item in items:
            assert self.seen.setdefault(item.sequence_no, item) == item
        self.check_at(state)

    def check_at(self, state: TurnState) -> None:
        """Everything a poll says is what items 1..N say."""
        folded = fold(self.log()[: state.sequence_no])
        assert state.status == folded.status
        assert state.stop_reason == folded.stop_reason
        assert state.usage == folded.usage
        assert state.cancel_requested == folded.cancel_requested
        assert [one.request_id for one in state.pending_requests] == in_order(folded.pending)
        assert (state.error.code if state.error else None) == folded.error_code

    @invariant()
    def the_stream_is_what_the_model_says(self) -> None:
        """What is new of it; the whole is compared once more at the end."""
        news = self.turn.items_after(self.compared)
        assert [item.sequence_no for item in news] == list(range(self.compared + 1, self.turn.head + 1))
        assert [fact(item) for item in news] == self.model.stream[self.compared :]
        self.compared = self.turn.head

    def teardown(self) -> None:
        log = self.log()
        assert [item.sequence_no for item in log] == list(range(1, len(log) + 1))
        assert [fact(item) for item in log] == self.model.stream
        assert [item.at for item in log] == sorted(item.at for item in log)

    @invariant()
    def status_is_a_function_of_two_facts(self) -> None:
        state = self.turn.state(self.turn.head)
        assert state.status == (RUNNING if self.model.status == CANCELLING else self.model.status)
        assert (state.status == "awaiting_host") == bool(self.model.open)
        assert [one.request_id for one in self.turn.open_requests] == in_order(self.model.open)
        assert self.turn.is_over == (self.model.end is not None)

    @invariant()
    def every_request_has_one_outcome_and_at_most_one_delivery(self) -> None:
        opened = Counter(f[1] for f in self.model.stream if f[0] == "request_opened")
        resolved = Counter(f[1] for f in self.model.stream if f[0] == "request_resolved")
        assert set(opened.values()) <= {1}
        assert resolved <= opened
        assert set(opened) - set(resolved) == set(self.model.open)
        assert max(Counter(self.given).values(), default=0) <= 1
        if ("interrupt",) in self.given:
            assert self.given[-1] == ("interrupt",)

    @invariant()
    def a_finished_turn_never_changes(self) -> None:
        if self.model.end is None:
            return
        state = self.turn.state(0, max_items=EVERYTHING)
        self.final = self.final or state
        assert state == self.final
        assert state.pending_requests == []
        assert state.stop_reason is not None
        assert not state.has_more

    # inside

    @contextmanager
    def door(self, what: str) -> Generator[None]:
        """One cell of the transition table: where the turn was, what happened, where it is then."""
        cell = self.model.status, what
        yield
        assert self.model.status == TRANSITIONS[cell], f"{cell} is not in the transition table"
        self.reached[cell] += 1
        if self.takes_at_once:
            self.take_effects()

    def tick(self) -> int:
        self.now += 1
        return self.now

    def log(self) -> list[Item]:
        return self.turn.items_after(0)

    def new_request(self, kind: RequestKind, order: int | None, reuse: bool) -> HostRequest:
        """A peer may name a request as one that was resolved before; ours are never reused."""
        self.requests += 1
        used = {one.peer_request_id for one in self.model.open.values()}
        peer_id = "again" if reuse and "again" not in used else f"p{self.requests}"
        return request(self.requests, kind, order, peer_id)

    def pick_open(self, pick: int) -> HostRequest:
        return list(self.model.open.values())[pick % len(self.model.open)]

    def last_or_several(self) -> str:
        return "last request" if len(self.model.open) == 1 else "one of several"


def event_of_delta(delta: tuple[str, str, str]) -> TurnEvent:
    kind, item_id, text = delta
    return (text_delta if kind == "text_delta" else thinking_delta)(text, item_id=item_id)


def merged(read: list[tuple[str, str, str]]) -> list[Fact]:
    """Neighbours of one item are one item of the stream."""
    joined: list[Fact] = []
    for kind, item_id, text in read:
        if joined and joined[-1][:2] == (kind, item_id):
            joined[-1] = kind, item_id, joined[-1][2] + text
        else:
            joined.append((kind, item_id, text))
    return joined
