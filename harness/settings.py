"""Limits of this process and rights of a caller; the values a server or an embedding program may change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from harness.turn.log import DEFAULT_MAX_BYTES, DEFAULT_MAX_ITEMS
from harness.turn.turn import DEFAULT_MAX_TURN_BYTES


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens of a model cost, in USD; `model` may have wildcards."""

    model: str
    input: float
    output: float
    cached_input: float | None = None
    cache_write: float | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Bounds in seconds, items and bytes. Defaults are those of the contract."""

    idle_ttl_seconds: float = 3600.0
    """An idle conversation's peer is closed after this; without a journal the conversation is forgotten too."""
    interrupt_seconds: float = 15.0
    """How long a session may take to stop its peer before it is abandoned."""
    settle_seconds: float = 5.0
    """How long a session may take to return from a turn whose peer has stopped."""
    max_turn_items: int = DEFAULT_MAX_ITEMS
    max_window_bytes: int = DEFAULT_MAX_BYTES
    max_turn_bytes: int = DEFAULT_MAX_TURN_BYTES
    kept_turns: int = 50
    """Finished turns of a conversation that are kept in memory; older ones only the journal has."""
    max_sessions: int | None = None
    """Peers that run at the same time. The one that was idle longest makes room, and resumes with its next message."""
    prices: tuple[Price, ...] = ()
    """What models cost whose provider does not say; the first that fits counts."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What a caller may name. A remote caller never chooses a program (design 10)."""

    programs: bool = True
    """Commands, files, environment and targets in connector options and tool sources; modes that widen."""
    cwd_roots: tuple[Path, ...] | None = None
    """Directories a conversation may work in; None means any."""
