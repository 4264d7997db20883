"""What a turn asks the shell to do, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.contract.requests import HostRequest, HostResponse


@dataclass(frozen=True, slots=True)
class Deliver:
    """Hand this answer to the peer; at most one per request."""

    request: HostRequest
    response: HostResponse


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Ask the peer to stop; at most one per turn, and no `Deliver` after it."""


Effect: TypeAlias = Deliver | Interrupt
