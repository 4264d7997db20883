"""Our ends of a child's three pipes, none of them blocking: what goes out, and the end of what came on stderr."""

import os
from collections import deque
from typing import NamedTuple

import anyio

_TAIL_BYTES = 64 * 1024
_READ_BYTES = 64 * 1024


class Pipes(NamedTuple):
    stdin: int
    stdout: int
    stderr: int

    def close(self) -> None:
        for descriptor in self:
            os.close(descriptor)


class Outbox:
    """Bytes for a pipe: written at once as far as it takes them, the rest by `pump`, in order."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._unsent: deque[memoryview] = deque()
        self._filled = anyio.Event()
        self._emptied = anyio.Event()
        self.unsent_bytes = 0
        self.is_broken = False  # the other side has closed it

    def put(self, data: bytes) -> None:
        """Write, or queue behind what waits already. Afterwards `is_broken` says whether anybody reads."""
        was_empty = not self._unsent
        self._unsent.append(memoryview(data))
        self.unsent_bytes += len(data)
        if was_empty:
            self._write()
            if self._unsent:
                self._emptied = anyio.Event()
                self._filled.set()

    async def drain(self) -> None:
        """Return when the pipe has taken everything, or never will."""
        if self._unsent:
            await self._emptied.wait()

    def give_up(self) -> None:
        """Nobody will read any more: drop what waits."""
        self._unsent.clear()
        self.unsent_bytes = 0
        self._emptied.set()

    async def pump(self) -> None:
        """Write what `put` could not, until cancelled."""
        while True:
            await self._filled.wait()
            self._filled = anyio.Event()
            while self._unsent:
                await anyio.wait_writable(self._descriptor)
                self._write()
            self._emptied.set()

    def _write(self) -> None:
        while self._unsent:
            view = self._unsent.popleft()
            try:
                sent = os.write(self._descriptor, view)
            except BlockingIOError:
                sent = 0
            except BrokenPipeError:
                self.is_broken = True
                self.give_up()
                return
            self.unsent_bytes -= sent
            if sent < len(view):
                self._unsent.appendleft(view[sent:])
                return


class Tail:
    """The last 64 KiB of a pipe that is read whether anybody is interested or not."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._bytes = bytearray()
        self._has_ended = False

    @property
    def text(self) -> str:
        self.read()
        return self._bytes.decode("utf-8", "replace")

    async def pump(self) -> None:
        while not self._has_ended:
            await anyio.wait_readable(self._descriptor)
            self.read()

    def read(self) -> None:
        """Take what is there now."""
        if self._has_ended:
            return
        try:
            data = os.read(self._descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        self._has_ended = not data
        self._bytes += data
        del self._bytes[:-_TAIL_BYTES]

    def finish(self) -> None:
        """Take what is there and look no more: the descriptor is about to be closed."""
        self.read()
        self._has_ended = True
