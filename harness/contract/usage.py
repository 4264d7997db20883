"""What a turn cost, as far as the provider reports it: a figure nobody reported stays null, never 0."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from harness.contract.value import OPEN, Value


class UsageScope(StrEnum):
    TURN = "turn"
    LAST_CALL = "last_call"
    UNKNOWN = "unknown"


class UsageFigures(Value):
    """`input_tokens` includes cached and cache-written ones, `output_tokens` includes reasoning."""

    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    model_calls: int | None = None


class ModelUsage(UsageFigures):
    model: str


class UsageInfo(UsageFigures):
    by_model: list[ModelUsage] = []
    scope: Annotated[UsageScope | str, OPEN] = UsageScope.TURN


_FIGURES = tuple(UsageFigures.model_fields)


def _sums(parts: Sequence[UsageFigures]) -> dict[str, float | int | None]:
    sums: dict[str, float | int | None] = {}
    for figure in _FIGURES:
        known = [value for part in parts if (value := getattr(part, figure)) is not None]
        sums[figure] = sum(known) if known else None
    return sums


def add_usage(first: UsageInfo | None, second: UsageInfo | None) -> UsageInfo | None:
    """Both together; a figure is null only where neither knows it."""
    if first is None or second is None:
        return first or second
    models: dict[str, list[ModelUsage]] = {}
    for part in (*first.by_model, *second.by_model):
        models.setdefault(part.model, []).append(part)
    by_model = [ModelUsage.model_validate({"model": model, **_sums(parts)}) for model, parts in models.items()]
    scope = first.scope if first.scope == second.scope else UsageScope.UNKNOWN
    return UsageInfo.model_validate({**_sums([first, second]), "by_model": by_model, "scope": scope})
