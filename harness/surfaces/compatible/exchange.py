"""What every provider's wire comes down to: one request with the whole history, one reply that grows."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Without what the client changes from request to request: another prompt is another conversation."""
    messages: tuple[HistoryMessage, ...]
    """Oldest first and never empty. What follows the last assistant message is new: the user's words, tool results,
    or both; how it is cut into messages does not matter."""
    tools: tuple[ToolDescriptor, ...] = ()
    parallel_calls: bool = True
    """Whether a message may have several calls."""
    options: TurnOptions = field(default_factory=TurnOptions)
    """What the client asks for; what the connector cannot do is refused if it changes the meaning, else ignored."""
    words: Mapping[str, str] = field(default_factory=dict[str, str])
    """What this wire calls a field of `options` where the names differ."""
    ignored: tuple[str, ...] = ()
    """Names of given hints that reach nobody, in the client's words."""
    previous_reply: str | None = None
    """The reply that this one continues, by id, where the wire has that; `messages` then holds only what is new."""
    fingerprint: str = ""
    """Equal requests have the same (`fingerprint_of`); they share one reply. Empty: equal to none."""
    streams: bool = False
    tells_usage: bool = True
    """Whether a stream ends with its usage, where the wire leaves that to the client."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a client says beside its wire, in headers of ours."""

    conversation_id: str | None = None
    """`X-Harness-Conversation`: this conversation and no other."""
    requests_as_calls: bool = False
    """`X-Harness-Requests: tools`: approvals and questions come as calls of `harness_approval`, `harness_question`."""
    wants_new: bool = False
    """`Cache-Control: no-cache`: no recorded reply of an equal request."""


GAP = "\n\n"
"""A part of its own between two items of one reply."""


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
    item_id: str | None = None


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """More of what the model thought."""

    text: str
    item_id: str | None = None


@dataclass(frozen=True, slots=True)
class DiscardedPart:
    """The model began anew: what came under this item does not count. A stream has said it already; others drop it."""

    item_id: str


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


ReplyPart: TypeAlias = TextPart | ThinkingPart | DiscardedPart | CallPart | ReplyEnded | ReplyFailed
