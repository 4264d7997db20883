"""Why a request of a provider's wire is refused, and which status that is there (pure).

`detail.reason` is the code that the client sees, `detail.param` the field that it is about.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.errors import (
    ConfigError,
    ContentNotSupported,
    ContextOverflow,
    HarnessError,
    InvalidArgument,
    NotSupported,
    ProviderError,
)

MODEL_NOT_FOUND = "model_not_found"
MISSING_TOOL_RESULTS = "missing_tool_results"
REPLY_NOT_FOUND = "previous_response_not_found"
_PROVIDER_STATUS = {"rate_limit": 429, "request": 400, "overloaded": 503}


def refused(message: str, *, reason: str = "invalid_request", param: str | None = None) -> InvalidArgument:
    """A request that cannot be answered as it is; nothing was changed by it."""
    return InvalidArgument(message, reason=reason, param=param)


def unsupported(param: str, why: str) -> InvalidArgument:
    """What would change the meaning and reaches nobody."""
    return refused(f"'{param}' cannot be honoured: {why}", reason="unsupported_parameter", param=param)


def unknown_model(name: str, known: Iterable[str]) -> InvalidArgument:
    names = ", ".join(f"'{one}'" for one in known) or "none"
    message = f"no model '{name}' here: a model is '<connector>' or '<connector>/<model>' with one of {names}"
    return refused(message, reason=MODEL_NOT_FOUND, param="model")


def missing_tool_results(missing: Iterable[str], conversation_id: str) -> InvalidArgument:
    names = ", ".join(f"'{one}'" for one in missing)
    message = f"the calls {names} wait for a result: answer all of them in one request; nothing was changed"
    error = refused(message, reason=MISSING_TOOL_RESULTS, param="messages")
    error.detail["conversation_id"] = conversation_id
    return error


def wire_status(error: HarnessError) -> int:
    """The HTTP status on a provider's wire, whose clients repeat 409, 429 and all from 500 on by themselves."""
    if error.detail.get("reason") == MODEL_NOT_FOUND:
        return 404
    if isinstance(error, ProviderError):
        return _PROVIDER_STATUS.get(str(error.detail.get("reason")), error.http_status)
    if isinstance(error, NotSupported | ContentNotSupported | ContextOverflow | ConfigError):
        return 400
    return error.http_status


def retry_headers(error: HarnessError) -> dict[str, str]:
    """Tells the SDKs whether to repeat the call, which they would else guess from the status."""
    retry_after_ms = error.detail.get("retry_after_ms")
    is_retryable = error.retryable or isinstance(retry_after_ms, int)
    headers = {"x-should-retry": "true" if is_retryable else "false"}
    if isinstance(retry_after_ms, int):
        headers["retry-after"] = str(-(-retry_after_ms // 1000))
        headers["retry-after-ms"] = str(retry_after_ms)
    return headers
