"""Ctrl-C: the first one cancels the turn, the second one ends the process and, with it, every process it started."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from types import FrameType

import anyio

INTERRUPTED = 130
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def open_interrupts(*, told: str = "") -> Generator[AsyncIterator[signal.Signals]]:
    """The first signal arrives here and is answered with `told` on stderr.

    A second one ends us without a word: the reaper then ends our peers.
    """
    count = 0

    def count_or_end(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count > 1:
            os._exit(INTERRUPTED)
        os.write(2, told.encode())  # whatever was interrupted may hold the lock of sys.stderr

    with anyio.open_signal_receiver(*_SIGNALS) as signals:
        # The loop's own handlers stay silent while a tool keeps the loop busy. These run even then, and the loop is
        # woken as before: its wake-up descriptor is written before any handler of ours runs.
        earlier = {number: signal.signal(number, count_or_end) for number in _SIGNALS}
        try:
            yield signals
        finally:
            for number, handler in earlier.items():
                signal.signal(number, handler)
