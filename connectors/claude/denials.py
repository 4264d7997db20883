"""Stops a model that calls again and again what the policy denies, unseen by the host. Pure."""

from __future__ import annotations

import json

from connectors._json import JsonObject
from harness.errors import LoopGuard

LIMIT = 3


class Denials:
    """Counts the equal denials of one turn; those of the host are counted where its answers are.

    A model that hears only no has been seen to go on for hundreds of calls, where nobody was there to stop it.
    """

    def __init__(self) -> None:
        self.tripped: LoopGuard | None = None
        """What the turn fails with once one call was denied too often."""
        self._counts: dict[str, int] = {}

    def note(self, tool_name: str, arguments: JsonObject) -> bool:
        """Notes a denial; true when it should be the last word of the turn."""
        key = json.dumps([tool_name, arguments], sort_keys=True)
        self._counts[key] = self._counts.get(key, 0) + 1
        if self._counts[key] >= LIMIT:
            told = f"the model asked for '{tool_name}' with the same arguments {LIMIT} times, and was denied each time"
            self.tripped = LoopGuard(told, tool_name=tool_name)
        return self.tripped is not None
