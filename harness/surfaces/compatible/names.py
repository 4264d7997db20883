"""Names of tools that are longer on a wire than the contract's (pure): providers take 128 characters, we 64."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

_LONGEST = 64
_HASH_CHARS = 8


def long_names(names: Iterable[str]) -> Mapping[str, str]:
    """The client's own names of its tools, by those that an agent gets, where the two differ."""
    return {inner_name(name): name for name in names if len(name) > _LONGEST}


def inner_name(name: str) -> str:
    """What an agent gets: the same for the same name in every request, so that a history stays equal to itself."""
    if len(name) <= _LONGEST:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_CHARS]
    return f"{name[: _LONGEST - _HASH_CHARS - 1]}_{digest}"
