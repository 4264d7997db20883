"""Why a request got no ordinary answer."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class RefusalKind(StrEnum):
    DENIED = "denied"
    """By policy."""
    REJECTED = "rejected"
    """By a person."""
    APPROVAL_UNAVAILABLE = "approval_unavailable"
    """Nobody was there to ask."""
    APPROVAL_TIMEOUT = "approval_timeout"
    INVALID_ARGUMENTS = "invalid_arguments"
    REPEATED_CALL = "repeated_call"
    REPEATED_ERROR = "repeated_error"
    TIMED_OUT = "timed_out"


@dataclass(frozen=True, slots=True)
class Refusal:
    kind: RefusalKind
    text: str
