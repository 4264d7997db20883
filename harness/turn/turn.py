"""The turn: a pure state machine from a user message to a stop reason.

Events of a connector and answers of the host come in; a numbered log and effects go out. No clock (every door takes
`at`), no ids of its own, no lock, no await. Status is a function of two facts: the open requests and the end.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from harness.contract.output import (
    ErrorInfo,
    Item,
    Notice,
    OutputItem,
    RequestOpened,
    RequestResolved,
    StopReason,
    TextDelta,
    ThinkingDelta,
    TurnStatus,
    Usage,
)
from harness.contract.output import TurnEnded as TurnEndedItem
from harness.contract.requests import AnsweredBy, HostRequest, HostResponse, RequestKind, RequestOutcome
from harness.contract.state import SessionState, TurnState
from harness.contract.usage import UsageInfo, add_usage
from harness.errors import AlreadyAnswered, HarnessError, PeerProtocolError, TurnTooLarge, UnknownRequest
from harness.turn import answers
from harness.turn.effects import Deliver, Effect, Interrupt
from harness.turn.events import (
    OutputProduced,
    RequestRaised,
    RequestWithdrawn,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    UsageReported,
)
from harness.turn.log import DEFAULT_MAX_BYTES, DEFAULT_MAX_ITEMS, TurnLog

DEFAULT_MAX_TURN_BYTES = 256 * 1024 * 1024
_DELTAS = (TextDelta, ThinkingDelta)
_OUTCOME_AT_END = {
    TurnStatus.COMPLETED: RequestOutcome.WITHDRAWN,
    TurnStatus.CANCELLED: RequestOutcome.CANCELLED,
    TurnStatus.FAILED: RequestOutcome.LOST,
}


@dataclass(frozen=True, slots=True)
class Mark:
    """The facts of a turn from item `sequence_no` on, until the next mark."""

    sequence_no: int
    pending: tuple[HostRequest, ...] = ()
    usage: UsageInfo | None = None
    cancel_requested: bool = False
    end: TurnEndedItem | None = None
    structured_output_json: str | None = None

    @property
    def status(self) -> TurnStatus | str:
        if self.end is not None:
            return self.end.status
        return TurnStatus.AWAITING_HOST if self.pending else TurnStatus.RUNNING


@dataclass(frozen=True, slots=True)
class Resolution:
    """What became of a request; `response` is the host's where there was one."""

    request: HostRequest
    outcome: RequestOutcome
    response: HostResponse | None = None


class Turn:
    """One turn.

    Doors in: `receive` for the peer; `respond`, `cancel`, `expire`, `stop` and `fail` for the host's side. Doors out:
    `take_effects` and `state`.
    """

    def __init__(
        self,
        *,
        at: int,
        max_items: int = DEFAULT_MAX_ITEMS,
        max_bytes: int = DEFAULT_MAX_BYTES,
        max_turn_bytes: int = DEFAULT_MAX_TURN_BYTES,
    ) -> None:
        self._log = TurnLog(max_items, max_bytes)
        self._max_turn_bytes = max_turn_bytes
        self._marks = [Mark(0)]
        self._open: dict[str, HostRequest] = {}
        self._resolved: dict[str, Resolution] = {}
        self._effects: list[Effect] = []
        self._started_at = at
        self._last_activity_at = at

    @classmethod
    def restored(
        cls,
        items: Sequence[Item],
        responses: Mapping[str, HostResponse],
        *,
        at: int,
        structured_output_json: str | None = None,
        **limits: int,
    ) -> Turn:
        """The turn that left these items behind, with the host's answers by request id."""
        turn = cls(at=at, **limits)
        for item in items:
            if isinstance(item, RequestOpened):
                turn._open[item.request.request_id] = item.request
            elif isinstance(item, RequestResolved):
                request = turn._open.pop(item.request_id)
                by_host = item.answered_by in (AnsweredBy.HOST, AnsweredBy.POLICY)
                response = responses.get(item.request_id) if by_host else None
                turn._resolved[item.request_id] = Resolution(request, RequestOutcome(item.outcome), response)
            turn._log.append(item, _weight(item.__dict__))
            turn._note(item)
            turn._last_activity_at = item.at
        if turn.is_over:
            turn._marks[-1] = replace(turn._mark, structured_output_json=structured_output_json)
        return turn

    # what a shell may look at

    @property
    def head(self) -> int:
        """The number of the newest item."""
        return self._log.head

    @property
    def started_at(self) -> int:
        return self._started_at

    @property
    def last_activity_at(self) -> int:
        return self._last_activity_at

    @property
    def is_over(self) -> bool:
        return self._mark.end is not None

    @property
    def cancel_requested(self) -> bool:
        return self._mark.cancel_requested

    @property
    def usage(self) -> UsageInfo | None:
        return self._mark.usage

    @property
    def structured_output_json(self) -> str | None:
        return self._mark.structured_output_json

    @property
    def first_sequence_no(self) -> int:
        """From here on the items are all in memory."""
        return self._log.first_sequence_no

    @property
    def open_requests(self) -> tuple[HostRequest, ...]:
        """In the order the model asked."""
        return self._mark.pending

    def answered(self) -> list[tuple[HostRequest, HostResponse]]:
        """Each resolved request with what the peer gets for it, in the order they were resolved."""
        made = {RequestOutcome.EXPIRED: answers.expired, RequestOutcome.CANCELLED: answers.cancelled}
        return [
            (
                resolution.request,
                resolution.response or made.get(resolution.outcome, answers.cancelled)(resolution.request),
            )
            for resolution in self._resolved.values()
        ]

    def open_request(self, request_id: str) -> HostRequest | None:
        return self._open.get(request_id)

    def waits_for(self, peer_request_id: str | None) -> bool:
        """Whether a request of that name is open."""
        return peer_request_id is not None and self._open_by_peer_id(peer_request_id) is not None

    def items_after(self, since: int) -> list[Item]:
        """All kept items after `since`, for a journal."""
        return self._log.between(since, self.head, self.head)

    # doors in

    def receive(self, *events: TurnEvent, at: int) -> None:
        """The events of one read. Whatever comes after the end is fenced off.

        Raises:
            PeerProtocolError: a request without the peer's name for it.
        """
        if self.is_over:
            return
        self._last_activity_at = at
        for event in _merged(events):
            if self.is_over:
                return
            match event:
                case OutputProduced(item, fields):
                    self._append(item, at, **fields)
                case RequestRaised(request):
                    self._raise(request, at)
                case RequestWithdrawn(peer_request_id):
                    self._withdraw(peer_request_id, at)
                case UsageReported(usage):
                    self._append(Usage, at, usage=usage)
                case TurnEnded(StopReason.ERROR, _):
                    self._end(
                        TurnStatus.FAILED, StopReason.ERROR, at, error=PeerProtocolError("an error without a name")
                    )
                case TurnEnded(stop_reason, structured_output_json):
                    self._end(TurnStatus.COMPLETED, stop_reason, at, structured_output_json=structured_output_json)
                case TurnFailed(error):
                    self._end(TurnStatus.FAILED, StopReason.ERROR, at, error=error)
            self._check_size(at)

    def respond(self, response: HostResponse, at: int, answered_by: AnsweredBy = AnsweredBy.HOST) -> None:
        """The host's answer to one request. The same answer again, or one that crossed a withdrawal, is a no-op.

        Raises:
            UnknownRequest: no such request in this turn.
            AlreadyAnswered: another answer was accepted before.
            InvalidArgument: the answer does not fit the request.
        """
        request = self._open.get(response.request_id)
        if request is None:
            self._check_second_answer(response)
            return
        outcome = answers.judge(request, response)
        self._last_activity_at = at
        is_error = response.is_error and request.kind == RequestKind.TOOL_CALL
        self._resolve(request, Resolution(request, outcome, response), at, answered_by, is_error)
        self._effects.append(Deliver(request, response))

    def expire(self, request_id: str, at: int) -> None:
        """The deadline of a request passed: the peer gets an error result or a denial. No-op when it is resolved."""
        request = self._open.get(request_id)
        if request is None:
            return
        self._last_activity_at = at
        response = answers.expired(request)
        self._resolve(
            request, Resolution(request, RequestOutcome.EXPIRED), at, AnsweredBy.DEADLINE, is_error=response.is_error
        )
        self._effects.append(Deliver(request, response))

    def cancel(self, at: int) -> None:
        """The host gives up: every open request is cancelled, and one interrupt is asked for. Idempotent."""
        if self.is_over or self.cancel_requested:
            return
        self._append(Notice, at, code="cancel_requested", text="The host asked to cancel the turn.")
        self._close_requests(RequestOutcome.CANCELLED, at)
        self._effects.append(Interrupt())

    def fail(self, error: HarnessError, at: int) -> None:
        """We give up on the peer: the turn ends now and the peer is interrupted; after a cancel it ends `cancelled`."""
        if self.is_over:
            return
        self._end_and_interrupt(TurnStatus.FAILED, StopReason.ERROR, at, error=error)

    def stop(self, stop_reason: StopReason, at: int) -> None:
        """A limit of ours is reached: the turn is complete as it is, and the peer is interrupted."""
        if self.is_over:
            return
        self._end_and_interrupt(TurnStatus.COMPLETED, stop_reason, at)

    # doors out

    def take_effects(self) -> list[Effect]:
        """What the shell must do now, in order; each is given out once."""
        effects, self._effects = self._effects, []
        return effects

    def state(
        self,
        since: int = 0,
        *,
        upto: int | None = None,
        max_items: int = 1000,
        earlier_usage: UsageInfo | None = None,
        session: SessionState = SessionState.ATTACHED,
        older: Sequence[Item] = (),
    ) -> TurnState:
        """The turn as seen by a poll: at most `max_items` after `since`, none after `upto` (what is durable).

        `older` are items from a journal that stand in for those the window no longer has.
        """
        end = self.head if upto is None else min(upto, self.head)
        items = list(older) or self._log.between(since, end, max_items)
        has_more = bool(items) and (bool(older) or len(items) == max_items) and items[-1].sequence_no < end
        sequence_no = items[-1].sequence_no if has_more else max(since, end)
        mark = self._mark_at(min(sequence_no, end))
        over = mark.end
        return TurnState(
            status=mark.status,
            stop_reason=over.stop_reason if over else None,
            sequence_no=sequence_no,
            first_sequence_no=1 if older else self._log.first_sequence_no,
            has_more=has_more,
            new_output_items=cast(list[OutputItem], items),
            pending_requests=list(mark.pending),
            usage=mark.usage,
            conversation_usage=add_usage(earlier_usage, mark.usage),
            structured_output_json=mark.structured_output_json,
            session=session,
            cancel_requested=mark.cancel_requested,
            last_activity_at=self._last_activity_at,
            started_at=self._started_at,
            ended_at=over.at if over else None,
            error=over.error if over else None,
        )

    # inside

    @property
    def _mark(self) -> Mark:
        return self._marks[-1]

    def _mark_at(self, sequence_no: int) -> Mark:
        return self._marks[bisect_right(self._marks, sequence_no, key=lambda mark: mark.sequence_no) - 1]

    def _append(self, kind: type[Item], at: int, **fields: Any) -> None:
        item = kind(sequence_no=self._log.head + 1, at=at, **fields)
        self._log.append(item, _weight(fields))
        self._note(item)

    def _check_size(self, at: int) -> None:
        """Memory stays bounded whatever a peer sends."""
        if self._log.total_bytes > self._max_turn_bytes:
            limit = self._max_turn_bytes / (1024 * 1024)
            self.fail(TurnTooLarge(f"the turn produced more than 'max_turn_bytes' ({limit:g} MiB)"), at)

    def _note(self, item: Item) -> None:
        """Adds a mark where an item changes the facts."""
        match item:
            case RequestOpened() | RequestResolved():
                self._marks.append(replace(self._mark, sequence_no=item.sequence_no, pending=self._pending()))
            case Usage(usage=usage):
                self._marks.append(replace(self._mark, sequence_no=item.sequence_no, usage=usage))
            case Notice(code="cancel_requested"):
                self._marks.append(replace(self._mark, sequence_no=item.sequence_no, cancel_requested=True))
            case TurnEndedItem():
                self._marks.append(replace(self._mark, sequence_no=item.sequence_no, end=item))
            case _:
                pass

    def _pending(self) -> tuple[HostRequest, ...]:
        # sorted() is stable: requests without an order stay in the order they arrived, after the ordered ones
        return tuple(sorted(self._open.values(), key=lambda request: (request.order is None, request.order or 0)))

    def _raise(self, request: HostRequest, at: int) -> None:
        if request.peer_request_id is None:
            raise PeerProtocolError(f"a request of kind '{request.kind}' came without an id")
        if self.cancel_requested or self._open_by_peer_id(request.peer_request_id) is not None:
            return
        self._open[request.request_id] = request
        self._append(RequestOpened, at, request=request)

    def _withdraw(self, peer_request_id: str, at: int) -> None:
        request = self._open_by_peer_id(peer_request_id)
        if request is not None:
            self._resolve(request, Resolution(request, RequestOutcome.WITHDRAWN), at, AnsweredBy.PEER)

    def _open_by_peer_id(self, peer_request_id: str) -> HostRequest | None:
        return next((r for r in self._open.values() if r.peer_request_id == peer_request_id), None)

    def _resolve(
        self,
        request: HostRequest,
        resolution: Resolution,
        at: int,
        answered_by: AnsweredBy | None,
        is_error: bool = False,
    ) -> None:
        del self._open[request.request_id]
        self._resolved[request.request_id] = resolution
        self._append(
            RequestResolved,
            at,
            request_id=request.request_id,
            outcome=resolution.outcome,
            is_error=is_error,
            answered_by=answered_by,
        )

    def _close_requests(self, outcome: RequestOutcome, at: int) -> None:
        for request in self._pending():
            self._resolve(request, Resolution(request, outcome), at, None)

    def _end(
        self,
        status: TurnStatus,
        stop_reason: StopReason | str,
        at: int,
        *,
        error: HarnessError | None = None,
        structured_output_json: str | None = None,
    ) -> None:
        # after a cancel the turn ends cancelled, whatever the peer calls its end
        if self.cancel_requested:
            status, stop_reason, error = TurnStatus.CANCELLED, StopReason.CANCELLED, None
        elif stop_reason == StopReason.CANCELLED:
            status = TurnStatus.CANCELLED
        self._close_requests(_OUTCOME_AT_END[status], at)
        self._effects.clear()
        self._append(TurnEndedItem, at, status=status, stop_reason=stop_reason, error=_info(error))
        self._marks[-1] = replace(self._mark, structured_output_json=structured_output_json)

    def _end_and_interrupt(
        self, status: TurnStatus, stop_reason: StopReason, at: int, error: HarnessError | None = None
    ) -> None:
        # an interrupt that was asked for and not taken yet goes with the other effects when the turn ends
        was_interrupted = self.cancel_requested and not any(isinstance(one, Interrupt) for one in self._effects)
        self._end(status, stop_reason, at, error=error)
        if not was_interrupted:
            self._effects.append(Interrupt())

    def _check_second_answer(self, response: HostResponse) -> None:
        resolution = self._resolved.get(response.request_id)
        if resolution is None:
            raise UnknownRequest(f"no request '{response.request_id}' in this turn")
        if resolution.response is not None and resolution.response != response:
            raise AlreadyAnswered(f"request '{response.request_id}' was answered differently before")


def _info(error: HarnessError | None) -> ErrorInfo | None:
    if error is None:
        return None
    return ErrorInfo(code=error.code, message=error.message, retryable=error.retryable, detail_json=error.detail_json)


def _merged(events: Iterable[TurnEvent]) -> Iterator[TurnEvent]:
    """Joins adjacent deltas of one item: they arrived in one read, so they are one item of the stream."""
    run: list[OutputProduced] = []
    for event in events:
        if isinstance(event, OutputProduced) and event.item in _DELTAS:
            if run and not _continues(run[0], event):
                yield _joined(run)
                run = []
            run.append(event)
            continue
        if run:
            yield _joined(run)
            run = []
        yield event
    if run:
        yield _joined(run)


def _continues(first: OutputProduced, event: OutputProduced) -> bool:
    return (
        event.item is first.item
        and event.fields.get("item_id") == first.fields.get("item_id")
        and event.fields.get("parent_call_id") == first.fields.get("parent_call_id")
    )


def _joined(run: list[OutputProduced]) -> OutputProduced:
    if len(run) == 1:
        return run[0]
    text = "".join(event.fields["text"] for event in run)
    return OutputProduced(run[0].item, {**run[0].fields, "text": text})


def _weight(value: Any) -> int:
    """Roughly the bytes an item takes: its texts and a constant per value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        text = cast(dict[str, Any], value).get("text")
        if isinstance(text, str):  # a delta: there may be hundreds of thousands, and nothing else in it has size
            return 100 + len(text)
        return 100 + sum(_weight(member) for member in cast(dict[str, Any], value).values())
    if isinstance(value, list | tuple):
        return sum(_weight(member) for member in cast(list[Any], value))
    data = getattr(value, "__dict__", None)
    return _weight(data) if data else 0
