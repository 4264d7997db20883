"""The end of a turn, and every error, in the client's words (pure)."""

from __future__ import annotations

import json

from harness.contract.output import ErrorInfo, StopReason, TurnStatus
from harness.contract.usage import UsageInfo
from harness.errors import (
    ConnectorUnavailable,
    ContentNotSupported,
    HarnessError,
    Internal,
    InvalidArgument,
    NotSupported,
    ProviderError,
    TurnInProgress,
    UnknownId,
)
from harness.orchestrator.completion import Completion, error_of
from harness.surfaces.acp_agent.names import META
from harness.wire.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, JsonObject, RpcFault

AUTH_REQUIRED = -32000
RESOURCE_NOT_FOUND = -32002

_STOP_REASONS: dict[str, str] = {
    StopReason.END_TURN: "end_turn",
    StopReason.MAX_TOKENS: "max_tokens",
    StopReason.MAX_TURNS: "max_turn_requests",
    StopReason.BUDGET: "max_turn_requests",  # the nearest that there is: the turn was cut off by a limit
    StopReason.REFUSAL: "refusal",
    StopReason.CANCELLED: "cancelled",
}


def answer_of(completion: Completion) -> JsonObject:
    """The answer to a prompt.

    Raises:
        HarnessError: the turn failed.
    """
    if completion.status == TurnStatus.FAILED:
        raise error_of(completion.error or ErrorInfo(code="internal", message="the turn failed without a word why"))
    # a reason of a newer contract is an end like another: the client knows only these
    told = _STOP_REASONS.get(str(completion.stop_reason), "end_turn")
    meta: JsonObject = {"stopReason": str(completion.stop_reason), "turnId": completion.turn_id}
    answer: JsonObject = {"stopReason": told}
    usage = completion.usage
    if usage is not None:
        meta["usage"] = usage.to_dict()
        answer.update(_usage(usage))
    return {**answer, "_meta": {META: meta}}


def fault_of(error: HarnessError) -> RpcFault:
    """The code is the nearest that the protocol has; ours is in the data, with all that is known."""
    data: JsonObject = {"code": error.code, "message": error.message, "retryable": error.retryable}
    if error.detail_json is not None:
        data["detail"] = json.loads(error.detail_json)
    return RpcFault(_code(error), error.message, data)


def internal_fault() -> RpcFault:
    return fault_of(Internal("an internal error; stderr of the agent has the details"))


def _usage(usage: UsageInfo) -> JsonObject:
    """Only where both directions are known: the protocol has no word for a figure that nobody reported."""
    if usage.input_tokens is None or usage.output_tokens is None:
        return {}
    figures = {
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "thoughtTokens": usage.reasoning_tokens,
        "cachedReadTokens": usage.cached_input_tokens,
        "cachedWriteTokens": usage.cache_write_tokens,
    }
    return {"usage": {name: value for name, value in figures.items() if value is not None}}


def _code(error: HarnessError) -> int:
    reason = error.detail.get("reason")
    is_login = isinstance(error, ConnectorUnavailable) and reason == "not_logged_in"
    if is_login or (isinstance(error, ProviderError) and reason == "auth"):
        return AUTH_REQUIRED
    match error:
        case UnknownId():
            return RESOURCE_NOT_FOUND
        case InvalidArgument() | NotSupported() | ContentNotSupported():
            return INVALID_PARAMS
        case TurnInProgress():
            return INVALID_REQUEST
        case _:
            return INTERNAL_ERROR
