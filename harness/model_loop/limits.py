"""Limits of a turn and budgets of a conversation, kept between model calls (pure)."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.contract.options import Limits
from harness.contract.output import StopReason
from harness.contract.usage import UsageFigures, UsageInfo
from harness.model_loop.history import History, ModelSaid
from harness.turn import events
from harness.turn.events import OutputProduced

WARN_AT = 0.8


def output_tokens_left(limit: int | None, turn_usage: UsageInfo | None) -> int | None:
    """What the next model call of the turn may still write."""
    if limit is None:
        return None
    used = (turn_usage.output_tokens or 0) if turn_usage is not None else 0
    return max(0, limit - used)


def exhausted(limits: Limits, max_output_tokens: int | None, history: History) -> StopReason | None:
    """Why no further model call may be made in this turn."""
    total = history.usage()
    if limits.token_budget is not None and tokens_of(total) >= limits.token_budget:
        return StopReason.BUDGET
    if limits.cost_budget_usd is not None and total is not None and (total.cost_usd or 0) >= limits.cost_budget_usd:
        return StopReason.BUDGET
    if limits.max_turns is not None and len(history.answers_of_turn()) >= limits.max_turns:
        return StopReason.MAX_TURNS
    if output_tokens_left(max_output_tokens, history.usage(history.turn_starts_at())) == 0:
        return StopReason.MAX_TOKENS
    return None


def warnings(limits: Limits, history: History, newest: ModelSaid) -> Iterator[OutputProduced]:
    """A notice for each limit of which the newest answer took the part that crosses 80 %."""
    total, last = history.usage(), newest.usage
    if limits.token_budget is not None:
        now = tokens_of(total)
        yield from _crossed("token_budget", now - tokens_of(last), now, limits.token_budget)
    if limits.cost_budget_usd is not None and total is not None:
        cost, of_last = total.cost_usd or 0, (last.cost_usd or 0) if last is not None else 0
        yield from _crossed("cost_budget_usd", cost - of_last, cost, limits.cost_budget_usd)
    if limits.max_turns is not None and limits.max_turns > 1:
        calls = len(history.answers_of_turn())
        yield from _crossed("max_turns", calls - 1, calls, limits.max_turns)


def tokens_of(usage: UsageFigures | None) -> int:
    return 0 if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _crossed(name: str, before: float, now: float, limit: float) -> Iterator[OutputProduced]:
    mark = math.floor(limit * WARN_AT) if isinstance(limit, int) else limit * WARN_AT
    if before < mark <= now:
        yield events.notice("limit_near", f"{now:g} of '{name}' {limit:g} are used")
