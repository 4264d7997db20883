"""The journal's port: what a conversation leaves behind, and who may write it.

Append-only. Nothing of a database shows here, so that another one can take SQLite's place. An append names the epoch
under which the conversation was claimed; once another process has claimed it, the append is fenced off.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol, TypeAlias

from harness.contract.content import ContentBlock
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.output import Item
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import ConversationState
from harness.contract.value import JsonValue


class AnswerState(StrEnum):
    """How far an accepted answer came: recorded, on its way, surely handed to the peer."""

    ACCEPTED = "accepted"
    DELIVERING = "delivering"
    DELIVERED = "delivered"


@dataclass(frozen=True, slots=True)
class TurnBegun:
    turn_id: str
    content: Sequence[ContentBlock]
    options: TurnOptions
    at: int


@dataclass(frozen=True, slots=True)
class ItemsProduced:
    turn_id: str
    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class AnswerRecorded:
    """The host's answer as it was accepted; `state` is what the same commit already knows about its delivery."""

    turn_id: str
    response: HostResponse
    state: AnswerState


@dataclass(frozen=True, slots=True)
class AnswerDelivered:
    turn_id: str
    request_id: str


@dataclass(frozen=True, slots=True)
class OutputStructured:
    turn_id: str
    structured_output_json: str


@dataclass(frozen=True, slots=True)
class Remembered:
    """A record of the connector's `SessionLog`."""

    record: JsonValue


@dataclass(frozen=True, slots=True)
class DelegationChanged:
    delegation_json: str


Entry: TypeAlias = (
    TurnBegun | ItemsProduced | AnswerRecorded | AnswerDelivered | OutputStructured | Remembered | DelegationChanged
)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a list shows without reading the entries; given with every append."""

    state: ConversationState = ConversationState.OPEN
    updated_at: int = 0
    turns: int = 0
    first_message: str | None = None
    turn_is_running: bool = False
    open_requests: Sequence[OpenRequest] = ()

    @property
    def facts(self) -> tuple[object, ...]:
        """Everything but the time, which changes with every append."""
        return (self.turn_is_running, self.turns, self.state, self.first_message, list(self.open_requests))


@dataclass(frozen=True, slots=True)
class ConversationRecord:
    """A conversation as it was begun, with its latest summary. `capabilities_json` are those it was begun with."""

    conversation_id: str
    owner: str
    connector: str
    options: ConversationOptions
    capabilities_json: str
    created_at: int
    summary: Summary = field(default_factory=Summary)


class Store(AbstractAsyncContextManager["Store"], Protocol):
    """Enter it before use; leaving it releases what this process holds.

    Every method raises `Internal` with a clear message when the medium fails (full, locked, unreadable).
    """

    async def create(self, record: ConversationRecord) -> tuple[ConversationRecord, int | None]:
        """The new conversation and its epoch, claimed by this process.

        An existing one with the owner's `client_key` is returned instead, unclaimed (epoch null).
        """
        ...

    async def claim(self, conversation_id: str) -> int:
        """The epoch under which this process may append from now on.

        Raises:
            ConversationInUse: a live process holds it.
        """
        ...

    async def release(self, conversation_id: str, epoch: int) -> None:
        """This process no longer holds it; harmless when it does not."""
        ...

    async def append(self, conversation_id: str, epoch: int, entries: Sequence[Entry], summary: Summary) -> None:
        """All of it or nothing, durable when this returns.

        Raises:
            ConversationInUse: another process has claimed it since (fenced).
        """
        ...

    async def find(self, conversation_id: str, owner: str) -> ConversationRecord | None: ...

    async def find_client_key(self, owner: str, client_key: str) -> ConversationRecord | None: ...

    async def list_conversations(self, owner: str) -> list[ConversationRecord]:
        """Most recently used first."""
        ...

    async def list_requests(self, owner: str) -> list[OpenRequest]: ...

    async def held(self) -> dict[str, str]:
        """The conversations that live processes hold, with the name of the process."""
        ...

    async def abandoned(self) -> list[ConversationRecord]:
        """Those whose holder is dead, and those given back in the middle of a turn; of every owner."""
        ...

    async def entries(self, conversation_id: str) -> list[Entry]:
        """Everything, in the order it was appended."""
        ...

    async def remembered(self, conversation_id: str) -> list[JsonValue]:
        """The records of its `SessionLog` alone."""
        ...

    async def items(self, conversation_id: str, turn_id: str, since: int, limit: int) -> list[Item]:
        """Items of one turn after `since`, oldest first."""
        ...

    async def sizes(self, owner: str) -> dict[str, int]:
        """How much of the medium each conversation takes, in characters; what several share counts for each."""
        ...

    async def delete(self, conversation_id: str) -> None:
        """Forgets it, and what only it used."""
        ...
