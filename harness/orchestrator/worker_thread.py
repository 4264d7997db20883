"""Runs a blocking function without holding the loop, or the end of the process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Generic, TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

T = TypeVar("T")


class _Work(Generic[T]):
    """One run of a function; filled by its thread, read by the loop after `done`."""

    def __init__(self, function: Callable[[], T], token: EventLoopToken) -> None:
        self.done = anyio.Event()
        self.error: BaseException | None = None
        self.values: list[T] = []
        self._function = function
        self._token = token
        self._context = copy_context()

    def run(self) -> None:
        try:
            self.values.append(self._context.run(self._function))
        except BaseException as error:  # the edge of the thread: raised again where it is awaited
            self.error = error
        with suppress(RuntimeError):  # the loop may be gone by now: then nobody waits
            from_thread.run_sync(self.done.set, token=self._token)


async def run_in_thread(function: Callable[[], T]) -> T:
    """The function's value. When this is cancelled the thread is left behind, with whatever it does.

    `anyio.to_thread` is not used: its threads are joined when the interpreter ends, so a function that never returns
    would keep the process alive.
    """
    work = _Work(function, current_token())
    threading.Thread(target=work.run, name="harness tool", daemon=True).start()
    await work.done.wait()
    if work.error is not None:
        raise work.error
    return work.values[0]
