"""What Codex says at the end of a turn -> the turn's end, and what it used. Pure."""

from __future__ import annotations

from connectors._json import JsonObject, number_in, object_in, plain_text_in
from connectors.codex.versions import HOW_TO_LOG_IN
from harness.contract.capabilities import InnerVersion
from harness.contract.output import StopReason
from harness.contract.usage import ModelUsage, UsageInfo
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, ContextOverflow, HarnessError, ProviderError
from harness.turn.events import TurnEnded, TurnFailed

_MAX_TOKENS = "reason: max_output_tokens"
_FILTERED = "reason: content_filter"
_REASONS = {
    "usageLimitExceeded": "billing",
    "sessionBudgetExceeded": "billing",
    "rateLimitExceeded": "rate_limit",
    "serverOverloaded": "overloaded",
    "internalServerError": "server",
    "unauthorized": "auth",
    "badRequest": "request",
    "modelNotFound": "request",
}
_STATUS_REASONS = {401: "auth", 402: "billing", 403: "auth", 404: "request", 429: "rate_limit", 503: "overloaded"}
_REFUSED = frozenset({"cyberPolicy", "bioPolicy", "misalignmentPolicyViolation"})


def end_of(turn: JsonObject, *, was_refused: bool, structured_output_json: str | None) -> TurnEnded | TurnFailed:
    """`was_refused`: a message began and never came, which is all that Codex shows of a refusal."""
    match turn.get("status"):
        case "completed":
            if was_refused:
                return TurnEnded(StopReason.REFUSAL)
            return TurnEnded(structured_output_json=structured_output_json)
        case "interrupted":
            return TurnEnded(StopReason.CANCELLED)
        case _:
            return failure_of(object_in(turn.get("error")))


def failure_of(error: JsonObject) -> TurnEnded | TurnFailed:
    text = plain_text_in(error.get("message")) or "Codex ended the turn without a word why"
    code, status = error_code(error)
    if _MAX_TOKENS in text:
        return TurnEnded(StopReason.MAX_TOKENS)
    if _FILTERED in text or code in _REFUSED:
        return TurnEnded(StopReason.REFUSAL)
    if code == "contextWindowExceeded":
        return TurnFailed(ContextOverflow(text))
    return TurnFailed(_provider_error(text, code, status))


def error_code(error: JsonObject) -> tuple[str | None, int | None]:
    """Codex's own code and the HTTP status, as far as it tells them."""
    info: JsonValue = error.get("codexErrorInfo")
    if isinstance(info, str):
        return info, None
    for name, detail in object_in(info).items():
        status = number_in(object_in(detail).get("httpStatusCode"))
        return plain_text_in(name), None if status is None else int(status)
    return None, None


def _provider_error(text: str, code: str | None, status: int | None) -> HarnessError:
    if status == 401 and "login" in text.lower():
        return not_logged_in()
    reason = _STATUS_REASONS.get(status or 0) or _REASONS.get(code or "")
    if reason is None and status is not None:
        reason = "request" if 400 <= status < 500 else "server"
    if reason is None:
        # without a status only the words tell a stream that broke from a request that was refused
        reason = "network" if "stream disconnected" in text or "error sending request" in text else "request"
    return ProviderError(text, reason=reason, status=status, provider_code=None if code == "other" else code)


def not_logged_in(program: str | None = None, inner: InnerVersion | None = None) -> ConnectorUnavailable:
    """What is known of the program is told with it."""
    told = {} if inner is None else {"peer": inner.name, "version": inner.version, "tested": inner.tested}
    return ConnectorUnavailable(
        f"Codex is not logged in; {HOW_TO_LOG_IN}", reason="not_logged_in", program=program, **told
    )


class UsageMeter:
    """Turns Codex's figures, totals of the thread, into those of one turn."""

    def __init__(self) -> None:
        self._total: dict[str, int] | None = None
        self._turn: dict[str, int] = {}
        self.calls = 0
        """Model calls of this turn that have ended."""

    def start_turn(self) -> None:
        self._turn, self.calls = {}, 0

    def thread_is_new(self) -> None:
        """The thread has used nothing yet; of a resumed one the first update tells where it stood."""
        self._total = {}

    def update(self, usage: JsonObject, model: str | None) -> UsageInfo | None:
        """What the turn has used so far; null where this update brings nothing new."""
        total, last = _figures(usage.get("total")), _figures(usage.get("last"))
        before = self._total
        if before is None:
            before = {name: value - last.get(name, 0) for name, value in total.items()}
        self._total = total
        new = {name: value - before.get(name, 0) for name, value in total.items()}
        if not any(new.values()):
            return None
        self.calls += 1
        self._turn = {name: self._turn.get(name, 0) + value for name, value in new.items()}
        figures = {
            "input_tokens": self._turn.get("inputTokens"),
            "cached_input_tokens": self._turn.get("cachedInputTokens"),
            "cache_write_tokens": self._turn.get("cacheWriteInputTokens"),
            "output_tokens": self._turn.get("outputTokens"),
            "reasoning_tokens": self._turn.get("reasoningOutputTokens"),
            "model_calls": self.calls,
        }
        by_model = [] if model is None else [ModelUsage.model_validate({"model": model, **figures})]
        return UsageInfo.model_validate({**figures, "by_model": by_model})


def _figures(value: JsonValue) -> dict[str, int]:
    return {name: int(number) for name, one in object_in(value).items() if (number := number_in(one)) is not None}
