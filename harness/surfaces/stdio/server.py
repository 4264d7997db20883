"""The connection on two descriptors: the end of the input, `shutdown` or a stop ends it, in this order: nothing new,
answers to what waits, the last lines out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from harness.errors import unwrapped
from harness.surfaces.call import OwnedLLM
from harness.surfaces.descriptors import read_some, write_all
from harness.surfaces.stdio.connection import Connection
from harness.wire.bodies import ConnectorInfo
from harness.wire.json_rpc import INVALID_REQUEST, RpcFault, RpcMalformed, RpcMessage, read_message
from harness.wire.lines import LineCutter

DEFAULT_MAX_LINE_BYTES = 256 * 1024 * 1024
_WAITING_LINES = 1000
"""So many lines wait for a slow client; then whoever has more to say waits too."""
_SETTLE_SECONDS = 5.0
_FLUSH_SECONDS = 2.0


async def serve_stdio(
    llm: OwnedLLM,
    connectors: tuple[ConnectorInfo, ...],
    incoming: int,
    outgoing: int,
    *,
    version: str,
    stopping: anyio.Event,
    max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
) -> None:
    """Serves one client until its input ends, it says `shutdown`, nobody reads any more, or `stopping` is set."""
    to_write, lines = anyio.create_memory_object_stream[bytes](_WAITING_LINES)
    with unwrapped():
        async with lines, anyio.create_task_group() as everything:
            everything.start_soon(_write_lines, lines, outgoing, everything.cancel_scope)
            async with to_write, anyio.create_task_group() as calls:
                connection = Connection(llm, connectors, to_write, calls)
                await connection.greet(version, max_line_bytes)
                with anyio.CancelScope() as reading:
                    calls.start_soon(_cancel_when, stopping, reading)
                    await _read(connection, incoming, max_line_bytes)
                with anyio.move_on_after(_SETTLE_SECONDS):
                    await connection.settle()
                await connection.say_goodbye()
                calls.cancel_scope.cancel()
            everything.cancel_scope.deadline = anyio.current_time() + _FLUSH_SECONDS


async def _read(connection: Connection, incoming: int, max_line_bytes: int) -> None:
    async with aclosing(_messages(incoming, max_line_bytes)) as messages:
        async for message in messages:
            if not await connection.receive(message):
                return


async def _messages(incoming: int, max_line_bytes: int) -> AsyncGenerator[RpcMessage]:
    """Blank lines are none; one that is too long is a message that says so."""
    cutter = LineCutter(max_line_bytes)
    while data := await read_some(incoming):
        for line in cutter.feed(data):
            if (message := _message(line, max_line_bytes)) is not None:
                yield message
    if (message := _message(cutter.last(), max_line_bytes)) is not None:
        yield message


def _message(line: bytes | None, max_line_bytes: int) -> RpcMessage | None:
    if line is None:
        return RpcMalformed(None, RpcFault(INVALID_REQUEST, f"a line was longer than {max_line_bytes} bytes"))
    return read_message(line) if line.strip() else None


async def _write_lines(lines: MemoryObjectReceiveStream[bytes], outgoing: int, everything: anyio.CancelScope) -> None:
    """As many at once as wait."""
    async for line in lines:
        batch = [line]
        while lines.statistics().current_buffer_used:
            batch.append(lines.receive_nowait())
        try:
            await write_all(outgoing, b"".join(batch))
        except OSError:
            everything.cancel()
            return


async def _cancel_when(stopping: anyio.Event, reading: anyio.CancelScope) -> None:
    await stopping.wait()
    reading.cancel()
