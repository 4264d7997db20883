"""A turn as simply as it can be said: what the host must see and what the peer must get, one line per rule.

It keeps lists of tuples and nothing else, so that it cannot share a mistake with the real one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from contract_tests.core.turn_table import AWAITING_HOST, CANCELLED, CANCELLING, COMPLETED, FAILED, RUNNING
from harness.contract import HostRequest, HostResponse, Item, UsageInfo
from harness.turn import Deliver, Effect

Fact = tuple[Any, ...]

OUTCOME_AT_END = {COMPLETED: "withdrawn", CANCELLED: "cancelled", FAILED: "lost"}


@dataclass
class TurnModel:
    stream: list[Fact] = field(default_factory=list[Fact])
    """What the host must see, item by item."""
    effects: list[Fact] = field(default_factory=list[Fact])
    """What the shell must be told and has not been given yet."""
    open: dict[str, HostRequest] = field(default_factory=dict[str, HostRequest])
    answers: dict[str, HostResponse | None] = field(default_factory=dict[str, HostResponse | None])
    """The resolved requests, with the host's answer where there was one."""
    is_cancelling: bool = False
    end: str | None = None

    @property
    def status(self) -> str:
        if self.end is not None:
            return self.end
        return CANCELLING if self.is_cancelling else AWAITING_HOST if self.open else RUNNING

    def show(self, *facts: Fact) -> None:
        if self.end is None:
            self.stream += facts

    def raise_(self, request: HostRequest) -> None:
        peer_ids = {one.peer_request_id for one in self.open.values()}
        if self.end is None and not self.is_cancelling and request.peer_request_id not in peer_ids:
            self.open[request.request_id] = request
            self.show(("request_opened", request.request_id))

    def resolve(
        self,
        request_id: str,
        outcome: str,
        by: str | None,
        is_error: bool = False,
        response: HostResponse | None = None,
    ) -> None:
        del self.open[request_id]
        self.answers[request_id] = response
        self.show(("request_resolved", request_id, outcome, by, is_error))

    def deliver(self, request_id: str, is_error: bool) -> None:
        self.effects.append(("deliver", request_id, is_error))

    def withdraw(self, peer_request_id: str) -> None:
        for request_id in [i for i, one in self.open.items() if one.peer_request_id == peer_request_id]:
            self.resolve(request_id, "withdrawn", "peer")

    def cancel(self) -> None:
        if self.status in (RUNNING, AWAITING_HOST):
            self.show(("notice", "cancel_requested"))
            self.is_cancelling = True
            self.close("cancelled")
            self.effects.append(("interrupt",))

    def finish(self, status: str, stop_reason: str, error: str | None, by_us: bool = False) -> None:
        if self.end is not None:
            return
        interrupts = [effect for effect in self.effects if effect == ("interrupt",)]
        if by_us:
            self.effects = interrupts if self.is_cancelling else [("interrupt",)]
        else:
            self.effects = []
        if self.is_cancelling:
            status, stop_reason, error = CANCELLED, "cancelled", None
        self.close(OUTCOME_AT_END[status])
        self.show(("turn_ended", status, stop_reason, error))
        self.end = status

    def close(self, outcome: str) -> None:
        for request_id in in_order(self.open):
            self.resolve(request_id, outcome, None)


def in_order(requests: dict[str, HostRequest]) -> list[str]:
    """As the model asked: by `order`, those without one last, in the order they came."""
    ordered = sorted((i for i in requests if requests[i].order is not None), key=lambda i: requests[i].order or 0)
    return ordered + [i for i in requests if requests[i].order is None]


def fact(item: Item) -> Fact:
    """An item as the model writes it."""
    values: dict[str, Any] = dict(item)
    match values["kind"]:
        case "request_opened":
            return "request_opened", values["request"].request_id
        case "request_resolved":
            return "request_resolved", *(values[n] for n in ("request_id", "outcome", "answered_by", "is_error"))
        case "usage":
            return "usage", values["usage"].output_tokens
        case "notice":
            return "notice", values["code"]
        case "turn_ended":
            error = values["error"]
            return "turn_ended", values["status"], values["stop_reason"], error.code if error else None
        case kind:
            return kind, values["item_id"], values["text"]


def effect_fact(effect: Effect) -> Fact:
    if isinstance(effect, Deliver):
        return "deliver", effect.request.request_id, effect.response.is_error
    return ("interrupt",)


@dataclass
class Folded:
    """What follows from items 1..N, computed from the stream alone."""

    pending: dict[str, HostRequest] = field(default_factory=dict[str, HostRequest])
    usage: UsageInfo | None = None
    cancel_requested: bool = False
    status: str = RUNNING
    stop_reason: str | None = None
    error_code: str | None = None


def fold(items: list[Item]) -> Folded:
    folded = Folded()
    for item in items:
        values: dict[str, Any] = dict(item)
        match values["kind"]:
            case "request_opened":
                folded.pending[values["request"].request_id] = values["request"]
            case "request_resolved":
                del folded.pending[values["request_id"]]
            case "usage":
                folded.usage = values["usage"]
            case "notice":
                folded.cancel_requested = folded.cancel_requested or values["code"] == "cancel_requested"
            case "turn_ended":
                folded.status, folded.stop_reason = values["status"], values["stop_reason"]
                folded.error_code = values["error"].code if values["error"] else None
                return folded
            case _:
                pass
    folded.status = AWAITING_HOST if folded.pending else RUNNING
    return folded
