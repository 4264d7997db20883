"""A turn in the shell: the pure `Turn` with its clock, its waiters, its deadlines, and the sink a session writes to."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from harness.connector import AcceptedAnswer, Session, SessionGone
from harness.contract.content import ContentBlock
from harness.contract.options import Limits, Timeouts, TurnOptions
from harness.contract.output import Item, StopReason
from harness.contract.requests import AnsweredBy, HostRequest, HostResponse
from harness.contract.state import SessionState, TurnState
from harness.contract.usage import UsageInfo
from harness.conversation.asks import Asks
from harness.conversation.deadlines import Clock, Deadlines
from harness.conversation.given_answers import GivenAnswers
from harness.conversation.identities import Identities
from harness.conversation.incoming import Incoming
from harness.conversation.journal import Journal
from harness.conversation.limit_watch import Finding, LimitWatch
from harness.conversation.publication import Publication
from harness.conversation.recovery import PastTurn, open_calls
from harness.errors import (
    HarnessError,
    Internal,
    PeerLost,
    PeerProtocolError,
    unwrapped,
)
from harness.settings import Settings
from harness.trace.redaction import Redactor
from harness.turn.effects import Deliver, Effect
from harness.turn.events import (
    OutputProduced,
    RequestRaised,
    RequestWithdrawn,
    TurnEnded,
    TurnEvent,
    TurnFailed,
    item_discarded,
)
from harness.turn.turn import Turn

logger = logging.getLogger(__name__)


AnswersFirst: TypeAlias = Callable[[HostRequest], HostResponse | None]
"""A policy of this house that answers before any host is asked; null leaves the request open."""


class RunningTurn:
    """The `TurnSink` of one turn, and what polls and answers reach.

    The turn may outlive its session's readiness: it exists before the peer was started, and a cancel then ends it at
    once.
    """

    def __init__(
        self,
        turn_id: str,
        content: Sequence[ContentBlock],
        options: TurnOptions,
        *,
        timeouts: Timeouts,
        identities: Identities,
        settings: Settings,
        clock: Clock,
        earlier_usage: UsageInfo | None,
        limits: Limits | None = None,
        model: str | None = None,
        answers_first: AnswersFirst | None = None,
        redactor: Redactor | None = None,
        journal: Journal | None = None,
        answers_are_history: bool = False,
        past: PastTurn | None = None,
    ) -> None:
        self.turn_id = turn_id
        self.content = list(content)
        self.options = options
        self.earlier_usage = earlier_usage
        bounds = {
            "max_items": settings.max_turn_items,
            "max_bytes": settings.max_window_bytes,
            "max_turn_bytes": settings.max_turn_bytes,
        }
        if past is None:
            self.turn = Turn(at=clock(), **bounds)
        else:
            self.turn = Turn.restored(
                past.items, past.responses, at=past.at, structured_output_json=past.structured_output_json, **bounds
            )
        self._reached_session = past is not None and past.reached_session
        self.is_restored = False
        """The turn goes on where an earlier process left it (`resume: exact`)."""
        self.session_is_usable = True
        """False once the session must be left after this turn."""
        self.lost: PeerLost | None = None
        """Set when the turn failed because its peer was lost."""
        self.is_left = False
        """This process is about to end and leaves the turn to the next one: nothing changes it here any more."""
        self.session_was_gone = False
        """The peer was dead before the message was sent; the turn runs in a new session, once."""
        self._tried_before = False
        self._given = GivenAnswers(turn_id, journal, are_history=answers_are_history)
        self._published = Publication(turn_id, self.turn, journal, release=self._release, shown=self._on_shown)
        self.deadlines = Deadlines(self.turn, timeouts, clock)
        self._incoming = Incoming(
            self.turn,
            timeouts=timeouts,
            identities=identities,
            model=options.model or model,
            prices=settings.prices,
            redactor=redactor or Redactor(),
        )
        self._asks = Asks()
        self._when_answered: Callable[[], None] | None = None
        self._settings = settings
        self._clock = clock
        self._session: Session | None = None
        self._group: TaskGroup | None = None
        self._opening: anyio.CancelScope | None = None
        self._run_scope = anyio.CancelScope()
        self._run_returned = anyio.Event()
        self._interrupt_returned = False
        self._answers_first = answers_first
        self._watch = LimitWatch(limits or Limits(), earlier_usage)
        self._seen = 0
        """Items up to this number the watch has seen."""
        self._look_at_new_items()

    # what the host reaches

    async def wait_newer(self, since: int, max_wait_ms: int) -> None:
        """Returns when an item after `since` is visible or the turn is over, or after `max_wait_ms`."""
        await self._published.wait_newer(since, max_wait_ms)

    @property
    def is_over(self) -> bool:
        """Whether the end can be seen."""
        return self._published.is_over

    def state(self, since: int, max_items: int, older: Sequence[Item] = ()) -> TurnState:
        return self.turn.state(
            since,
            upto=self._published.visible,
            max_items=max_items,
            earlier_usage=self.earlier_usage,
            session=SessionState.DETACHED if self.is_restored else SessionState.ATTACHED,
            # a commit may be further than what it has made visible
            older=[item for item in older if item.sequence_no <= self._published.visible],
        )

    def respond(self, response: HostResponse, answered_by: AnsweredBy = AnsweredBy.HOST) -> None:
        """The answer is judged and noted now; it is durable, and on its way, once the journal has written it."""
        request = self.turn.open_request(response.request_id)
        self.turn.respond(response, self._clock(), answered_by)
        if request is not None:
            self._given.accept(request, response, has_session=self._session is not None)
        self._keep_limits()
        self._publish()

    def cancel(self) -> None:
        self.turn.cancel(self._clock())
        self._publish()

    def fail(self, error: HarnessError) -> None:
        """We give up: the turn ends now and the peer is interrupted."""
        self.turn.fail(error, self._clock())
        self._publish()

    def fail_by_peer(self, error: HarnessError) -> None:
        """The peer, or what stands for it, failed; the detail of `peer_lost` lists what was open."""
        if isinstance(error, PeerLost):
            error.detail.setdefault("open_requests", open_calls(self.turn.open_requests, self._given.pending()))
            self.lost = error
        self.emit(TurnFailed(error))

    # TurnSink

    def emit(self, *events: TurnEvent) -> None:
        if self.is_left:
            return
        self._published.hold_back_from(event.peer_request_id for event in events if isinstance(event, RequestWithdrawn))
        at = self._clock()
        received = [self._incoming.completed(event, at) for event in events]
        self.turn.receive(*received, at=at)
        self._keep_limits()
        self._publish()
        if self._answers_first is not None:
            for event in received:
                if isinstance(event, RequestRaised):
                    self._answer_first(event.request, self._answers_first)

    @asynccontextmanager
    async def ask(self, request: HostRequest) -> AsyncGenerator[HostResponse]:
        peer_id = request.peer_request_id
        if peer_id is None:
            raise PeerProtocolError(f"a request of kind '{request.kind}' came without an id")
        with self._asks.joined(peer_id, request) as parked:
            try:
                if parked.waiters == 1:
                    self.emit(RequestRaised(request))
                if self.turn.is_over or self._interrupt_returned:
                    parked.release()
                await parked.answered.wait()
            except BaseException:
                if parked.waiters == 1:
                    self.emit(RequestWithdrawn(peer_id))
                raise
        yield parked.response
        self._given.note_delivered(parked.request_id)

    # what the conversation drives

    @contextmanager
    def opening(self) -> Generator[None]:
        """Until `opened`, a cancel or a deadline of the turn gives up the start of the peer."""
        self.deadlines.note_served()
        with anyio.CancelScope() as self._opening:
            yield
        self._opening = None

    def opened(self) -> None:
        """The peer is ready: from now on a cancel goes through the session."""
        self._opening = None

    async def drive(self, session: Session) -> None:
        """Runs the turn in this session until the peer's end, our deadline or a cancel."""
        if self._watch.exhausted is not None:
            self.turn.stop(self._watch.exhausted, self._clock())
            self._publish()
        if self.turn.is_over or self.is_left:
            return
        self.deadlines.note_served()
        self._session = session
        self._tried_before, self.session_was_gone, self.session_is_usable = self.session_was_gone, False, True
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                with self._run_scope:
                    await self._run(session)
                self._run_returned.set()
        finally:
            self._group = None
            self._session = None
            self._asks.release_all()

    def restore(self, unfinished_messages: Sequence[str], go_on: Callable[[], None]) -> None:
        """The turn of an earlier process: it goes on when all its requests are resolved, at once if none is open.

        Where the model was at work, what it had streamed of a message does not count. One that was being cancelled
        ends now: its peer is gone.
        """
        if self.turn.cancel_requested:
            self.emit(TurnEnded(StopReason.CANCELLED))
            return
        self.is_restored = True
        self._when_answered = go_on
        if not self.turn.open_requests:
            self.emit(*(item_discarded(item_id, "restarted") for item_id in unfinished_messages))
        self.close_overdue()

    def leave(self) -> None:
        """Stops the session without a word to the turn, as if this process were killed now."""
        self.is_left = True
        self._when_answered = None
        self._given.leave()
        if self._opening is not None:
            self._opening.cancel()
        self._run_scope.cancel()
        self.deadlines.note_moved()
        self._published.close()

    def accepted_answers(self) -> list[AcceptedAnswer]:
        """What the model loop of a restored turn goes on with; what is accepted is in its history."""
        return [AcceptedAnswer(request, response, delivered=True) for request, response in self.turn.answered()]

    def close_overdue(self) -> None:
        """Applies the deadlines that passed while nobody was there to watch them."""
        now = self._clock()
        for request_id in self.deadlines.overdue_requests():
            self.turn.expire(request_id, now)
        self._keep_limits()
        self._publish()

    async def watch_deadlines(self) -> None:
        """Sleeps until the next deadline of the turn or of a request, and applies it; ends with the turn."""
        while not self.turn.is_over and not self.is_left:
            if await self.deadlines.wait():
                self.close_overdue()
                missed = self.deadlines.missed()
                if missed is not None:
                    self.fail(missed)

    # inside

    async def _run(self, session: Session) -> None:
        try:
            with unwrapped():
                was_restored, self.is_restored = self.is_restored, False
                if was_restored and self._reached_session:
                    await session.resume_turn(self.options, self)
                else:
                    await session.run_turn(self.content, self.options, self)
        except SessionGone:
            self.session_was_gone, self.session_is_usable = not self._tried_before, False
            if self._tried_before:
                self.fail_by_peer(PeerLost("the peer was dead before the message was sent, in a new session too"))
        except HarnessError as error:
            self.session_is_usable = not isinstance(error, PeerLost | PeerProtocolError)
            self.fail_by_peer(error)
        except Exception:
            logger.exception("turn '%s' failed inside its session", self.turn_id)
            self.session_is_usable = False
            self.fail_by_peer(Internal("the connector failed; the log has the traceback"))
        else:
            if not self.turn.is_over:
                self.fail_by_peer(PeerProtocolError("the session returned without an end of the turn"))

    def _answer_first(self, request: HostRequest, answers_first: AnswersFirst) -> None:
        if self.turn.open_request(request.request_id) is not None:
            response = answers_first(request)
            if response is not None:
                self.respond(response, AnsweredBy.POLICY)

    def _keep_limits(self) -> None:
        """What follows from the new items: a notice, or the end of the turn."""
        at = self._clock()
        for finding in self._look_at_new_items():
            if isinstance(finding, OutputProduced):
                self.turn.receive(finding, at=at)
            elif isinstance(finding, StopReason):
                self.turn.stop(finding, at)
            else:
                self.turn.fail(finding, at)

    def _look_at_new_items(self) -> list[Finding]:
        items = self.turn.items_after(self._seen)
        self._seen = self.turn.head
        return list(self._watch.see(items))

    def _publish(self) -> None:
        self._published.publish()
        if self.turn.open_requests or self.turn.is_over:
            self.deadlines.note_moved()

    def _on_shown(self) -> None:
        if self.turn.is_over:
            self._asks.release_all()
        elif self._when_answered is not None and not self.turn.open_requests:
            go_on, self._when_answered = self._when_answered, None
            go_on()

    def _release(self, effect: Effect) -> None:
        if isinstance(effect, Deliver):
            self._deliver(effect.request, effect.response)
        elif self._group is not None and self._session is not None:
            self._group.start_soon(self._interrupt, self._session)
        else:  # no peer yet: there is nothing to wait for
            if self._opening is not None:
                self._opening.cancel()
            self.emit(TurnEnded("cancelled"))

    def _deliver(self, request: HostRequest, response: HostResponse) -> None:
        if self.turn.is_over:
            return
        parked = self._asks.take(request.peer_request_id or "")
        if parked is not None:
            self._given.note_sending(request.request_id)
            parked.request_id = request.request_id
            parked.release(response)
        elif self._session is not None:
            try:
                self._session.deliver(request, response)
            except Exception as error:  # the edge of the session: nothing of it may reach the caller who answered
                logger.exception("delivering '%s' failed", request.request_id)
                self.fail_by_peer(error if isinstance(error, HarnessError) else Internal(f"delivery failed: {error}"))
                self.session_is_usable = False
                self._run_scope.cancel()
            else:
                self._given.note_delivered(request.request_id)

    async def _interrupt(self, session: Session) -> None:
        """Stops the peer within a bound; a session that does not return is left behind."""
        with anyio.move_on_after(self._settings.interrupt_seconds) as bound:
            try:
                with unwrapped():
                    await session.interrupt()
            except HarnessError as error:
                logger.info("interrupt of turn '%s' failed: %s", self.turn_id, error)
        if not bound.cancelled_caught:  # a peer that may not have stopped gets no result: it would call its model again
            self._interrupt_returned = True
            self._asks.release_all()
            with anyio.move_on_after(self._settings.settle_seconds):
                await self._run_returned.wait()
        if bound.cancelled_caught or not self._run_returned.is_set():
            self.session_is_usable = False
            self._run_scope.cancel()
        self.emit(TurnEnded("cancelled"))
