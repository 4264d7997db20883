"""Copilot's own events, which both of its modes tell -> failures, notices and usage. Pure."""

from __future__ import annotations

from connectors._json import JsonObject, number_in, plain_text_in
from connectors.copilot.agent import HOW_TO_LOG_IN
from harness.contract.capabilities import InnerVersion
from harness.contract.usage import ModelUsage, UsageInfo, add_usage
from harness.errors import ConnectorUnavailable, ContextOverflow, HarnessError, ProviderError
from harness.turn.events import OutputProduced, notice

_REASONS = {
    "authentication": "auth",
    "authorization": "auth",
    "quota": "billing",
    "rate_limit": "rate_limit",
    "context_limit": "context",
}
_STATUS_REASONS = {400: "request", 401: "auth", 402: "billing", 403: "auth", 404: "request", 429: "rate_limit"}


def error_of(data: JsonObject) -> HarnessError:
    """Of `session.error`."""
    text = plain_text_in(data.get("message")) or "Copilot failed without a word why"
    kind = plain_text_in(data.get("errorType"))
    status = number_in(data.get("statusCode"))
    reason = _STATUS_REASONS.get(int(status or 0)) or _REASONS.get(kind)
    if reason == "context":
        return ContextOverflow(text)
    if reason is None:
        reason = "server" if status is not None and status >= 500 else "network" if status is None else "request"
    return ProviderError(
        text, reason=reason, status=None if status is None else int(status), provider_code=kind or None
    )


def retry_notice(data: JsonObject) -> OutputProduced:
    """Of `assistant.turn_retry`."""
    reason = plain_text_in(data.get("reason"))
    code = "rate_limit" if reason == "rate_limit" else "retry"
    return notice(code, f"Copilot calls its model again ({reason or 'no reason told'})")


def usage_of(data: JsonObject, before: UsageInfo | None) -> UsageInfo | None:
    """Of `assistant.usage`, one model call, added to those before it in the turn."""
    names = {
        "input_tokens": "inputTokens",
        "output_tokens": "outputTokens",
        "cached_input_tokens": "cacheReadTokens",
        "cache_write_tokens": "cacheWriteTokens",
        "reasoning_tokens": "reasoningTokens",
    }
    figures: dict[str, int] = {
        ours: int(value) for ours, theirs in names.items() if (value := number_in(data.get(theirs))) is not None
    }
    figures["model_calls"] = 1
    model = plain_text_in(data.get("model"))
    by_model = [ModelUsage.model_validate({"model": model, **figures})] if model else []
    return add_usage(before, UsageInfo.model_validate({**figures, "by_model": by_model}))


def not_logged_in(program: str | None = None, inner: InnerVersion | None = None) -> ConnectorUnavailable:
    """What is known of the program is told with it."""
    told = {} if inner is None else {"peer": inner.name, "version": inner.version, "tested": inner.tested}
    return ConnectorUnavailable(
        f"Copilot is not logged in; {HOW_TO_LOG_IN}", reason="not_logged_in", program=program, **told
    )
