"""The journal of this user's conversations: where it is, and how it is opened."""

from __future__ import annotations

from pathlib import Path

from harness.cli.configuration import JournalChoice
from harness.errors import ConfigError
from harness.server_record import APPLICATION
from harness.store import SqliteStore, Store

MEMORY = "memory"


def default_journal() -> Path:
    from platformdirs import user_state_path

    return user_state_path(APPLICATION) / "journal.db"


def journal_for(typed: str | None, choice: JournalChoice) -> Store | None:
    """The journal that was typed, else the configured one, else the user's own; null where none is wanted."""
    name = typed or choice.store
    if name == MEMORY:
        return None
    return SqliteStore(default_journal() if name is None else Path(name).expanduser(), choice.durability)


def journal_at(typed: str | None, choice: JournalChoice) -> Store:
    """For commands that are about the journal.

    Raises:
        ConfigError: there is to be none.
    """
    store = journal_for(typed, choice)
    if store is None:
        raise ConfigError("there is no journal: --store, HARNESS_STORE or [journal] says 'memory'", key="store")
    return store
