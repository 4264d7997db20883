"""What one reply cost (pure): a turn's usage is a running total, and a turn may have several replies."""

from __future__ import annotations

from harness.contract.usage import UsageFigures, UsageInfo


def usage_between(before: UsageInfo | None, now: UsageInfo | None) -> UsageInfo | None:
    """The figures that were added; null where the peer reports none."""
    if before is None or now is None:
        return now
    added = {name: _difference(getattr(before, name), getattr(now, name)) for name in UsageFigures.model_fields}
    return UsageInfo.model_validate({**added, "scope": now.scope})


def _difference(before: float | None, now: float | None) -> float | None:
    return None if now is None else max(0, now - (before or 0))
