"""What a tool may know about its own call: who asks, whether somebody still waits, and a way to tell how far it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

if TYPE_CHECKING:
    from harness.orchestrator.caller import Caller


class CallCancelled(Exception):
    """Nobody waits for this call's result any more."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a call is: `done` of `total`, in whatever unit the tool counts."""

    done: float
    total: float | None = None
    message: str | None = None


OnProgress: TypeAlias = Callable[[Progress], None]
"""Sync and quick: it is called in the event loop."""


class ToolContext:
    """One call of one tool. A function that has a parameter with this annotation is given it; the model never sees it.

    Async functions are cancelled as usual; a function in a thread looks at `is_cancelled`, or lets
    `raise_if_cancelled` end it.
    """

    def __init__(
        self, call_id: str, tool_name: str, on_progress: OnProgress | None = None, caller: Caller | None = None
    ) -> None:
        self.call_id = call_id
        self.tool_name = tool_name
        self.caller = caller
        """The run that the call belongs to; null outside of one."""
        self._on_progress = on_progress
        self._is_over = threading.Event()
        self._token: EventLoopToken | None = None
        self._thread: int | None = None

    @property
    def is_cancelled(self) -> bool:
        return self._is_over.is_set()

    def raise_if_cancelled(self) -> None:
        """Raises:
        CallCancelled: nobody waits any more.
        """
        if self.is_cancelled:
            raise CallCancelled(f"call '{self.call_id}' of '{self.tool_name}' was cancelled")

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tells how far the call is; from any thread, and without effect once nobody waits."""
        report = self._on_progress
        if report is None or self.is_cancelled:
            return
        step = Progress(done, total, message)
        if self._token is None or threading.get_ident() == self._thread:
            report(step)
            return
        with suppress(RuntimeError):  # the loop has gone meanwhile, and with it whoever waited
            from_thread.run_sync(report, step, token=self._token)

    def begin(self) -> None:
        """The registry runs the call from here on, in this event loop."""
        self._token, self._thread = current_token(), threading.get_ident()

    def end(self) -> None:
        """The call is over, or given up."""
        self._is_over.set()
