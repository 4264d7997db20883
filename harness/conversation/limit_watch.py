"""Watches a turn's stream for limits that the peer does not keep itself, and for denials that change nothing (pure).

A connector that keeps a limit itself ends its turn first. Here a turn is only stopped when its peer goes on: the answer
that used up the budget is still heard to its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TypeAlias

from harness.contract.options import Limits
from harness.contract.output import (
    InternalToolStarted,
    Item,
    Notice,
    RequestOpened,
    RequestResolved,
    StopReason,
    TextDelta,
    ThinkingDelta,
    Usage,
)
from harness.contract.requests import HostRequest, RequestKind, RequestOutcome
from harness.contract.usage import UsageInfo, add_usage
from harness.errors import LoopGuard
from harness.turn.events import OutputProduced, notice

NEAR = 0.8
SAME_DENIALS = 3
SAME_FAILURES = 5

Finding: TypeAlias = OutputProduced | StopReason | LoopGuard
"""A notice to show, a reason to stop the turn, or why it fails."""

_GOES_ON = (TextDelta, ThinkingDelta, InternalToolStarted)
_DENIED = frozenset({RequestOutcome.REFUSED, RequestOutcome.EXPIRED})


class LimitWatch:
    """One turn's watch; `earlier` is what the conversation used before it."""

    def __init__(self, limits: Limits, earlier: UsageInfo | None = None) -> None:
        self._limits = limits
        self._earlier = earlier
        self._told: set[str] = {name for name, used, limit in self._used(earlier, None) if used >= limit * NEAR}
        self._open: dict[str, RequestOpened] = {}
        self._repeated: dict[str, tuple[int, int]] = {}
        self.exhausted: StopReason | None = StopReason.BUDGET if self._is_over_budget(earlier) else None
        """Why the peer may not go on; set before the turn when the conversation's budget is used up already."""

    def see(self, items: Sequence[Item]) -> Iterator[Finding]:
        """What follows from these items, which come after those seen before."""
        near: list[tuple[str, float, float]] = []
        for item in items:
            match item:
                case Usage(usage=usage):
                    near = self._count(usage)
                case Notice(code="limit_near", text=text):
                    self._told.update(name for name, _, _ in near if f"'{name}'" in text)
                case RequestOpened(request=request):
                    self._open[request.request_id] = item
                case RequestResolved():
                    yield from self._resolved(item)
                case _ if self.exhausted is not None and isinstance(item, _GOES_ON):
                    yield self.exhausted
                    return
                case _:
                    pass
        for name, used, limit in near:
            if name not in self._told:
                self._told.add(name)
                yield notice("limit_near", f"{used:g} of '{name}' {limit:g} are used")

    # limits

    def _count(self, usage: UsageInfo) -> list[tuple[str, float, float]]:
        total = add_usage(self._earlier, usage)
        max_turns = self._limits.max_turns
        if self._is_over_budget(total):
            self.exhausted = StopReason.BUDGET
        elif max_turns is not None and (usage.model_calls or 0) >= max_turns:
            self.exhausted = StopReason.MAX_TURNS
        used = self._used(total, usage)
        return [one for one in used if one[1] >= one[2] * NEAR and one[0] not in self._told]

    def _used(self, total: UsageInfo | None, of_turn: UsageInfo | None) -> list[tuple[str, float, float]]:
        limits = self._limits
        figures = (
            ("token_budget", _tokens(total), limits.token_budget),
            ("cost_budget_usd", (total.cost_usd if total else None) or 0, limits.cost_budget_usd),
            ("max_turns", (of_turn.model_calls if of_turn else None) or 0, limits.max_turns),
        )
        return [(name, used, limit) for name, used, limit in figures if limit is not None and limit != 1]

    def _is_over_budget(self, total: UsageInfo | None) -> bool:
        limits = self._limits
        if limits.token_budget is not None and _tokens(total) >= limits.token_budget:
            return True
        cost = (total.cost_usd if total else None) or 0
        return limits.cost_budget_usd is not None and cost >= limits.cost_budget_usd

    # repetitions

    def _resolved(self, item: RequestResolved) -> Iterator[Finding]:
        opened = self._open.pop(item.request_id, None)
        if opened is None or opened.request.kind == RequestKind.USER_QUESTION:
            return
        call = _signature(opened.request)
        is_call = opened.request.kind == RequestKind.TOOL_CALL
        if not (item.outcome in _DENIED or (is_call and item.is_error)):
            self._repeated.pop(call, None)
            return
        times, last = self._repeated.get(call, (0, 0))
        if opened.sequence_no < last:
            return  # asked before the last answer was known: side by side is no repetition
        self._repeated[call] = (times + 1, item.sequence_no)
        if times + 1 >= (SAME_FAILURES if is_call else SAME_DENIALS):
            how = "failed" if is_call else "was refused"
            tool = opened.request.tool_name
            yield LoopGuard(f"'{tool}' {how} {times + 1} times with the same arguments", tool_name=tool)


def _tokens(usage: UsageInfo | None) -> int:
    return 0 if usage is None else (usage.input_tokens or 0) + (usage.output_tokens or 0)


def _signature(request: HostRequest) -> str:
    """Equal for equal calls, however their JSON is written."""
    arguments = request.arguments_json or ""
    with suppress(ValueError, RecursionError):  # what is no JSON counts as it is
        arguments = json.dumps(json.loads(arguments), sort_keys=True)
    return f"{request.kind}\n{request.tool_name}\n{arguments}"
