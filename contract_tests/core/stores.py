"""The stores that the suite runs against, and entries to keep in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from contract_tests.core.contract_samples import BLOCKS, ITEMS, OPTIONS, POLICY, REQUEST, SOURCE
from harness.contract import (
    ConversationOptions,
    Delegation,
    HostResponse,
    LlmCapabilities,
    OpenRequest,
    TextDelta,
    TurnOptions,
)
from harness.store import (
    AnswerDelivered,
    AnswerRecorded,
    AnswerState,
    ConversationRecord,
    DelegationChanged,
    Entry,
    ItemsProduced,
    MemoryStore,
    OutputStructured,
    Remembered,
    SqliteStore,
    Store,
    Summary,
    TurnBegun,
)

STORES = ("memory", "sqlite", "sqlite-power")
ANSWER = HostResponse(request_id="a1", content=BLOCKS, is_error=True, reason="no")
EVERY_ENTRY: list[Entry] = [
    DelegationChanged(Delegation(tool_sources=[SOURCE], request_policy=POLICY).to_json()),
    TurnBegun("t1", BLOCKS, TurnOptions(client_key="k", tool_names=[], temperature=0.5), 7),
    Remembered({"session_id": "s", "numbers": [1, 2.5, -0.0, None, True], "deep": {"a": [{}]}}),
    *[ItemsProduced("t1", [item]) for item in ITEMS],
    AnswerRecorded("t1", ANSWER, AnswerState.DELIVERING),
    AnswerDelivered("t1", "a1"),
    OutputStructured("t1", '{"a":1}'),
    Remembered("just text"),
]


@dataclass
class Medium:
    """Where a store keeps its conversations; each `open` is what another process would open."""

    kind: str
    open: Callable[[], Store]


def medium(kind: str, directory: Path) -> Medium:
    if kind == "memory":
        first = MemoryStore()
        return Medium(kind, lambda: MemoryStore(first))
    path = directory / "state" / "journal.db"
    return Medium(kind, lambda: SqliteStore(path, "power" if kind == "sqlite-power" else "process"))


def record(conversation_id: str = "c_1", *, owner: str = "o", client_key: str | None = None) -> ConversationRecord:
    options = ConversationOptions(connector="fake", client_key=client_key)
    return ConversationRecord(conversation_id, owner, "fake", options, LlmCapabilities().to_json(), 5, Summary())


def full_record() -> ConversationRecord:
    waiting = OpenRequest(conversation_id="c_1", turn_id="t1", request=REQUEST)
    summary = Summary(updated_at=9, turns=2, first_message="Grüße", turn_is_running=True, open_requests=(waiting,))
    return replace(record(), options=OPTIONS, summary=summary)


def delta(number: int, text: str = "x", turn_id: str = "t1") -> ItemsProduced:
    return ItemsProduced(turn_id, [TextDelta(sequence_no=number, at=0, text=text)])


def flat(entries: list[Entry]) -> list[Entry]:
    """One entry per item: how many a store keeps together is its own business."""
    return [
        part
        for entry in entries
        for part in (
            [ItemsProduced(entry.turn_id, [item]) for item in entry.items]
            if isinstance(entry, ItemsProduced)
            else [entry]
        )
    ]
