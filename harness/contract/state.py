"""What a poll returns, and what the directory lists."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from harness.contract.content import ContentBlock
from harness.contract.output import ErrorInfo, OutputItem, StopReason, TurnStatus
from harness.contract.requests import HostRequest
from harness.contract.usage import UsageInfo
from harness.contract.value import OPEN, Label, Value


class SessionState(StrEnum):
    ATTACHED = "attached"
    DETACHED = "detached"


class TurnState(Value):
    """A turn at item `sequence_no`: status, pending requests, usage and error are those at that number.

    A terminal status never comes with `has_more`. Items before `first_sequence_no` are no longer complete.
    """

    status: Annotated[TurnStatus | str, OPEN]
    stop_reason: Annotated[StopReason | str | None, OPEN] = None
    sequence_no: int
    first_sequence_no: int = 1
    has_more: bool = False
    new_output_items: list[OutputItem] = []
    pending_requests: list[HostRequest] = []
    usage: UsageInfo | None = None
    conversation_usage: UsageInfo | None = None
    structured_output_json: str | None = None
    session: Annotated[SessionState | str, OPEN] = SessionState.ATTACHED
    cancel_requested: bool = False
    last_activity_at: int
    started_at: int
    ended_at: int | None = None
    error: ErrorInfo | None = None


class ConversationState(StrEnum):
    OPEN = "open"
    PARKED = "parked"
    ENDED = "ended"


class ConversationInfo(Value):
    conversation_id: str
    state: Annotated[ConversationState | str, OPEN]
    connector: str
    model: str | None = None
    created_at: int
    updated_at: int
    turns: int = 0
    first_message: str | None = None
    pending_requests: int = 0
    labels: list[Label] = []


class TurnTranscript(Value):
    """One turn of an export: what the user said and the whole stream as far as it is kept."""

    turn_id: str
    content: list[ContentBlock]
    items: list[OutputItem]


class ConversationExport(Value):
    conversation: ConversationInfo
    turns: list[TurnTranscript]
