"""What a turn's end, or a broken call, means for a shell: the table of the contract, section 3."""

from __future__ import annotations

from harness.contract.output import StopReason, TurnStatus
from harness.errors import ConnectorUnavailable, TurnStalled, TurnTimeout

SUCCESS = 0
FAILURE = 1
USAGE = 2
UNAVAILABLE = 3
CUT_SHORT = 4
REFUSED = 5
TIMED_OUT = 124
CANCELLED = 130

_OF_STOP_REASON = {
    StopReason.MAX_TOKENS: CUT_SHORT,
    StopReason.MAX_TURNS: CUT_SHORT,
    StopReason.BUDGET: CUT_SHORT,
    StopReason.REFUSAL: REFUSED,
    StopReason.CANCELLED: CANCELLED,
}
_OF_ERROR = {
    ConnectorUnavailable.code: UNAVAILABLE,
    TurnTimeout.code: TIMED_OUT,
    TurnStalled.code: TIMED_OUT,
}


def exit_code(status: TurnStatus | str, stop_reason: StopReason | str | None, error_code: str | None = None) -> int:
    """The exit code of a finished turn; a broken call exits like a failed turn with its code."""
    if status == TurnStatus.COMPLETED:
        return _OF_STOP_REASON.get(stop_reason, SUCCESS) if isinstance(stop_reason, StopReason) else SUCCESS
    if status == TurnStatus.CANCELLED:
        return CANCELLED
    return _OF_ERROR.get(error_code or "", FAILURE)
