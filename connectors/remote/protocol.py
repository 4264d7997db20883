"""A conversation here <-> one of another harness (pure).

The wire is our own native one, so values stay as they are. What differs: deadlines and lost peers are each level's own.
"""

from __future__ import annotations

import json
from typing import cast

from connectors.remote.config import RemoteConfig
from harness.contract.capabilities import LlmCapabilities, Resume
from harness.contract.options import ConversationOptions, Timeouts
from harness.contract.output import (
    TERMINAL,
    Item,
    Notice,
    OutputItem,
    RequestOpened,
    RequestResolved,
    StopReason,
    TurnEnded,
    TurnStatus,
    Usage,
)
from harness.contract.requests import HostRequest
from harness.contract.state import TurnState
from harness.errors import HarnessError, PeerLost, PeerProtocolError, from_code
from harness.turn import events
from harness.turn.events import OutputProduced, RequestRaised, RequestWithdrawn, TurnEvent, UsageReported

LATER_MS = 30_000
"""Deadlines of the other side come this much after ours: the host's own decide, the others are for when we are gone."""

_GIVEN_ANEW = frozenset({"kind", *Item.model_fields}) - {"item_id", "parent_call_id"}


def options_onward(options: ConversationOptions, config: RemoteConfig, client_key: str | None) -> ConversationOptions:
    """What the other harness is asked for. The caller's own client key stays here: other callers may have the same."""
    return options.model_copy(
        update={
            "connector": config.connector,
            "model": options.model or config.model,
            "connector_options_json": json.dumps(config.options) if config.options else None,
            "client_key": client_key,
            "timeouts": _later(options.timeouts),
        }
    )


def capabilities_here(there: LlmCapabilities) -> LlmCapabilities:
    """What the other harness can do, this one can do with it; except to go on with a turn that broke off here."""
    resume = Resume.NONE if there.resume == Resume.NONE else Resume.CONTINUED
    return there.model_copy(update={"resume": resume, "fork": False})


def _later(timeouts: Timeouts) -> Timeouts:
    values = {name: getattr(timeouts, name) for name in Timeouts.model_fields}
    return Timeouts(**{name: None if value is None else value + LATER_MS for name, value in values.items()})


class TurnReader:
    """One turn of the other harness as events of ours; remembers which requests are open."""

    def __init__(self) -> None:
        self.since = 0
        self.is_over = False
        self._open: dict[str, HostRequest] = {}
        self._cancelled = False

    def receive(self, state: TurnState) -> list[TurnEvent]:
        """What came with one poll.

        Raises:
            HarnessError: the turn failed there; code, message and detail as they are.
        """
        self.since = state.sequence_no
        told = [event for item in state.new_output_items for event in self._events(item)]
        if state.status not in TERMINAL or state.has_more:
            return told
        self.is_over = True
        if state.status == TurnStatus.CANCELLED and self._cancelled:
            return [*told, events.TurnEnded(StopReason.CANCELLED)]
        if state.status == TurnStatus.COMPLETED:
            return [*told, events.TurnEnded(state.stop_reason or StopReason.END_TURN, state.structured_output_json)]
        return [*told, events.TurnFailed(_failure(state))]

    def answer(self, request: HostRequest) -> str | None:
        """The host has answered: the other harness's id of the request, null when it no longer waits."""
        found = next((rid for rid, one in self._open.items() if one.peer_request_id == request.peer_request_id), None)
        if found is not None:
            del self._open[found]
        return None if self.is_over or self._cancelled else found

    def cancel(self) -> None:
        """The host has cancelled: the requests are closed by that, on both sides."""
        self._cancelled = True

    def _events(self, item: OutputItem) -> list[TurnEvent]:
        match item:
            case RequestOpened(request=request):
                return [self._raised(request)]
            case RequestResolved(request_id=request_id):
                request = self._open.pop(request_id, None)
                return [] if request is None else [RequestWithdrawn(request.peer_request_id or "")]
            case Usage(usage=usage):
                return [UsageReported(usage)]
            case Notice(code="cancel_requested"):
                return []  # told here by the turn itself
            case TurnEnded():
                return []  # the state has all of it
            case _:
                return [_produced(item)]

    def _raised(self, request: HostRequest) -> RequestRaised:
        named = request.peer_request_id or request.request_id
        here = request.model_copy(update={"peer_request_id": named, "opened_at": 0, "expires_at": None})
        self._open[request.request_id] = here
        return RequestRaised(here)


def _produced(item: OutputItem) -> OutputProduced:
    fields = {name: getattr(item, name) for name in type(item).model_fields if name not in _GIVEN_ANEW}
    if item.model_extra:  # of a newer contract
        fields |= {"kind": item.kind, **item.model_extra}
    return OutputProduced(type(item), fields)


def _failure(state: TurnState) -> HarnessError:
    if state.status == TurnStatus.CANCELLED:
        return PeerLost("the turn was cancelled on the other harness, by nobody here")
    if state.error is None:
        return PeerProtocolError(f"the other harness ended the turn as '{state.status}' without an error")
    detail = cast(dict[str, object], json.loads(state.error.detail_json or "{}"))
    return from_code(state.error.code, state.error.message, detail)
