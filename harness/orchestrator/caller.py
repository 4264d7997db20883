"""The run that a tool call belongs to, for tools that are agents themselves: its policy, people, budget and words."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from harness.contract.options import Limits
from harness.contract.usage import UsageFigures, UsageInfo, add_usage
from harness.orchestrator.approvals import Approver
from harness.orchestrator.transcript import TurnSoFar
from harness.policy import Policy


@dataclass(slots=True)
class Spending:
    """What one conversation and the agents inside of it have used up so far."""

    limits: Limits = field(default_factory=Limits)
    own: UsageInfo | None = None
    """Of the conversation itself, as its peer reports it."""
    inside: UsageInfo | None = None
    """Of agents that ran as its tools, to any depth."""
    parent: Spending | None = None
    """Of the conversation that this one is inside of."""
    calls: Counter[str] = field(default_factory=Counter[str])
    """How often each agent was called."""

    def add_inside(self, usage: UsageInfo | None) -> None:
        self.inside = add_usage(self.inside, usage)
        if self.parent is not None:
            self.parent.add_inside(usage)

    @property
    def is_used_up(self) -> bool:
        left = self.left
        return left.token_budget == 0 or left.cost_budget_usd == 0

    @property
    def left(self) -> BudgetLeft:
        """What an agent inside may use; null where there is no limit."""
        total = add_usage(self.own, self.inside)
        tokens, cost = self.limits.token_budget, self.limits.cost_budget_usd
        spent = (total.cost_usd if total is not None else None) or 0
        return BudgetLeft(
            None if tokens is None else max(0, tokens - tokens_of(total)),
            None if cost is None else max(0, cost - spent),
        )


@dataclass(frozen=True, slots=True)
class BudgetLeft:
    token_budget: int | None
    cost_budget_usd: float | None

    def within(self, own: Limits) -> Limits:
        """The stricter of both, limit by limit."""
        return own.model_copy(
            update={
                "token_budget": _smaller(own.token_budget, self.token_budget),
                "cost_budget_usd": _smaller(own.cost_budget_usd, self.cost_budget_usd),
            }
        )


@dataclass(frozen=True, slots=True)
class Caller:
    """`depth` is 0 for a conversation that no other one is the caller of."""

    policy: Policy
    approver: Approver
    depth: int
    spending: Spending
    approval_ms: int | None
    """How long the caller's people may think."""
    turns: list[TurnSoFar]
    """The conversation so far, the running turn last."""


def tokens_of(usage: UsageFigures | None) -> int:
    return 0 if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _smaller(first: float | None, second: float | None) -> float | None:
    known = [one for one in (first, second) if one is not None]
    return min(known) if known else None
