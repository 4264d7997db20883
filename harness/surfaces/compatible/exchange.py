"""What every provider's wire comes down to: one request with the whole history, one reply that grows."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from harness.contract.options import HistoryMessage, TurnOptions
from harness.contract.tools import ToolCall, ToolDescriptor
from harness.contract.usage import UsageInfo
from harness.errors import HarnessError


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request of a client, in the contract's own values."""

    model: str
    """As the client names it: `<connector>` or `<connector>/<model>`, the connector with its variant."""
    system_prompt: str | None
    messages: tuple[HistoryMessage, ...]
    """Oldest first and never empty. The last one is what is new: the user's message, tool results, or both."""
    tools: tuple[ToolDescriptor, ...] = ()
    options: TurnOptions = field(default_factory=TurnOptions)
    ignored: tuple[str, ...] = ()
    """Names of given hints that reach nobody, in the client's words."""
    previous_reply: str | None = None
    """The reply that this one continues, by id, where the wire has that; `messages` then holds only what is new."""
    streams: bool = False


class ReplyEnd(StrEnum):
    """Why a reply is complete."""

    END_TURN = "end_turn"
    TOOL_CALLS = "tool_calls"
    MAX_TOKENS = "max_tokens"
    REFUSAL = "refusal"


@dataclass(frozen=True, slots=True)
class TextPart:
    """More text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """More of what the model thought."""

    text: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """A complete call of one of the client's tools; the client answers it in its next request."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class ReplyEnded:
    """The last part of a good reply."""

    end: ReplyEnd
    usage: UsageInfo | None
    """What this reply cost: the difference to the reply before it in the same turn."""


@dataclass(frozen=True, slots=True)
class ReplyFailed:
    """The last part of a reply that broke."""

    error: HarnessError


ReplyPart: TypeAlias = TextPart | ThinkingPart | CallPart | ReplyEnded | ReplyFailed
