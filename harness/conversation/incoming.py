"""What a peer tells, completed with what only the house knows: ids, deadlines, prices, and which texts are secret."""

from __future__ import annotations

from collections.abc import Sequence

from harness.contract.options import Timeouts
from harness.contract.requests import RequestKind
from harness.conversation.identities import Identities
from harness.conversation.prices import priced
from harness.settings import Price
from harness.trace.redaction import Redactor
from harness.turn.events import RequestRaised, TurnEvent, UsageReported
from harness.turn.turn import Turn


class Incoming:
    """Completes the events of one turn before the turn sees them."""

    def __init__(
        self,
        turn: Turn,
        *,
        timeouts: Timeouts,
        identities: Identities,
        model: str | None,
        prices: Sequence[Price],
        redactor: Redactor,
    ) -> None:
        self._turn = turn
        self._timeouts = timeouts
        self._identities = identities
        self._model = model
        self._prices = prices
        self._redactor = redactor

    def completed(self, event: TurnEvent, at: int) -> TurnEvent:
        if isinstance(event, RequestRaised):
            return self._identified(event, at)
        if isinstance(event, UsageReported):
            return UsageReported(priced(event.usage, self._model, self._prices))
        return self._redactor.event(event)

    def _identified(self, event: RequestRaised, at: int) -> RequestRaised:
        request = event.request
        if self._turn.waits_for(request.peer_request_id):
            return event  # raised again: the turn keeps the open one
        is_call = request.kind == RequestKind.TOOL_CALL
        limit = self._timeouts.tool_ms if is_call else self._timeouts.approval_ms
        identity = {
            "request_id": self._identities.request_id(request),
            "opened_at": at,
            "expires_at": None if limit is None else at + limit,
        }
        return RequestRaised(request.model_copy(update=identity))
