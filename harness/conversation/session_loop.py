"""The conversation's task: it lives while a session is open, so an idle conversation costs neither task nor process."""

from __future__ import annotations

import logging
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from harness.connector import Session
from harness.conversation.running_turn import RunningTurn
from harness.conversation.turn_list import TurnList
from harness.errors import HarnessError, Internal, unwrapped

logger = logging.getLogger(__name__)


class Served(Protocol):
    """What a conversation says about its sessions and hears of them."""

    conversation_id: str

    def open_session(self) -> AbstractAsyncContextManager[Session]: ...

    def before_turn(self, running: RunningTurn, *, is_first: bool) -> None:
        """The next turn, perhaps the first one of its session, is about to reach it."""
        ...

    def after_turn(self, running: RunningTurn) -> None: ...

    def after_sessions(self) -> None:
        """The last session was closed; a turn may be left over."""
        ...


class SessionLoop:
    """Opens a session when a turn comes, serves turns one at a time, and closes it after its time to live."""

    def __init__(self, served: Served, turns: TurnList, group: TaskGroup, idle_ttl_seconds: float | None) -> None:
        self._served = served
        self._turns = turns
        self._group = group
        self._idle_ttl_seconds = idle_ttl_seconds
        self._queued: RunningTurn | None = None
        self._submitted = anyio.Event()
        self._stopped: anyio.Event | None = None
        self.is_ending = False

    @property
    def is_running(self) -> bool:
        """Whether a peer runs, or is about to."""
        return self._stopped is not None

    def start(self) -> None:
        if self._stopped is None:
            self._stopped = anyio.Event()
            self._group.start_soon(self._run, self._stopped)

    def queue(self, running: RunningTurn) -> None:
        """It is served next."""
        if running.turn.is_over or running.turn.cancel_requested or running.is_left:
            return
        self._queued = running
        self._submitted.set()
        self.start()

    def forget_queued(self) -> None:
        self._queued = None

    async def end(self) -> None:
        """Waits until the session and all it owned are gone; a turn under way is its conversation's to end before."""
        self.is_ending = True
        self._submitted.set()
        if self._stopped is not None:
            await self._stopped.wait()

    async def _run(self, stopped: anyio.Event) -> None:
        """Sessions one after the other.

        Nothing leaves it but cancellation, so that a failure here never reaches the other conversations.
        """
        try:
            await self._serve_session()
            while self._queued is not None:  # no checkpoint between this look and the end
                await self._serve_session()
        except Exception:
            logger.exception("conversation '%s' failed", self._served.conversation_id)
            self._fail_turn(Internal("the conversation failed; the log has the traceback"))
        finally:
            self._served.after_sessions()
            self._stopped = None
            stopped.set()

    async def _serve_session(self) -> None:
        """One session, from its start until it is of no more use."""
        running = self._queued
        try:
            with unwrapped(), running.opening() if running else nullcontext():
                async with self._served.open_session() as session:
                    if running is not None:
                        running.opened()
                    await self._serve_turns(session)
        except HarnessError as error:
            self._fail_turn(error)
        if self._queued is not None and self._queued.turn.is_over:
            self._queued = None

    async def _serve_turns(self, session: Session) -> None:
        is_first = True
        while (running := await self._next_turn()) is not None:
            self._served.before_turn(running, is_first=is_first)
            is_first = False
            await running.drive(session)
            self._served.after_turn(running)
            if running.session_was_gone:
                self._queued = running
            if not running.session_is_usable:
                return

    async def _next_turn(self) -> RunningTurn | None:
        """Waits for a message; null at the end, or after the time to live."""
        with anyio.move_on_after(self._idle_ttl_seconds):
            while self._queued is None and not self.is_ending:
                self._submitted = anyio.Event()
                await self._submitted.wait()
        if self.is_ending:
            return None
        running, self._queued = self._queued, None
        return running

    def _fail_turn(self, error: HarnessError) -> None:
        self._queued = None
        current = self._turns.current
        if current is not None:
            current.fail_by_peer(error)
        else:
            logger.warning("conversation '%s' lost its session: %s", self._served.conversation_id, error)
