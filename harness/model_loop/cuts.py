"""What is left out of a long prompt, as a small value: it only ever grows, so the kept prefix stays the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from harness.contract.value import JsonValue


@dataclass(frozen=True, slots=True)
class Cuts:
    """Indices count entries of the whole history, which itself is never cut."""

    stub_before: int = 0
    """Results of older entries are replaced by a line that names the call."""
    drop_before: int = 0
    """Older entries are left out; one line at the start names the tools called in them."""
    keep: int | None = None
    """The user's message of the turn that was running, kept although it is older than `drop_before`."""
    result_chars: int | None = None
    """Longer results keep only head and tail."""
    summary: str | None = None
    """What the model said about the entries that were left out."""

    def to_record(self) -> dict[str, JsonValue]:
        return asdict(self)

    @staticmethod
    def of_record(record: Mapping[str, JsonValue]) -> Cuts:
        return Cuts(**{name: record.get(name, default) for name, default in Cuts().to_record().items()})
