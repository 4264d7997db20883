"""When a failed model call is tried again, and after how long (pure)."""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import ProviderError

RETRIED = frozenset({"rate_limit", "overloaded", "network", "server"})
"""Reasons that pass by themselves; `billing` looks like a rate limit on some wires and never passes."""


@dataclass(frozen=True, slots=True)
class RetryRules:
    """`max_wait_seconds` bounds one pause: a provider that asks for more is given up at once."""

    max_retries: int = 4
    first_seconds: float = 0.5
    max_backoff_seconds: float = 8.0
    max_wait_seconds: float = 120.0


def seconds_before_retry(error: ProviderError, attempt: int, chance: float, rules: RetryRules) -> float | None:
    """How long to wait after failed attempt number `attempt` (from 1); None: give up.

    Honours the provider's Retry-After; else doubles, up to a quarter less by `chance` (0 to 1) so that many clients do
    not come back at once.
    """
    if attempt > rules.max_retries or error.detail.get("reason") not in RETRIED:
        return None
    asked = error.detail.get("retry_after_ms")
    if isinstance(asked, int):
        seconds = asked / 1000
        return seconds if seconds <= rules.max_wait_seconds else None
    backoff = min(rules.max_backoff_seconds, rules.first_seconds * 2 ** (attempt - 1))
    return backoff * (1 - chance / 4)
