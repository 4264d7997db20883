"""What is always true of a turn, over arbitrary interleavings of its doors; and that the search finds mistakes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from contract_tests.core.turn_machine import TurnMachine
from contract_tests.core.turn_table import TRANSITIONS
from contract_tests.requirements import requirement
from harness.contract import Item, RequestOutcome
from harness.contract.output import Notice
from harness.turn import Deliver, RequestWithdrawn, Turn
from harness.turn.answers import cancelled

SEARCH = settings(max_examples=140, stateful_step_count=50, database=None, deadline=None)
SEEDS = range(20, 26)
"""Two rounds reach every cell, more follow if they do not. The same everywhere, so that a finding can be repeated."""
HUNT = settings(SEARCH, phases=[Phase.generate], report_multiple_bugs=False)


@requirement(
    "R-G1",
    "turn:stream:numbered-and-complete",
    "turn:requests:one-outcome-each",
    "turn:answers:second-answer",
    "turn:status:awaiting-host-iff-open",
    "turn:end:never-changes",
    "turn:cancel:order",
    "turn:table:every-cell-reached",
)
def test_a_turn_does_what_the_model_says_and_reaches_every_cell_of_the_table() -> None:
    TurnMachine.reached.clear()
    for number in SEEDS:
        run_state_machine_as_test(seed(number)(TurnMachine), settings=SEARCH)
        if TurnMachine.reached.keys() >= TRANSITIONS.keys():
            break
    assert sorted(TRANSITIONS.keys() - TurnMachine.reached.keys()) == []


class DoubleDeliver(Turn):
    def respond(self, *args: Any, **named: Any) -> None:
        super().respond(*args, **named)
        self._effects += [effect for effect in self._effects[-1:] if isinstance(effect, Deliver)]


class LostWithdraw(Turn):
    def receive(self, *events: Any, at: int) -> None:
        super().receive(*(event for event in events if not isinstance(event, RequestWithdrawn)), at=at)


class ReusedNumber(Turn):
    def _append(self, kind: type[Item], at: int, **fields: Any) -> None:
        if self.head == 3:
            self._log.head -= 1
        super()._append(kind, at, **fields)


class LateEventLetThrough(Turn):
    def receive(self, *events: Any, at: int) -> None:
        super().receive(*events, at=at)
        if self.is_over:
            self._append(Notice, at, code="late", text="")


class DeliverBeforeInterrupt(Turn):
    def cancel(self, at: int) -> None:
        waiting = self.open_requests
        super().cancel(at)
        self._effects = [*(Deliver(request, cancelled(request)) for request in waiting), *self._effects]


class PendingAfterEnd(Turn):
    def _close_requests(self, outcome: RequestOutcome, at: int) -> None:
        if outcome == RequestOutcome.CANCELLED:
            super()._close_requests(outcome, at)


@requirement("turn:search:finds-planted-faults")
@pytest.mark.parametrize(
    "fault",
    [DoubleDeliver, LostWithdraw, ReusedNumber, LateEventLetThrough, DeliverBeforeInterrupt, PendingAfterEnd],
)
def test_the_search_finds_a_planted_fault(fault: type[Turn]) -> None:
    machine = type(f"{fault.__name__}Machine", (TurnMachine,), {"turn_class": fault})
    with pytest.raises(AssertionError):
        run_state_machine_as_test(seed(1)(machine), settings=HUNT)
