"""Limits that the peer does not keep itself, and denials that change nothing: seen in the stream alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.contract import (
    HostRequest,
    Limits,
    ModelUsage,
    RequestKind,
    RequestOutcome,
    StopReason,
    UsageInfo,
)
from harness.contract.output import (
    InternalToolStarted,
    Item,
    Message,
    Notice,
    RequestOpened,
    RequestResolved,
    TextDelta,
    Usage,
)
from harness.conversation.limit_watch import SAME_DENIALS, SAME_FAILURES, Finding, LimitWatch
from harness.conversation.prices import priced
from harness.errors import LoopGuard
from harness.settings import Price
from harness.turn.events import OutputProduced


def numbered(*items: tuple[type[Item], dict[str, Any]]) -> list[Item]:
    return [kind(sequence_no=number, at=number, **fields) for number, (kind, fields) in enumerate(items, 1)]


def used(**figures: Any) -> tuple[type[Item], dict[str, Any]]:
    return Usage, {"usage": UsageInfo(**figures)}


DELTA = (TextDelta, {"text": "more"})
MESSAGE = (Message, {"content": []})


def findings(
    limits: Limits, *items: tuple[type[Item], dict[str, Any]], earlier: UsageInfo | None = None
) -> list[Finding]:
    return list(LimitWatch(limits, earlier).see(numbered(*items)))


def told(found: Iterable[Finding]) -> list[str]:
    return [one.fields["text"] for one in found if isinstance(one, OutputProduced)]


@requirement("limits:budget")
@pytest.mark.parametrize("goes_on", [DELTA, (InternalToolStarted, {"call_id": "1", "tool_name": "x"})])
def test_turn_stops_when_its_peer_goes_on_without_budget(goes_on: tuple[type[Item], dict[str, Any]]) -> None:
    limits = Limits(token_budget=100)
    assert StopReason.BUDGET not in findings(limits, used(input_tokens=60, output_tokens=40), MESSAGE)
    assert findings(limits, used(input_tokens=60, output_tokens=40), MESSAGE, goes_on, DELTA)[-1] == StopReason.BUDGET
    assert findings(limits, used(input_tokens=60, output_tokens=39), goes_on)[-1:] != [StopReason.BUDGET]


@requirement("limits:budget")
def test_budgets_count_what_the_conversation_used_before() -> None:
    earlier = UsageInfo(input_tokens=90, cost_usd=0.5)
    assert findings(Limits(token_budget=100), used(output_tokens=10), DELTA, earlier=earlier)[-1] == StopReason.BUDGET
    assert findings(Limits(cost_budget_usd=1), used(cost_usd=0.5), DELTA, earlier=earlier)[-1] == StopReason.BUDGET
    assert LimitWatch(Limits(token_budget=90), earlier).exhausted == StopReason.BUDGET
    assert LimitWatch(Limits(token_budget=91), earlier).exhausted is None


@requirement("limits:rounds")
def test_rounds_count_per_turn() -> None:
    earlier = UsageInfo(model_calls=10)
    assert findings(Limits(max_turns=2), used(model_calls=2), DELTA, earlier=earlier)[-1] == StopReason.MAX_TURNS
    assert findings(Limits(max_turns=2), used(model_calls=1), DELTA, earlier=earlier) == []


@requirement("limits:near")
def test_four_fifths_of_a_limit_are_told_once() -> None:
    watch = LimitWatch(Limits(token_budget=100, max_turns=10))
    first = list(watch.see(numbered(used(input_tokens=79, model_calls=8))))
    assert told(first) == ["8 of 'max_turns' 10 are used"]
    again = list(watch.see(numbered(used(input_tokens=85, model_calls=9))))
    assert told(again) == ["85 of 'token_budget' 100 are used"]
    assert list(watch.see(numbered(used(input_tokens=90, model_calls=9)))) == []


@requirement("limits:near")
def test_what_the_peer_told_itself_is_not_told_again() -> None:
    by_peer = (Notice, {"code": "limit_near", "text": "85 of 'token_budget' 100 are used"})
    assert findings(Limits(token_budget=100), used(input_tokens=85), by_peer) == []


def asked(request_id: str, kind: RequestKind, arguments: str = '{"a": 1}') -> tuple[type[Item], dict[str, Any]]:
    request = HostRequest(request_id=request_id, kind=kind, tool_name="Bash", arguments_json=arguments)
    return RequestOpened, {"request": request}


def answered(request_id: str, outcome: RequestOutcome, *, is_error: bool = False) -> tuple[type[Item], dict[str, Any]]:
    return RequestResolved, {"request_id": request_id, "outcome": outcome, "is_error": is_error}


def denied_in_turn(times: int, arguments: Sequence[str] = ('{"a": 1}',)) -> list[tuple[type[Item], dict[str, Any]]]:
    items: list[tuple[type[Item], dict[str, Any]]] = []
    for number in range(times):
        text = arguments[number % len(arguments)]
        items += [asked(f"a{number}", RequestKind.APPROVAL, text), answered(f"a{number}", RequestOutcome.REFUSED)]
    return items


@requirement("limits:denials", "R-D2")
def test_identical_denials_end_the_turn() -> None:
    assert findings(Limits(), *denied_in_turn(SAME_DENIALS - 1)) == []
    [found] = findings(Limits(), *denied_in_turn(SAME_DENIALS))
    assert isinstance(found, LoopGuard)
    assert found.message == "'Bash' was refused 3 times with the same arguments"


@requirement("limits:denials", "R-D2")
def test_equal_json_is_equal_however_it_is_written() -> None:
    ways = ('{"a": 1, "b": 2}', '{"b":2,"a":1}')
    assert len(findings(Limits(), *denied_in_turn(SAME_DENIALS, ways))) == 1
    different = [f'{{"a": {number}}}' for number in range(10)]
    assert findings(Limits(), *denied_in_turn(10, different)) == []


@requirement("limits:denials")
def test_denials_side_by_side_are_one() -> None:
    ids = [f"a{number}" for number in range(10)]
    round_ = [asked(one, RequestKind.APPROVAL) for one in ids]
    assert findings(Limits(), *round_, *(answered(one, RequestOutcome.REFUSED) for one in ids)) == []


@requirement("limits:denials")
def test_expired_approvals_and_failing_calls_count_and_a_success_forgets_them() -> None:
    approvals: list[tuple[type[Item], dict[str, Any]]] = []
    for number in range(SAME_DENIALS):
        approvals += [asked(f"a{number}", RequestKind.APPROVAL), answered(f"a{number}", RequestOutcome.EXPIRED)]
    assert len(findings(Limits(), *approvals)) == 1
    calls: list[tuple[type[Item], dict[str, Any]]] = []
    for number in range(SAME_FAILURES):
        done = answered(f"c{number}", RequestOutcome.ANSWERED, is_error=True)
        calls += [asked(f"c{number}", RequestKind.TOOL_CALL), done]
    assert len(findings(Limits(), *calls)) == 1
    success = [asked("ok", RequestKind.TOOL_CALL), answered("ok", RequestOutcome.ANSWERED)]
    assert findings(Limits(), *calls[:-2], *success, *calls[-2:]) == []


@requirement("limits:denials")
def test_questions_that_are_declined_are_no_loop() -> None:
    items: list[tuple[type[Item], dict[str, Any]]] = []
    for number in range(10):
        items += [asked(f"q{number}", RequestKind.USER_QUESTION), answered(f"q{number}", RequestOutcome.REFUSED)]
    assert findings(Limits(), *items) == []


PRICES = (Price("small-*", input=1, output=2, cached_input=0.1), Price("*", input=10, output=20))


@requirement("limits:prices")
def test_price_table_gives_the_cost_that_nobody_reported() -> None:
    usage = UsageInfo(input_tokens=1_000_000, cached_input_tokens=500_000, output_tokens=1_000_000)
    assert priced(usage, "small-1", PRICES).cost_usd == pytest.approx(0.5 + 0.05 + 2)
    assert priced(usage, "other", PRICES).cost_usd == pytest.approx(30)
    assert priced(usage, None, PRICES).cost_usd is None
    assert priced(usage, "small-1", ()).cost_usd is None
    assert priced(usage.model_copy(update={"cost_usd": 7}), "small-1", PRICES).cost_usd == 7


@requirement("limits:prices")
def test_models_of_one_turn_have_their_own_prices() -> None:
    parts = [ModelUsage(model="small-1", output_tokens=1_000_000), ModelUsage(model="big", output_tokens=1_000_000)]
    both = priced(UsageInfo(output_tokens=2_000_000, by_model=parts), None, PRICES)
    assert both.cost_usd == pytest.approx(22)
    assert [part.cost_usd for part in both.by_model] == pytest.approx([2, 20])
    assert priced(UsageInfo(by_model=parts), None, PRICES[:1]).cost_usd is None
