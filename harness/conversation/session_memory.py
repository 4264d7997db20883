"""The `SessionLog` of a conversation: what its sessions remember, in memory and in the journal where there is one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.connector import AcceptedAnswer
from harness.contract.value import JsonValue
from harness.conversation.journal import Journal
from harness.store.port import Remembered
from harness.turn.events import OutputProduced


class SessionMemory:
    """Private to the connector; outlives the session, and with a journal the process."""

    def __init__(self, records: Sequence[JsonValue] = ()) -> None:
        self.journal: Journal | None = None
        self.accepted: Callable[[], Sequence[AcceptedAnswer]] = tuple
        """What the host has answered in the restored turn, as of now."""
        self._records: list[JsonValue] = list(records)
        self._notices: list[OutputProduced] = []

    def append(self, record: JsonValue) -> None:
        self._records.append(record)
        if self.journal is not None:
            self.journal.note(Remembered(record))

    def records(self) -> Sequence[JsonValue]:
        return tuple(self._records)

    def answers(self) -> Sequence[AcceptedAnswer]:
        return self.accepted()

    def notice(self, event: OutputProduced) -> None:
        self._notices.append(event)

    def take_notices(self) -> list[OutputProduced]:
        notices, self._notices = self._notices, []
        return notices
