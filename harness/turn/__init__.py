"""The sans-I/O heart: a pure turn, its events and its effects."""

from harness.turn.effects import Deliver, Effect, Interrupt
from harness.turn.events import (
    OutputProduced,
    RequestRaised,
    RequestWithdrawn,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    UsageReported,
)
from harness.turn.turn import Turn

__all__ = [
    "Deliver",
    "Effect",
    "Interrupt",
    "OutputProduced",
    "RequestRaised",
    "RequestWithdrawn",
    "Turn",
    "TurnEnded",
    "TurnEvent",
    "TurnFailed",
    "UsageReported",
]
