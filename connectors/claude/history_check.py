"""Whether a session that was taken up again has the history it should have. Pure, but for what looks into the file.

Before the model is asked the CLI names its transcript to a hook of ours; our earlier messages stand in it by their ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from connectors._json import JsonObject, object_in, text_in
from harness.turn.events import TurnEvent, notice

HOOK_ID = "history"
HOOKS: JsonObject = {"UserPromptSubmit": [{"hookCallbackIds": [HOOK_ID]}]}

FindsIn: TypeAlias = Callable[[str, Sequence[str]], Sequence[str]]
"""Which of these texts stand in the file of this name."""


class HistoryCheck:
    """Looks once, at the first message of a process that resumes; `expected` are our earlier messages, in order."""

    def __init__(self, expected: Sequence[str], finds_in: FindsIn) -> None:
        self._expected = expected
        self._finds_in = finds_in
        self.is_due = bool(expected)

    def hook_called(self, body: JsonObject) -> list[TurnEvent]:
        if not self.is_due:
            return []
        self.is_due = False
        found = self._finds_in(text_in(object_in(body.get("input")).get("transcript_path")), self._expected)
        if self._expected[-1] in found:
            return []
        what = "its newest turns" if found else "every turn so far"
        return [notice("history_lost", f"Claude Code took up the session without {what}: the model does not know them")]

    def turn_over(self) -> list[TurnEvent]:
        """The CLI did not call the hook."""
        if not self.is_due:
            return []
        self.is_due = False
        return [notice("history_unverified", "Claude Code did not show which history it took up")]
