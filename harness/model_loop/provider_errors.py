"""A provider's HTTP error as ours: what it said, why it refused, when to come back."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from harness.contract.value import JsonValue
from harness.errors import ContextOverflow, HarnessError, ProviderError

_OVERFLOW_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_OVERFLOW_WORDS = (
    "maximum context length",
    "exceeds the available context size",
    "prompt is too long",
    "context window",
    "input length and `max_tokens` exceed",
    "exceeds context length",
    "exceeds the context length",
    "longer than the context length",
)
_BILLING_CODES = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_error"})
_OVERLOADED_CODES = frozenset({"overloaded_error", "overloaded", "server_overloaded"})
_REASONS = {
    401: "auth",
    403: "auth",
    402: "billing",
    408: "server",
    409: "server",
    429: "rate_limit",
    503: "overloaded",
}
MESSAGE_LIMIT = 1000


def error_of(status: int, body: JsonValue, headers: Mapping[str, str], provider: str) -> HarnessError:
    """`body` is the parsed body, or its text where it is no JSON."""
    text, codes, detail = _told(body)
    message = f"{provider} answered {status}: {text[:MESSAGE_LIMIT]}" if text else f"{provider} answered {status}"
    if status < 500 and _is_overflow(text, codes):
        return ContextOverflow(message, **_figures(detail))
    return ProviderError(
        message,
        reason=_reason(status, codes),
        status=status,
        provider_code=next(iter(codes), None),
        retry_after_ms=retry_after_ms(headers),
    )


def error_in_stream(body: JsonValue, provider: str) -> HarnessError:
    """An error that came after the answer had begun, with or without a status of its own."""
    text, codes, detail = _told(body)
    message = f"{provider} broke off: {text[:MESSAGE_LIMIT] or 'without saying why'}"
    if _is_overflow(text, codes):
        return ContextOverflow(message, **_figures(detail))
    numeric = next((int(code) for code in codes if code.isdigit()), 500)
    reason = "rate_limit" if any("rate_limit" in code for code in codes) else _reason(numeric, codes)
    return ProviderError(message, reason=reason, provider_code=next(iter(codes), None))


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """`Retry-After` in milliseconds, seconds or as a date."""
    precise = headers.get("retry-after-ms")
    asked = headers.get("retry-after")
    try:
        if precise is not None:
            return max(0, int(float(precise)))
        if asked is None:
            return None
        return max(0, int(float(asked) * 1000))
    except ValueError:
        pass
    try:
        return max(0, int((parsedate_to_datetime(asked or "").timestamp() - time.time()) * 1000))
    except ValueError:
        return None


def _told(body: JsonValue) -> tuple[str, list[str], Mapping[str, Any]]:
    """The text for a person, the codes and types, and the object they stood in."""
    if isinstance(body, str):
        return body.strip(), [], {}
    if not isinstance(body, dict):
        return "", [], {}
    whole = cast(Mapping[str, Any], body)
    inner = whole.get("error", whole)
    if isinstance(inner, str):
        return inner, [], whole
    detail = cast(Mapping[str, Any], inner) if isinstance(inner, dict) else whole
    text = detail.get("message", detail.get("detail", ""))
    codes = [str(detail[name]) for name in ("code", "type") if detail.get(name) is not None]
    return (text if isinstance(text, str) else json.dumps(text)), codes, detail


def _is_overflow(text: str, codes: list[str]) -> bool:
    lowered = text.lower()
    return any(code in _OVERFLOW_CODES for code in codes) or any(words in lowered for words in _OVERFLOW_WORDS)


def _figures(detail: Mapping[str, Any]) -> dict[str, object]:
    return {"context_window": detail.get("n_ctx"), "prompt_tokens": detail.get("n_prompt_tokens")}


def _reason(status: int, codes: list[str]) -> str:
    if any(code in _BILLING_CODES for code in codes):
        return "billing"
    if any(code in _OVERLOADED_CODES for code in codes) or status == 529:
        return "overloaded"
    return _REASONS.get(status, "server" if status >= 500 else "request")
