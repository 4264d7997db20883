"""The numbered stream of a turn. Status, pending requests and usage at N are a function of items 1..N."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Discriminator, Field, Tag

from harness.contract.content import ContentBlock
from harness.contract.requests import AnsweredBy, HostRequest, RequestOutcome
from harness.contract.usage import UsageInfo
from harness.contract.value import OPEN, JsonValue, Value


class TurnStatus(StrEnum):
    RUNNING = "running"
    AWAITING_HOST = "awaiting_host"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


TERMINAL = frozenset({TurnStatus.COMPLETED, TurnStatus.FAILED, TurnStatus.CANCELLED})


class StopReason(StrEnum):
    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURNS = "max_turns"
    BUDGET = "budget"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"
    ERROR = "error"


class Phase(StrEnum):
    COMMENTARY = "commentary"
    FINAL = "final"


class InternalToolResult(StrEnum):
    OK = "ok"
    FAILED = "failed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class PlanEntryStatus(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"


class ErrorInfo(Value):
    """An error as data: the code of the tree in `harness.errors`."""

    code: str
    message: str
    retryable: bool = False
    detail_json: str | None = None


class Item(Value):
    """What every item has: its number in the turn, when it was seen (ms since the epoch), and where it belongs.

    `item_id` ties deltas to their message; `parent_call_id` names the call of the subagent that produced it.
    """

    sequence_no: int
    at: int
    item_id: str | None = None
    parent_call_id: str | None = None


class TextDelta(Item):
    kind: Literal["text_delta"] = "text_delta"
    text: str


class ThinkingDelta(Item):
    kind: Literal["thinking_delta"] = "thinking_delta"
    text: str


class Message(Item):
    """A whole message. It may follow requests of the same model message; `item_id` tells where its deltas were."""

    kind: Literal["message"] = "message"
    content: list[ContentBlock]
    phase: Annotated[Phase | str | None, OPEN] = None


class ItemDiscarded(Item):
    """The peer restarted a message: the deltas of `item_id` do not count."""

    kind: Literal["item_discarded"] = "item_discarded"
    reason: str


class RequestOpened(Item):
    kind: Literal["request_opened"] = "request_opened"
    request: HostRequest


class RequestResolved(Item):
    kind: Literal["request_resolved"] = "request_resolved"
    request_id: str
    outcome: Annotated[RequestOutcome | str, OPEN]
    is_error: bool = False
    answered_by: Annotated[AnsweredBy | str | None, OPEN] = None


class InternalToolStarted(Item):
    """The peer runs a tool of its own, or of a delegated source."""

    kind: Literal["internal_tool_started"] = "internal_tool_started"
    call_id: str
    tool_name: str
    arguments_json: str | None = None
    source: str | None = None


class InternalToolFinished(Item):
    """`result_text` is cut at 8 KB; `truncated` says so."""

    kind: Literal["internal_tool_finished"] = "internal_tool_finished"
    call_id: str
    result: Annotated[InternalToolResult | str, OPEN]
    result_text: str | None = None
    truncated: bool = False
    duration_ms: int | None = None


class PlanEntry(Value):
    text: str
    status: Annotated[PlanEntryStatus | str, OPEN] = PlanEntryStatus.PENDING


class Plan(Item):
    kind: Literal["plan"] = "plan"
    entries: list[PlanEntry]


class Usage(Item):
    """What the turn has used so far; the last one counts."""

    kind: Literal["usage"] = "usage"
    usage: UsageInfo


class Notice(Item):
    """Something a host should know: retry, rate_limit, compacted, cancel_requested, unknown_peer_event ..."""

    kind: Literal["notice"] = "notice"
    code: str
    text: str


class Raw(Item):
    """Raw traffic of the peer, only with `output_detail: raw`."""

    kind: Literal["raw"] = "raw"
    channel: str
    direction: str
    text: str


class TurnEnded(Item):
    kind: Literal["turn_ended"] = "turn_ended"
    status: Annotated[TurnStatus | str, OPEN]
    stop_reason: Annotated[StopReason | str, OPEN]
    error: ErrorInfo | None = None


_KNOWN = frozenset(
    {
        "text_delta",
        "thinking_delta",
        "message",
        "item_discarded",
        "request_opened",
        "request_resolved",
        "internal_tool_started",
        "internal_tool_finished",
        "plan",
        "usage",
        "notice",
        "raw",
        "turn_ended",
    }
)


class UnknownItem(Item):
    """An item of a newer contract; its raw fields are kept and written back."""

    model_config = ConfigDict(extra="allow")

    # in the schema too, or an item of a known kind would fit two branches of the union
    kind: Annotated[str, Field(json_schema_extra={"not": {"enum": [*sorted(_KNOWN)]}})]


def _item_tag(value: JsonValue) -> str:
    kind: object = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return kind if isinstance(kind, str) and kind in _KNOWN else "unknown"


OutputItem: TypeAlias = Annotated[
    Annotated[TextDelta, Tag("text_delta")]
    | Annotated[ThinkingDelta, Tag("thinking_delta")]
    | Annotated[Message, Tag("message")]
    | Annotated[ItemDiscarded, Tag("item_discarded")]
    | Annotated[RequestOpened, Tag("request_opened")]
    | Annotated[RequestResolved, Tag("request_resolved")]
    | Annotated[InternalToolStarted, Tag("internal_tool_started")]
    | Annotated[InternalToolFinished, Tag("internal_tool_finished")]
    | Annotated[Plan, Tag("plan")]
    | Annotated[Usage, Tag("usage")]
    | Annotated[Notice, Tag("notice")]
    | Annotated[Raw, Tag("raw")]
    | Annotated[TurnEnded, Tag("turn_ended")]
    | Annotated[UnknownItem, Tag("unknown")],
    Discriminator(_item_tag),
]
