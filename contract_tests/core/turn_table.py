"""The transitions of a turn as a table: `{(before, what happens): after}`. What is not in it cannot happen.

`cancelling` is what callers see as `running` with `cancel_requested`. A finished turn never changes: its three rows
are built from the list of everything that may still arrive.
"""

from __future__ import annotations

RUNNING, AWAITING_HOST, CANCELLING = "running", "awaiting_host", "cancelling"
COMPLETED, FAILED, CANCELLED = "completed", "failed", "cancelled"

WHILE_OPEN: dict[tuple[str, str], str] = {
    # nothing waits for the host
    (RUNNING, "output produced"): RUNNING,
    (RUNNING, "usage reported"): RUNNING,
    (RUNNING, "request raised"): AWAITING_HOST,
    (RUNNING, "unknown request withdrawn"): RUNNING,
    (RUNNING, "resolved request answered"): RUNNING,
    (RUNNING, "resolved request expires"): RUNNING,
    (RUNNING, "peer ends"): COMPLETED,
    (RUNNING, "peer says cancelled"): CANCELLED,
    (RUNNING, "peer fails"): FAILED,
    (RUNNING, "we give up"): FAILED,
    (RUNNING, "host cancels"): CANCELLING,
    # at least one request is open
    (AWAITING_HOST, "output produced"): AWAITING_HOST,
    (AWAITING_HOST, "usage reported"): AWAITING_HOST,
    (AWAITING_HOST, "request raised"): AWAITING_HOST,
    (AWAITING_HOST, "open request raised again"): AWAITING_HOST,
    (AWAITING_HOST, "last request answered"): RUNNING,
    (AWAITING_HOST, "one of several answered"): AWAITING_HOST,
    (AWAITING_HOST, "request answered badly"): AWAITING_HOST,
    (AWAITING_HOST, "resolved request answered"): AWAITING_HOST,
    (AWAITING_HOST, "last request withdrawn"): RUNNING,
    (AWAITING_HOST, "one of several withdrawn"): AWAITING_HOST,
    (AWAITING_HOST, "unknown request withdrawn"): AWAITING_HOST,
    (AWAITING_HOST, "last request expires"): RUNNING,
    (AWAITING_HOST, "one of several expires"): AWAITING_HOST,
    (AWAITING_HOST, "resolved request expires"): AWAITING_HOST,
    (AWAITING_HOST, "peer ends"): COMPLETED,
    (AWAITING_HOST, "peer says cancelled"): CANCELLED,
    (AWAITING_HOST, "peer fails"): FAILED,
    (AWAITING_HOST, "we give up"): FAILED,
    (AWAITING_HOST, "host cancels"): CANCELLING,
    # between the host's cancel and the end: whatever the peer calls its end, it is a cancel
    (CANCELLING, "output produced"): CANCELLING,
    (CANCELLING, "usage reported"): CANCELLING,
    (CANCELLING, "request raised"): CANCELLING,
    (CANCELLING, "unknown request withdrawn"): CANCELLING,
    (CANCELLING, "resolved request answered"): CANCELLING,
    (CANCELLING, "resolved request expires"): CANCELLING,
    (CANCELLING, "host cancels"): CANCELLING,
    (CANCELLING, "peer ends"): CANCELLED,
    (CANCELLING, "peer says cancelled"): CANCELLED,
    (CANCELLING, "peer fails"): CANCELLED,
    (CANCELLING, "we give up"): CANCELLED,
}

LATE = (
    "output produced",
    "usage reported",
    "request raised",
    "unknown request withdrawn",
    "resolved request answered",
    "resolved request expires",
    "peer ends",
    "peer says cancelled",
    "peer fails",
    "we give up",
    "host cancels",
)

TRANSITIONS: dict[tuple[str, str], str] = {
    **WHILE_OPEN,
    **{(status, late): status for status in (COMPLETED, FAILED, CANCELLED) for late in LATE},
}
