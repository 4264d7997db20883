"""A turn in the shell: the pure `Turn` with its clock, its waiters, its deadlines, and the sink a session writes to."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from harness.connector import Session, SessionGone
from harness.contract.content import ContentBlock
from harness.contract.options import Timeouts, TurnOptions
from harness.contract.requests import HostRequest, HostResponse, RequestKind
from harness.contract.state import TurnState
from harness.contract.usage import UsageInfo
from harness.conversation.identities import Identities
from harness.errors import (
    HarnessError,
    Internal,
    PeerLost,
    PeerProtocolError,
    TurnStalled,
    TurnTimeout,
    unwrapped,
)
from harness.settings import Settings
from harness.turn import answers
from harness.turn.effects import Deliver, Effect
from harness.turn.events import RequestRaised, RequestWithdrawn, TurnEnded, TurnEvent, TurnFailed
from harness.turn.turn import Turn

logger = logging.getLogger(__name__)


class Clock(Protocol):
    def __call__(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Parked:
    """A task of a session that waits for an answer; several may wait for the same one."""

    def __init__(self, request: HostRequest) -> None:
        self.answered = anyio.Event()
        self.response = answers.cancelled(request)

    def release(self, response: HostResponse | None = None) -> None:
        """Ends the wait; without a response the waiting task gets the synthetic error."""
        if response is not None:
            self.response = response
        self.answered.set()


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
    ) -> None:
        self.turn_id = turn_id
        self.content = list(content)
        self.options = options
        self.earlier_usage = earlier_usage
        self.turn = Turn(
            at=clock(),
            max_items=settings.max_turn_items,
            max_bytes=settings.max_window_bytes,
            max_turn_bytes=settings.max_turn_bytes,
        )
        self.session_is_usable = True
        """False once the session must be left after this turn."""
        self.session_was_gone = False
        """The peer was dead before the message was sent; the turn may run in a new session."""
        self._timeouts = timeouts
        self._identities = identities
        self._settings = settings
        self._clock = clock
        self._session: Session | None = None
        self._group: TaskGroup | None = None
        self._opening: anyio.CancelScope | None = None
        self._run_scope = anyio.CancelScope()
        self._run_returned = anyio.Event()
        self._parked: dict[str, Parked] = {}
        self._changed: anyio.Event | None = None
        self._deadlines_changed = anyio.Event()

    # what the host reaches

    async def wait_newer(self, since: int, max_wait_ms: int) -> None:
        """Returns when the turn has an item after `since` or is over, or after `max_wait_ms`."""
        with anyio.move_on_after(max_wait_ms / 1000):
            while self.turn.head <= since and not self.turn.is_over:
                self._changed = self._changed or anyio.Event()
                await self._changed.wait()

    def state(self, since: int, max_items: int) -> TurnState:
        return self.turn.state(since, max_items=max_items, earlier_usage=self.earlier_usage)

    def respond(self, response: HostResponse) -> None:
        self.turn.respond(response, self._clock())
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
            calls = [
                {"request_id": r.request_id, "call_id": r.call_id, "tool_name": r.tool_name, "outcome": "unknown"}
                for r in self.turn.open_requests
            ]
            error.detail["open_requests"] = calls
        self.emit(TurnFailed(error))

    # TurnSink

    def emit(self, *events: TurnEvent) -> None:
        at = self._clock()
        self.turn.receive(*(self._identified(e, at) if isinstance(e, RequestRaised) else e for e in events), at=at)
        self._publish()

    @asynccontextmanager
    async def ask(self, request: HostRequest) -> AsyncGenerator[HostResponse]:
        peer_id = request.peer_request_id
        if peer_id is None:
            raise PeerProtocolError(f"a request of kind '{request.kind}' came without an id")
        parked = self._parked.setdefault(peer_id, Parked(request))
        try:
            self.emit(RequestRaised(request))
            if self.turn.is_over:
                parked.release()
            await parked.answered.wait()
        except BaseException:
            self.emit(RequestWithdrawn(peer_id))
            raise
        finally:
            self._parked.pop(peer_id, None)
        yield parked.response

    # what the conversation drives

    @contextmanager
    def opening(self) -> Generator[None]:
        """Until `opened`, a cancel or a deadline of the turn gives up the start of the peer."""
        with anyio.CancelScope() as self._opening:
            yield
        self._opening = None

    def opened(self) -> None:
        """The peer is ready: from now on a cancel goes through the session."""
        self._opening = None

    async def drive(self, session: Session) -> None:
        """Runs the turn in this session until the peer's end, our deadline or a cancel."""
        if self.turn.is_over:
            return
        self._session = session
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                with self._run_scope:
                    await self._run(session)
                self._run_returned.set()
        finally:
            self._group = None
            self._session = None
            self._release_parked()

    async def watch_deadlines(self) -> None:
        """Sleeps until the next deadline of the turn or of a request, and applies it; ends with the turn."""
        while not self.turn.is_over:
            self._deadlines_changed = anyio.Event()
            due = self._next_deadline()
            seconds = None if due is None else max(0.0, (due - self._clock()) / 1000)
            with anyio.move_on_after(seconds):
                await self._deadlines_changed.wait()
            if due is not None and self._clock() >= due:
                self._apply_deadlines()

    # inside

    async def _run(self, session: Session) -> None:
        try:
            with unwrapped():
                await session.run_turn(self.content, self.options, self)
        except SessionGone:
            self.session_was_gone, self.session_is_usable = True, False
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

    def _identified(self, event: RequestRaised, at: int) -> RequestRaised:
        request = event.request
        if self.turn.waits_for(request.peer_request_id):
            return event  # raised again: the turn keeps the open one
        is_call = request.kind == RequestKind.TOOL_CALL
        limit = self._timeouts.tool_ms if is_call else self._timeouts.approval_ms
        identity = {
            "request_id": self._identities.request_id(request),
            "opened_at": at,
            "expires_at": None if limit is None else at + limit,
        }
        return RequestRaised(request.model_copy(update=identity))

    def _publish(self) -> None:
        """After every change: effects out, waiters awake, deadlines looked at again."""
        for effect in self.turn.take_effects():
            self._release(effect)
        if self.turn.is_over:
            self._release_parked()
        changed, self._changed = self._changed, None
        if changed is not None:
            changed.set()
        if self.turn.open_requests or self.turn.is_over:
            self._deadlines_changed.set()

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
        parked = self._parked.get(request.peer_request_id or "")
        if parked is not None:
            parked.release(response)
        elif self._session is not None:
            try:
                self._session.deliver(request, response)
            except Exception as error:  # the edge of the session: nothing of it may reach the caller who answered
                logger.exception("delivering '%s' failed", request.request_id)
                self.fail_by_peer(error if isinstance(error, HarnessError) else Internal(f"delivery failed: {error}"))

    async def _interrupt(self, session: Session) -> None:
        """Stops the peer within a bound; a session that does not return is left behind."""
        try:
            with anyio.move_on_after(self._settings.interrupt_seconds), unwrapped():
                await session.interrupt()
        except HarnessError as error:
            logger.info("interrupt of turn '%s' failed: %s", self.turn_id, error)
        self._release_parked()
        with anyio.move_on_after(self._settings.settle_seconds):
            await self._run_returned.wait()
        if not self._run_returned.is_set():
            self.session_is_usable = False
            self._run_scope.cancel()
        self.emit(TurnEnded("cancelled"))

    def _release_parked(self) -> None:
        for parked in self._parked.values():
            parked.release()

    def _next_deadline(self) -> int | None:
        turn, limits = self.turn, self._timeouts
        dues = [request.expires_at for request in turn.open_requests if request.expires_at is not None]
        if limits.turn_ms is not None:
            dues.append(turn.started_at + limits.turn_ms)
        if limits.idle_ms is not None and not turn.open_requests:
            dues.append(turn.last_activity_at + limits.idle_ms)
        return min(dues, default=None)

    def _apply_deadlines(self) -> None:
        now, turn, limits = self._clock(), self.turn, self._timeouts
        for request in turn.open_requests:
            if request.expires_at is not None and now >= request.expires_at:
                turn.expire(request.request_id, now)
        if limits.turn_ms is not None and now >= turn.started_at + limits.turn_ms:
            turn.fail(TurnTimeout(f"the turn took longer than its limit of {limits.turn_ms / 1000:g} s"), now)
        elif limits.idle_ms is not None and not turn.open_requests and now >= turn.last_activity_at + limits.idle_ms:
            turn.fail(TurnStalled(f"the peer was silent for {limits.idle_ms / 1000:g} s"), now)
        self._publish()
