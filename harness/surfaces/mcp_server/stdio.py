"""The server over stdin and stdout, for a client that starts it."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import anyio
from mcp.server.stdio import stdio_server

from harness.errors import unwrapped
from harness.surfaces.call import SharedHarness
from harness.surfaces.mcp_server.server import Offer, build_server
from harness.surfaces.tokens import Token
from harness.surfaces.waiters import Waiters

_READ_BYTES = 65536


async def serve_stdio(harness: SharedHarness, offer: Offer, owner: Token) -> None:
    """Until the client closes stdin. What still runs then is cancelled."""
    with unwrapped(), _private_stdin() as descriptor:
        async with anyio.create_task_group() as group:
            server = build_server(harness, offer, group, Waiters(), owner)
            # the package's own reader sits in a thread, which no signal could end
            lines = cast("anyio.AsyncFile[str]", _Lines(descriptor))
            try:
                async with stdio_server(stdin=lines) as (read, write):
                    await server.run(read, write, server.create_initialization_options())
            except* BrokenPipeError:
                pass  # the client went without closing stdin first
            group.cancel_scope.cancel()


class _Lines:
    """The lines of a descriptor. Waiting for one can be cancelled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        kind = os.fstat(descriptor).st_mode
        # what no event loop can watch: files, and devices such as /dev/null
        self._always_ready = stat.S_ISREG(kind) or (stat.S_ISCHR(kind) and not os.isatty(descriptor))

    def __aiter__(self) -> AsyncIterator[str]:
        return self._read()

    async def _read(self) -> AsyncGenerator[str]:
        parts: list[bytes] = []
        while data := await self._chunk():
            first, *others = data.split(b"\n")
            parts.append(first)
            for other in others:
                yield b"".join(parts).decode("utf-8", "replace")
                parts = [other]
        if last := b"".join(parts).strip():
            yield last.decode("utf-8", "replace")

    async def _chunk(self) -> bytes:
        if not self._always_ready:
            await anyio.wait_readable(self._descriptor)
        return os.read(self._descriptor, _READ_BYTES)


@contextmanager
def _private_stdin() -> Generator[int]:
    """Nobody else may read it: a program that a connector starts would take the client's words."""
    private = os.dup(0)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    try:
        yield private
    finally:
        os.dup2(private, 0)
        os.close(private)
