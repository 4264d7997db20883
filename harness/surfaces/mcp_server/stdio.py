"""The server over stdin and stdout, for a client that starts it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

import anyio
from mcp.server.stdio import stdio_server

from harness.errors import unwrapped
from harness.surfaces.call import SharedHarness
from harness.surfaces.descriptors import read_some, take_streams
from harness.surfaces.mcp_server.server import Offer, build_server
from harness.surfaces.tokens import Token
from harness.surfaces.waiters import Waiters
from harness.wire.json_text import with_paired_surrogates
from harness.wire.lines import LineCutter

MAX_LINE_BYTES = 256 * 1024 * 1024


async def serve_stdio(harness: SharedHarness, offer: Offer, owner: Token) -> None:
    """Until the client closes stdin. What still runs then is cancelled."""
    incoming, outgoing = take_streams()
    with (
        unwrapped(),
        contextlib.suppress(BrokenPipeError),  # of a client that went, for what it has not taken
        os.fdopen(outgoing, "w", encoding="utf-8") as answers,
    ):
        async with anyio.create_task_group() as group:
            server = build_server(harness, offer, group, Waiters(), owner)
            # the package's own reader sits in a thread, which no signal could end
            lines = cast("anyio.AsyncFile[str]", _Lines(incoming))
            try:
                async with stdio_server(stdin=lines, stdout=anyio.wrap_file(answers)) as (read, write):
                    await server.run(read, write, server.create_initialization_options())
            except* BrokenPipeError:
                pass  # the client went without closing stdin first
            group.cancel_scope.cancel()


class _Lines:
    """The lines of a descriptor. Waiting for one can be cancelled."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def __aiter__(self) -> AsyncIterator[str]:
        return self._read()

    async def _read(self) -> AsyncGenerator[str]:
        cutter = LineCutter(MAX_LINE_BYTES)
        while data := await read_some(self._descriptor):
            for line in cutter.feed(data):
                yield _text(line)
        if last := cutter.last():
            yield _text(last)


def _text(line: bytes | None) -> str:
    """What is too long becomes what is no message. The package drops a line with half a surrogate pair unanswered."""
    return "too long" if line is None else with_paired_surrogates(line.decode("utf-8", "replace"))
