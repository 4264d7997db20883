"""What a `result` line of the CLI means: the turn's end, and what it used. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from connectors._json import JsonObject, compact_json, number_in, object_in, plain_text_in, text_in
from connectors._text import without_surrogates
from harness.contract.output import StopReason
from harness.contract.usage import ModelUsage, UsageInfo, add_usage
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, ContextOverflow, HarnessError, ProviderError
from harness.turn.events import TurnEnded, TurnFailed

HOW_TO_LOG_IN = "type: claude /login, or set ANTHROPIC_API_KEY"
_ABORTED = frozenset({"aborted_tools", "aborted_streaming"})
_REASONS = {
    "rate_limit": "rate_limit",
    "authentication_failed": "auth",
    "billing_error": "billing",
    "model_not_found": "request",
    "invalid_request": "request",
    "server_error": "server",
}
_API_FIGURES = ("cache_read_input_tokens", "cache_creation_input_tokens", "input_tokens", "output_tokens")
_STATUS_REASONS = {401: "auth", 402: "billing", 403: "auth", 429: "rate_limit", 529: "overloaded"}


def end_of(result: JsonObject, *, api_error: JsonObject | None, last_stop_reason: str | None) -> TurnEnded | TurnFailed:
    """The neutral end.

    `api_error` is the synthetic assistant line that came before, `last_stop_reason` the model's own: the CLI's figures
    alone do not tell an answer that was too long from a context that is full.
    """
    terminal, subtype = text_in(result.get("terminal_reason")), text_in(result.get("subtype"))
    if terminal in _ABORTED:
        return TurnEnded(StopReason.CANCELLED)
    if subtype == "error_max_turns":
        return TurnEnded(StopReason.MAX_TURNS)
    if subtype == "error_max_budget_usd":
        return TurnEnded(StopReason.BUDGET)
    if result.get("stop_reason") == "refusal":
        return TurnEnded(StopReason.REFUSAL)
    if not result.get("is_error"):
        output = result.get("structured_output")
        return TurnEnded(structured_output_json=None if output is None else compact_json(output))
    kind = _first_text((api_error or {}).get("error"), result.get("api_error"))
    text = plain_text_in(result.get("result"))
    is_too_long = terminal == "prompt_too_long" or text.startswith("Prompt is too long")
    # without streaming the model's stop reason is unknown and only the words tell the two limits apart
    is_full = last_stop_reason == "model_context_window_exceeded" or "reached its context window" in text
    if is_too_long or is_full:
        return TurnFailed(ContextOverflow(text or "the model's context window is full"))
    if kind == "max_output_tokens":
        return TurnEnded(StopReason.MAX_TOKENS)
    return TurnFailed(_provider_error(result, kind, text))


def _provider_error(result: JsonObject, kind: str | None, text: str) -> HarnessError:
    if kind == "authentication_failed" and text.startswith("Not logged in"):
        return not_logged_in()
    status = result.get("api_error_status")
    status = status if isinstance(status, int) else None
    if result.get("api_error") == "connection_failed":
        reason = "network"
    else:
        reason = _STATUS_REASONS.get(status or 0) or _REASONS.get(kind or "")
    if reason is None:
        reason = "request" if status is not None and 400 <= status < 500 else "server"
    # `errors` is diagnostics of the CLI, not for people
    unexplained = f"Claude Code ended the turn without a word why ('{plain_text_in(result.get('terminal_reason'))}')"
    return ProviderError(
        text or unexplained,
        reason=reason,
        status=status,
        provider_code=_first_text(result.get("api_error_type"), kind),
    )


def not_logged_in() -> ConnectorUnavailable:
    return ConnectorUnavailable(f"Claude Code is not logged in; {HOW_TO_LOG_IN}", reason="not_logged_in")


class UsageMeter:
    """Turns the CLI's figures, cumulative over its process, into those of one turn."""

    def __init__(self, totals: Mapping[str, JsonObject] | None = None) -> None:
        self.totals: dict[str, JsonObject] = {**(totals or {})}
        """What the CLI had counted by its last result, with earlier processes of the same session."""

    def since_last(self, result: JsonObject) -> UsageInfo | None:
        """What was used since the last result; null when the CLI reports nothing at all."""
        totals = _by_model(result.get("modelUsage"))
        since = result.get("model_usage_since_last_result")
        # versions before 2.1.332 report totals only
        figures = _by_model(since) if since is not None else self._differences(totals)
        self.totals = totals or self.totals
        models = [_model_usage(model, used) for model, used in figures.items()]
        usage: UsageInfo | None = None
        for model in models:
            usage = add_usage(usage, UsageInfo(**model.model_dump(exclude={"model"}), by_model=[model]))
        return usage

    def _differences(self, totals: Mapping[str, JsonObject]) -> dict[str, JsonObject]:
        differences: dict[str, JsonObject] = {}
        for model, total in totals.items():
            before = self.totals.get(model, {})
            rest = {
                name: round(known - (number_in(before.get(name)) or 0), 12)
                for name, value in total.items()
                if (known := number_in(value)) is not None
            }
            if any(rest.get(name) for name in ("inputTokens", "outputTokens", "costUSD")):
                differences[model] = rest
        return differences


class RunningUsage:
    """The figures of a turn that still runs: of each message what came with its start and its end, counted once."""

    def __init__(self) -> None:
        self._begun: dict[str | None, JsonObject] = {}
        self._ended: list[UsageInfo] = []

    def see(self, event: JsonObject, parent: str | None) -> bool:
        """Reads an event of the model's API; true when there is more to tell."""
        if event.get("type") == "message_start":
            self._begun[parent] = object_in(object_in(event.get("message")).get("usage"))
        elif event.get("type") == "message_delta" and parent in self._begun:
            # at the end some servers say nothing, or 0, about the input
            used = self._begun.pop(parent) | {name: n for name, n in object_in(event.get("usage")).items() if n}
            read, written, plain, output = (_count(used, name) for name in _API_FIGURES)
            known = [figure for figure in (read, written, plain) if figure is not None]
            if known or output is not None:
                self._ended.append(UsageInfo(input_tokens=sum(known) if known else None, output_tokens=output))
                return True
        return False

    def total(self, model_calls: int) -> UsageInfo:
        total: UsageInfo | None = None
        for usage in self._ended:
            total = add_usage(total, usage)
        return add_usage(total, UsageInfo(model_calls=model_calls)) or UsageInfo()


def _by_model(value: JsonValue) -> dict[str, JsonObject]:
    if not isinstance(value, dict):
        return {}
    models = cast(dict[str, JsonValue], value)
    return {without_surrogates(model): object_in(figures) for model, figures in models.items()}


def _model_usage(model: str, used: JsonObject) -> ModelUsage:
    read, written, plain = (
        _count(used, name) for name in ("cacheReadInputTokens", "cacheCreationInputTokens", "inputTokens")
    )
    known = [figure for figure in (read, written, plain) if figure is not None]
    return ModelUsage(
        model=model,
        input_tokens=sum(known) if known else None,
        cached_input_tokens=read,
        cache_write_tokens=written,
        output_tokens=_count(used, "outputTokens"),
        reasoning_tokens=_count(used, "thinkingTokens"),
        cost_usd=number_in(used.get("costUSD")),
    )


def _count(used: JsonObject, name: str) -> int | None:
    value = number_in(used.get(name))
    return None if value is None else int(value)


def _first_text(*values: JsonValue) -> str | None:
    return next((text for value in values if (text := plain_text_in(value))), None)
