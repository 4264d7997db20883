"""What a scenario claims. No bare `assert`: it must hold without pytest and under `python -O`, and speak plainly."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")

_SHOWN_CHARS = 300


class Divergence(AssertionError):
    """A connector did something else than the contract promises; the text says what, for people."""


def same(what: str, found: Any, wanted: Any) -> None:
    """Raises:
    Divergence: `found` is something else.
    """
    if found != wanted:
        raise Divergence(f"{what}: expected {_shown(wanted)}, found {_shown(found)}")


def holds(what: str, fact: object, found: Any = None) -> None:
    """`what` is the claim; `found` is shown where it does not hold.

    Raises:
        Divergence: it does not hold.
    """
    if not fact:
        raise Divergence(what if found is None else f"{what}; found {_shown(found)}")


def only(what: str, found: list[T]) -> T:
    """The one of its kind.

    Raises:
        Divergence: there are none or several.
    """
    if len(found) != 1:
        raise Divergence(f"{what}: expected exactly one, found {len(found)}: {_shown(found)}")
    return found[0]


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}... ({len(text)} characters)"
