"""One turn, read as the replies it is answered by (pure): several, where the client's tools are called in between."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.contract.content import text_of
from harness.contract.output import (
    TERMINAL,
    ItemDiscarded,
    Message,
    OutputItem,
    RequestOpened,
    StopReason,
    TextDelta,
    ThinkingDelta,
    TurnStatus,
)
from harness.contract.requests import HostRequest
from harness.contract.state import TurnState
from harness.contract.usage import UsageInfo
from harness.errors import HarnessError, Internal, from_code
from harness.surfaces.compatible.exchange import (
    GAP,
    DiscardedPart,
    ReplyEnd,
    ReplyEnded,
    ReplyFailed,
    ReplyPart,
    TextPart,
    ThinkingPart,
)
from harness.surfaces.compatible.reply_usage import usage_between

_Saying: TypeAlias = type[TextPart] | type[ThinkingPart]
_ENDS: dict[str | None, ReplyEnd] = {
    StopReason.MAX_TOKENS: ReplyEnd.MAX_TOKENS,
    StopReason.MAX_TURNS: ReplyEnd.MAX_TOKENS,
    StopReason.BUDGET: ReplyEnd.MAX_TOKENS,
    StopReason.REFUSAL: ReplyEnd.REFUSAL,
}


@dataclass(eq=False)
class TurnReading:
    """Where the replies of one turn have come to."""

    turn_id: str
    schema_json: str | None = None
    """Of the answer, where one is wanted: what is said besides is then held back until the reply ends."""
    seen: int = 0
    told: set[str] = field(default_factory=set[str])
    """Requests that a reply has told of, by their ids."""
    says_something: bool = False
    """Whether what was read last belongs to the message that the peer is at."""
    _streamed: set[str | None] = field(default_factory=set[str | None])
    _last: dict[_Saying, str | None] = field(default_factory=dict[_Saying, str | None])
    """The item that was told last in this reply, of each kind of part."""
    _held: list[ReplyPart] = field(default_factory=list[ReplyPart])
    _usage: UsageInfo | None = None
    _usage_before: UsageInfo | None = None

    def begin_reply(self) -> None:
        self._last = {}
        self._usage_before = self._usage

    def read(self, state: TurnState) -> list[ReplyPart]:
        """What a poll brought, and the end where the turn has ended."""
        self.seen = state.sequence_no
        self._usage = state.usage or self._usage
        self.says_something = False
        parts = [part for item in state.new_output_items for part in self._parts(item)]
        if self.schema_json is not None:
            self._held += parts
            parts = []
        if state.status not in TERMINAL:
            return parts
        return [*parts, *self._last_words(state), self._ended(state)]

    def called(self) -> list[ReplyPart]:
        """What was held back, where the reply ends with calls."""
        held, self._held = self._held, []
        return held

    def untold(self, state: TurnState) -> list[HostRequest]:
        """Open requests that no reply has told of, in the order in which the model made them."""
        return [request for request in state.pending_requests if request.request_id not in self.told]

    def cost(self) -> UsageInfo | None:
        """What the reply has used so far."""
        return usage_between(self._usage_before, self._usage)

    def _parts(self, item: OutputItem) -> list[ReplyPart]:
        match item:
            case TextDelta(parent_call_id=None, item_id=item_id, text=text):
                self._streamed.add(item_id)
                return self._said(TextPart, text, item_id)
            case ThinkingDelta(parent_call_id=None, item_id=item_id, text=text):
                return self._said(ThinkingPart, text, item_id)
            case Message(parent_call_id=None, item_id=item_id, content=content):
                if item_id in self._streamed:  # it repeats what came piece by piece
                    if item_id is None:
                        self._streamed.discard(None)
                    return []
                return self._said(TextPart, text_of(content), item_id)
            case ItemDiscarded(item_id=str(item_id)):
                self._streamed.discard(item_id)
                return [*self._closed(item_id), DiscardedPart(item_id)]
            case RequestOpened():
                self.says_something = True
                return []
            case _:
                return []

    def _said(self, kind: _Saying, text: str, item_id: str | None) -> list[ReplyPart]:
        self.says_something = True
        if not text:
            return []
        gap = [kind(GAP, self._last[kind])] if self._last.get(kind, item_id) != item_id else []
        self._last[kind] = item_id
        return [*gap, kind(text, item_id)]

    def _closed(self, item_id: str) -> list[ReplyPart]:
        """For those who have seen it, what is discarded ends with a gap, which goes with it for all others."""
        kinds = [kind for kind, last in self._last.items() if last == item_id]
        for kind in kinds:
            del self._last[kind]
        return [kind(GAP, item_id) for kind in kinds]

    def _last_words(self, state: TurnState) -> list[ReplyPart]:
        held = self.called()
        return [TextPart(state.structured_output_json)] if state.structured_output_json is not None else held

    def _ended(self, state: TurnState) -> ReplyPart:
        if state.status == TurnStatus.COMPLETED:
            return ReplyEnded(_ENDS.get(state.stop_reason, ReplyEnd.END_TURN), self.cost())
        return ReplyFailed(_error_of(state))


def _error_of(state: TurnState) -> HarnessError:
    if state.status == TurnStatus.CANCELLED:
        return Internal("the turn was cancelled", reason="cancelled")
    if state.error is None:
        return Internal("the turn failed without saying why")
    return from_code(state.error.code, state.error.message, json.loads(state.error.detail_json or "{}"))
