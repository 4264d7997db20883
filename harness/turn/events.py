"""What a connector may tell a turn. Plain data: built by a pure `protocol.py`, consumed by `Turn.receive`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.contract.output import (
    InternalToolFinished,
    InternalToolStarted,
    ItemDiscarded,
    Message,
    Notice,
    Plan,
    Raw,
    StopReason,
    TextDelta,
    ThinkingDelta,
)

if TYPE_CHECKING:
    from harness.contract.content import ContentBlock
    from harness.contract.output import Item, PlanEntry
    from harness.contract.requests import HostRequest
    from harness.contract.usage import UsageInfo
    from harness.errors import HarnessError

INTERNAL_RESULT_LIMIT = 8192
"""Characters of an internal tool's result that are shown."""


@dataclass(frozen=True, slots=True)
class OutputProduced:
    """An item to be; the turn gives its number and time, so that the value is built once.

    Made by the functions below, one per kind of item.
    """

    item: type[Item]
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RequestRaised:
    """The peer waits for the host. The connector leaves `request_id` and the times empty (`HostRequest`)."""

    request: HostRequest


@dataclass(frozen=True, slots=True)
class RequestWithdrawn:
    """The peer no longer waits; named as the peer names it."""

    peer_request_id: str


@dataclass(frozen=True, slots=True)
class UsageReported:
    """What the turn has used so far: a total of this turn, not a difference."""

    usage: UsageInfo


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The peer's end of the turn."""

    stop_reason: StopReason | str = StopReason.END_TURN
    structured_output_json: str | None = None


@dataclass(frozen=True, slots=True)
class TurnFailed:
    error: HarnessError


TurnEvent: TypeAlias = OutputProduced | RequestRaised | RequestWithdrawn | UsageReported | TurnEnded | TurnFailed


def text_delta(text: str, *, item_id: str | None = None, parent_call_id: str | None = None) -> OutputProduced:
    return OutputProduced(TextDelta, {"text": text, "item_id": item_id, "parent_call_id": parent_call_id})


def thinking_delta(text: str, *, item_id: str | None = None, parent_call_id: str | None = None) -> OutputProduced:
    return OutputProduced(ThinkingDelta, {"text": text, "item_id": item_id, "parent_call_id": parent_call_id})


def message(
    content: Sequence[ContentBlock],
    *,
    phase: str | None = None,
    item_id: str | None = None,
    parent_call_id: str | None = None,
) -> OutputProduced:
    fields = {"content": list(content), "phase": phase, "item_id": item_id, "parent_call_id": parent_call_id}
    return OutputProduced(Message, fields)


def item_discarded(item_id: str, reason: str) -> OutputProduced:
    """A peer restarted a message: what was streamed of `item_id` does not count."""
    return OutputProduced(ItemDiscarded, {"item_id": item_id, "reason": reason})


def internal_tool_started(
    call_id: str,
    tool_name: str,
    *,
    arguments_json: str | None = None,
    source: str | None = None,
    parent_call_id: str | None = None,
) -> OutputProduced:
    fields = {
        "call_id": call_id,
        "tool_name": tool_name,
        "arguments_json": arguments_json,
        "source": source,
        "parent_call_id": parent_call_id,
    }
    return OutputProduced(InternalToolStarted, fields)


def internal_tool_finished(
    call_id: str,
    result: str,
    *,
    result_text: str | None = None,
    duration_ms: int | None = None,
    parent_call_id: str | None = None,
) -> OutputProduced:
    """The text is cut at 8 KB here, so that every connector cuts alike."""
    truncated = result_text is not None and len(result_text) > INTERNAL_RESULT_LIMIT
    fields = {
        "call_id": call_id,
        "result": result,
        "result_text": result_text[:INTERNAL_RESULT_LIMIT] if result_text is not None else None,
        "truncated": truncated,
        "duration_ms": duration_ms,
        "parent_call_id": parent_call_id,
    }
    return OutputProduced(InternalToolFinished, fields)


def plan(entries: Sequence[PlanEntry]) -> OutputProduced:
    return OutputProduced(Plan, {"entries": list(entries)})


def notice(code: str, text: str) -> OutputProduced:
    return OutputProduced(Notice, {"code": code, "text": text})


def raw(channel: str, direction: str, text: str) -> OutputProduced:
    return OutputProduced(Raw, {"channel": channel, "direction": direction, "text": text})
