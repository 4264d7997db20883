"""An agent's answer to a prompt -> the turn's end, and what it used. Pure."""

from __future__ import annotations

import re

from connectors._json import JsonObject, number_in, object_in, objects_in, plain_text_in
from connectors._jsonrpc import RpcError
from connectors.acp.agent import Agent, Usage
from harness.contract.output import StopReason
from harness.contract.usage import ModelUsage, UsageInfo, UsageScope
from harness.errors import ConnectorUnavailable, ContextOverflow, HarnessError, ProviderError
from harness.turn.events import TurnEnded, TurnFailed

_STOP_REASONS = {
    "end_turn": StopReason.END_TURN,
    "max_tokens": StopReason.MAX_TOKENS,
    "max_turn_requests": StopReason.MAX_TURNS,
    "refusal": StopReason.REFUSAL,
    "cancelled": StopReason.CANCELLED,
}
_LIMITS = {
    "Reached maximum number of turns": StopReason.MAX_TURNS,
    "Reached maximum budget": StopReason.BUDGET,
}
_NOT_LOGGED_IN = -32000
_STATUS_IN_TEXT = re.compile(r"\b(?:API Error:?|[Ss]tatus:?|HTTP|Error:?) (4\d\d|5\d\d)\b")
_REASONS = {400: "request", 401: "auth", 402: "billing", 403: "auth", 404: "request", 429: "rate_limit"}
_WORDS = {
    "rate_limit": "rate_limit",
    "authentication": "auth",
    "billing": "billing",
    "overloaded": "overloaded",
    "invalid_request": "request",
    "server_error": "server",
}


def end_of(result: JsonObject) -> TurnEnded:
    """A stop reason that is not known stays the text it is."""
    told = plain_text_in(result.get("stopReason"))
    return TurnEnded(_STOP_REASONS.get(told, told or StopReason.END_TURN))


def failure_of(error: RpcError, agent: Agent) -> TurnEnded | TurnFailed:
    """A limit that was kept is an end like others, though some agents call it an error."""
    if error.code == _NOT_LOGGED_IN:
        return TurnFailed(ProviderError(f"{error.message}; {agent.login_remedy}", reason="auth"))
    for words, reason in _LIMITS.items():
        if words in error.message:
            return TurnEnded(reason)
    return TurnFailed(error_of(error, agent))


def error_of(error: RpcError, agent: Agent) -> HarnessError:
    """Agents put what the model's provider said into the error of the prompt, each in its own way."""
    if error.code == _NOT_LOGGED_IN:
        return not_logged_in(agent)
    data = object_in(error.data)
    status = _status(error, data)
    text = plain_text_in(data.get("details")) or plain_text_in(data.get("message")) or error.message
    if "context" in text.lower() and ("window" in text.lower() or "length" in text.lower()):
        return ContextOverflow(text)
    kind = " ".join(plain_text_in(data.get(name)) for name in ("errorKind", "errorName", "codex_error_info"))
    reason = _REASONS.get(status or 0) or next((value for word, value in _WORDS.items() if word in kind), None)
    if reason is None:
        reason = "request" if status is not None and 400 <= status < 500 else "server"
    return ProviderError(text, reason=reason, status=status, provider_code=kind.strip() or None)


def not_logged_in(agent: Agent) -> ConnectorUnavailable:
    return ConnectorUnavailable(f"'{agent.name}' is not logged in; {agent.login_remedy}", reason="not_logged_in")


class UsageMeter:
    """Turns an agent's figures into those of one turn, as far as they tell them."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._total: dict[str, int] = {}
        self._cost = 0.0
        self._cost_before = 0.0

    def cost_told(self, update: JsonObject) -> None:
        """What the session has cost so far."""
        cost = object_in(update.get("cost"))
        amount = number_in(cost.get("amount"))
        if amount is not None and cost.get("currency") in (None, "USD"):
            self._cost = float(amount)

    def cost_so_far(self) -> UsageInfo | None:
        """What the running turn has cost, before its end tells the rest; null where nobody knows."""
        if not self._agent.reports_cost:
            return None
        return UsageInfo(cost_usd=round(self._cost - self._cost_before, 12))

    def usage_of(self, result: JsonObject) -> UsageInfo | None:
        cost, self._cost_before = self._cost - self._cost_before, self._cost
        figures, by_model = self._figures(result)
        if not figures:
            return None
        scope = UsageScope.LAST_CALL if self._agent.usage == Usage.LAST_CALL else UsageScope.TURN
        if self._agent.reports_cost:
            by_model = []
        fields = {**figures, "cost_usd": round(cost, 12) if self._agent.reports_cost else None}
        return UsageInfo.model_validate({**fields, "by_model": by_model, "scope": scope})

    def _figures(self, result: JsonObject) -> tuple[dict[str, int], list[ModelUsage]]:
        match self._agent.usage:
            case Usage.NONE:
                return {}, []
            case Usage.QUOTA:
                quota = object_in(object_in(result.get("_meta")).get("quota"))
                by_model = [
                    ModelUsage.model_validate({"model": plain_text_in(one.get("model")), **_quota(one)})
                    for one in objects_in(quota.get("model_usage"))
                ]
                return _quota(quota), by_model
            case Usage.SESSION:
                total = _usage(object_in(result.get("usage")))
                before, self._total = self._total, total or self._total
                return {name: value - before.get(name, 0) for name, value in total.items()}, []
            case _:
                return _usage(object_in(result.get("usage"))), []


def _usage(usage: JsonObject) -> dict[str, int]:
    told = {name: int(value) for name, one in usage.items() if (value := number_in(one)) is not None}
    if not told:
        return {}
    cached, written = told.get("cachedReadTokens"), told.get("cachedWriteTokens")
    given, output, total = told.get("inputTokens"), told.get("outputTokens"), told.get("totalTokens")
    whole = given
    # agents differ in whether the cached ones are in the input: the total tells
    if given is not None and output is not None and total is not None and total > given + output:
        whole = min(total - output, given + (cached or 0) + (written or 0))
    figures = {
        "input_tokens": whole,
        "cached_input_tokens": cached,
        "cache_write_tokens": written,
        "output_tokens": output,
        "reasoning_tokens": told.get("thoughtTokens"),
    }
    return {name: value for name, value in figures.items() if value is not None}


def _quota(holder: JsonObject) -> dict[str, int]:
    count = object_in(holder.get("token_count"))
    names = {"input_tokens": "input_tokens", "output_tokens": "output_tokens"}
    return {ours: int(value) for ours, theirs in names.items() if (value := number_in(count.get(theirs))) is not None}


def _status(error: RpcError, data: JsonObject) -> int | None:
    """The HTTP status: some agents make it the error's code."""
    for told in (data.get("statusCode"), data.get("status"), error.code):
        value = number_in(told)
        if value is not None and 400 <= value < 600:
            return int(value)
    return status_in(error.message)


def status_in(text: str) -> int | None:
    """The HTTP status, where an agent tells it in words only."""
    found = _STATUS_IN_TEXT.search(text)
    return int(found[1]) if found else None


def failure_in(text: str) -> ProviderError:
    """What a provider said, where it stands in the answer's text."""
    status = status_in(text)
    told = text.strip()[-500:] or "the model's provider failed without a word why"
    reason = _REASONS.get(status or 0) or ("request" if status is not None and status < 500 else "server")
    return ProviderError(told, reason=reason, status=status)
