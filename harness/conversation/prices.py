"""What a turn cost by the price table, where the provider does not say (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from harness.contract.usage import UsageFigures, UsageInfo
from harness.settings import Price

MILLION = 1_000_000


def price_of(model: str | None, prices: Sequence[Price]) -> Price | None:
    """The first price whose pattern fits the model's name."""
    return next((price for price in prices if model is not None and fnmatchcase(model, price.model)), None)


def priced(usage: UsageInfo, model: str | None, prices: Sequence[Price]) -> UsageInfo:
    """The same usage with its cost; unchanged where the provider told one, or a price is missing."""
    if usage.cost_usd is not None or not prices:
        return usage
    if not usage.by_model:
        price = price_of(model, prices)
        return usage if price is None else usage.model_copy(update={"cost_usd": _cost(usage, price)})
    costs: list[float] = []
    for part in usage.by_model:
        price = price_of(part.model, prices)
        cost = part.cost_usd if part.cost_usd is not None or price is None else _cost(part, price)
        if cost is None:
            return usage
        costs.append(cost)
    by_model = [part.model_copy(update={"cost_usd": cost}) for part, cost in zip(usage.by_model, costs, strict=True)]
    return usage.model_copy(update={"cost_usd": sum(costs), "by_model": by_model})


def _cost(figures: UsageFigures, price: Price) -> float:
    """Cached input has its own price where the table gives one."""
    cached = figures.cached_input_tokens or 0
    written = figures.cache_write_tokens or 0
    fresh = max(0, (figures.input_tokens or 0) - cached - written)
    tokens = (
        fresh * price.input,
        cached * (price.input if price.cached_input is None else price.cached_input),
        written * (price.input if price.cache_write is None else price.cache_write),
        (figures.output_tokens or 0) * price.output,
    )
    return sum(tokens) / MILLION
