"""The numbered items of one turn, as far as they are kept in memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from operator import attrgetter

from harness.contract.output import Item, Raw, TextDelta, ThinkingDelta

DEFAULT_MAX_ITEMS = 10_000
DEFAULT_MAX_BYTES = 16 * 1024 * 1024
_DISPOSABLE = (TextDelta, ThinkingDelta, Raw)
_number: Callable[[Item], int] = attrgetter("sequence_no")


class TurnLog:
    """Keeps every item until a limit; then the oldest deltas leave, and `first_sequence_no` says so.

    Items that carry state (messages, requests, usage, the end) always stay, so a late poll can resynchronise.
    """

    def __init__(self, max_items: int = DEFAULT_MAX_ITEMS, max_bytes: int = DEFAULT_MAX_BYTES) -> None:
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._items: list[Item] = []
        self._weights: list[int] = []
        self._kept_bytes = 0
        self._evict_above = (max_items, max_bytes)
        self.head = 0
        """The number of the newest item."""
        self.first_sequence_no = 1
        """From here on the stream is complete."""
        self.total_bytes = 0
        """What the turn has produced in all, kept or not."""

    def append(self, item: Item, weight: int) -> None:
        self._items.append(item)
        self._weights.append(weight)
        self.head = item.sequence_no
        self._kept_bytes += weight
        self.total_bytes += weight
        if len(self._items) > self._evict_above[0] or self._kept_bytes > self._evict_above[1]:
            self._evict()

    def between(self, since: int, upto: int, max_items: int) -> list[Item]:
        """The kept items with `since < sequence_no <= upto`, oldest first, at most `max_items`."""
        start = bisect_right(self._items, since, key=_number)
        end = bisect_right(self._items, upto, key=_number)
        return self._items[start : min(end, start + max_items)]

    def _evict(self) -> None:
        surplus_items = len(self._items) - self._max_items
        surplus_bytes = self._kept_bytes - self._max_bytes
        kept: list[Item] = []
        weights: list[int] = []
        for item, weight in zip(self._items, self._weights, strict=True):
            if (surplus_items > 0 or surplus_bytes > 0) and isinstance(item, _DISPOSABLE):
                surplus_items -= 1
                surplus_bytes -= weight
                self._kept_bytes -= weight
                self.first_sequence_no = item.sequence_no + 1
            else:
                kept.append(item)
                weights.append(weight)
        self._items, self._weights = kept, weights
        # a tenth above what is left before the next pass, so that eviction costs a constant per item
        self._evict_above = (
            int(max(len(kept), self._max_items) * 1.1),
            int(max(self._kept_bytes, self._max_bytes) * 1.1),
        )
