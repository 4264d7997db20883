"""What outlives the process: the journal's port and the stores that implement it."""

from harness.store.memory import MemoryStore
from harness.store.port import (
    AnswerDelivered,
    AnswerRecorded,
    AnswerState,
    ConversationRecord,
    DelegationChanged,
    Entry,
    ItemsProduced,
    OutputStructured,
    Remembered,
    Store,
    Summary,
    TurnBegun,
)
from harness.store.sqlite import SqliteStore

__all__ = [
    "AnswerDelivered",
    "AnswerRecorded",
    "AnswerState",
    "ConversationRecord",
    "DelegationChanged",
    "Entry",
    "ItemsProduced",
    "MemoryStore",
    "OutputStructured",
    "Remembered",
    "SqliteStore",
    "Store",
    "Summary",
    "TurnBegun",
]
