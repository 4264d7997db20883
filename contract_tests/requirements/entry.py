"""One promised behaviour."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Requirement:
    """One behaviour.

    `source` says where it comes from: an id from the field ("R-B1"), a section of the contract, a link to a
    specification, or "ours". `known_gap` says what does not hold yet, in words a user understands.
    """

    id: str
    sentence: str
    source: str
    known_gap: str | None = None
