"""The turns of one conversation: all are counted, the newest are kept in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.contract.content import ContentBlock
from harness.contract.options import TurnOptions
from harness.contract.usage import UsageInfo, add_usage
from harness.conversation.running_turn import RunningTurn


class TurnList:
    """Oldest first; only the newest can be under way."""

    def __init__(self, keeps: int) -> None:
        self._keeps = keeps
        self._kept: dict[str, RunningTurn] = {}
        self._by_client_key: dict[str, str] = {}
        self.begun = 0
        """How many there ever were."""

    def __iter__(self) -> Iterator[RunningTurn]:
        return iter(list(self._kept.values()))

    def add(self, running: RunningTurn) -> None:
        """Counts it and keeps it; the oldest one makes room."""
        self.note(running.turn_id, running.options)
        self._kept[running.turn_id] = running
        while len(self._kept) > self._keeps:
            del self._kept[next(iter(self._kept))]

    def note(self, turn_id: str, options: TurnOptions) -> None:
        """Counts one that is too old to be kept."""
        self.begun += 1
        if options.client_key is not None:
            self._by_client_key[options.client_key] = turn_id

    def get(self, turn_id: str) -> RunningTurn | None:
        """It, while it is kept."""
        return self._kept.get(turn_id)

    @property
    def newest(self) -> RunningTurn | None:
        return next(reversed(self._kept.values()), None)

    @property
    def current(self) -> RunningTurn | None:
        """The turn that has not ended."""
        newest = self.newest
        return None if newest is None or newest.turn.is_over else newest

    def begun_by(self, content: Sequence[ContentBlock], options: TurnOptions) -> str | None:
        """The turn this submission already began: clients repeat calls after a timeout."""
        if options.client_key is not None:
            return self._by_client_key.get(options.client_key)
        current = self.current
        if current is not None and current.content == list(content) and current.options == options:
            return current.turn_id
        return None

    def usage(self) -> UsageInfo | None:
        """Of all turns together."""
        newest = self.newest
        return None if newest is None else add_usage(newest.earlier_usage, newest.turn.usage)
