"""A harness that is killed and comes back: several lives on one journal."""

from __future__ import annotations

import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from contract_tests.core.conversations import open_house
from contract_tests.llm_suite import Peer
from harness.local import LocalHarness, wall_clock
from harness.settings import Settings
from harness.store import SqliteStore


class Journal:
    """The file of a test; `kill` makes the file that a process leaves which is killed now."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._deaths = 0

    @property
    def path(self) -> Path:
        return self._directory / f"life{self._deaths}" / "journal.db"

    def kill(self) -> None:
        """The next life sees what is durable now. What this one does from now on is of another world."""
        before = self.path
        self._deaths += 1
        self.path.parent.mkdir(mode=0o700)
        for suffix in ("", "-wal"):  # the lock files stay behind: their process is dead
            file = before.with_name(before.name + suffix)
            if file.exists():
                shutil.copy(file, self.path.with_name(self.path.name + suffix))


class LateClock:
    """The wall clock, so many milliseconds ahead."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms

    def __call__(self) -> int:
        return wall_clock() + self.ahead_ms


@asynccontextmanager
async def life(
    journal: Journal,
    script: object,
    peer: Peer | None = None,
    *,
    resume: str = "exact",
    style: str = "emit",
    clock: LateClock | None = None,
    settings: Settings | None = None,
    seconds: float = 10,
    **options: Any,
) -> AsyncGenerator[LocalHarness]:
    """A harness on the journal whose peer follows the script."""
    whole = {"turns": script, "resume": resume, "style": style, "repeat": True}
    async with open_house(
        whole,
        peer,
        settings=settings,
        clock=clock or wall_clock,
        store=SqliteStore(journal.path),
        seconds=seconds,
        **options,
    ) as llm:
        yield llm
