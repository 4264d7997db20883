"""The way a conversation has come through harnesses that stand on each other, so that none stands on itself (pure).

Every harness has an id of its own and adds it when it calls onward. Ids, not addresses: one server has many addresses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.errors import InvalidArgument

HOPS_HEADER = "Harness-Hops"
MAX_HOPS = 8
"""More harnesses on top of each other are a mistake, not a plan."""

_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def read_hops(header: str | None) -> tuple[str, ...]:
    """What the header lists, first to last."""
    return tuple(one.strip() for one in header.split(",")) if header else ()


def write_hops(hops: Sequence[str]) -> str:
    return ", ".join(hops)


def joined(first: Sequence[str], second: Sequence[str]) -> tuple[str, ...]:
    """The way told twice, by a header and by the options, as one."""
    return (*first, *(one for one in second if one not in first))


def passed_on(hops: Sequence[str], own: str) -> tuple[str, ...]:
    """The way with this harness at its end.

    Raises:
        InvalidArgument: it has come through here before, or through too many; or that is no way.
    """
    strange = next((one for one in hops if not _ID.fullmatch(one)), None)
    if strange is not None:
        raise InvalidArgument(f"{strange[:80]!r} in '{HOPS_HEADER}' is no id of a harness")
    way = " -> ".join((*hops, own))
    if own in hops:
        raise InvalidArgument(
            f"these harnesses stand on each other in a circle ({way}): give one of them another connector",
            hops=[*hops, own],
        )
    if len(hops) >= MAX_HOPS:
        raise InvalidArgument(f"more than {MAX_HOPS} harnesses stand on each other ({way})", hops=[*hops, own])
    return (*hops, own)
