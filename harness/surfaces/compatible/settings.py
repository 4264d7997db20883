"""Times and bounds of the surfaces that speak a provider's wire."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SideRequests(StrEnum):
    """What becomes of a request that has no tools and continues nothing known: a title, a probe, or a first message."""

    KEEP = "keep"
    """It is the beginning of a conversation like any other."""
    ANSWER = "answer"
    """It is answered, and its peer ends with the answer."""
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class CompatibleSettings:
    """Bounds in seconds and numbers."""

    quiet_seconds: float = 0.05
    """A reply ends with tool calls when the peer has been silent for so long; a later call is the next message's."""
    recorded_seconds: float = 60.0
    """How long an equal request gets the same reply after it has ended."""
    grace_seconds: float = 10.0
    """How long a reply without a reader goes on before its turn is cancelled: SDKs repeat a call after up to 8 s."""
    stream_grace_seconds: float = 2.0
    """The same once a stream has begun: no SDK repeats a call after that, so who leaves has cancelled."""
    first_look_seconds: float = 0.7
    """A stream's headers wait so long for its beginning: what fails at once is an HTTP status."""
    patience_seconds: float = 45.0
    """A reply in one piece has its status after so long at the latest; white space then keeps the line busy."""
    abandoned_seconds: float = 3600.0
    """How long calls may stay unanswered, and a conversation idle, before its peer ends."""
    max_conversations: int = 500
    """Those of a server that can be continued; the one that was idle longest is ended first."""
    max_recorded: int = 500
    """Replies that are kept for equal requests."""
    parallel_calls: bool = True
    """Peers that run only read-only tools side by side are told that the client's are: which run when is the client's
    business, and all calls of a message come together. Not for a house whose policy has the mode `read_only`."""
    side_requests: SideRequests = SideRequests.KEEP
