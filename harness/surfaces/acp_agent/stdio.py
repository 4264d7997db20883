"""The agent on two streams of bytes, such as stdin and stdout: one message a line, to the end of the input."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from harness.errors import unwrapped
from harness.surfaces.acp_agent.agent import AcpAgent
from harness.surfaces.acp_agent.client import Client
from harness.surfaces.acp_agent.opening import AgentSettings, OwnLLM
from harness.wire.json_rpc import INVALID_REQUEST, RpcFault, RpcMalformed, RpcMessage, read_message
from harness.wire.lines import LineCutter

MAX_LINE_BYTES = 256 * 1024 * 1024
WAITING_LINES = 1000
"""So many lines wait for a slow client; then whoever has more to say waits too."""
FLUSH_SECONDS = 2.0
"""How long the last lines may take once the client has said its last."""

ReadSome: TypeAlias = Callable[[], Awaitable[bytes]]
"""Some bytes as they come; none at the end."""
WriteAll: TypeAlias = Callable[[bytes], Awaitable[None]]


async def serve_agent(llm: OwnLLM, settings: AgentSettings, read: ReadSome, write: WriteAll) -> None:
    """Serves one client until its input ends or nobody reads what we write; then everything it opened is ended."""
    to_write, lines = anyio.create_memory_object_stream[bytes](WAITING_LINES)
    with unwrapped():
        async with lines, anyio.create_task_group() as everything:
            everything.start_soon(_write_lines, lines, write, everything.cancel_scope)
            async with to_write, anyio.create_task_group() as tasks:
                agent = AcpAgent(llm, settings, Client(to_write), tasks)
                async for message in _messages(read):
                    await agent.receive(message)
                tasks.cancel_scope.cancel()
            # what was said before the end still goes out, if anybody reads it
            everything.cancel_scope.deadline = anyio.current_time() + FLUSH_SECONDS


async def _write_lines(lines: MemoryObjectReceiveStream[bytes], write: WriteAll, everything: anyio.CancelScope) -> None:
    """As many at once as wait."""
    async for line in lines:
        batch = [line]
        try:
            while True:
                batch.append(lines.receive_nowait())
        except (anyio.WouldBlock, anyio.EndOfStream):
            pass
        try:
            await write(b"".join(batch))
        except OSError:
            everything.cancel()
            return


async def _messages(read: ReadSome) -> AsyncGenerator[RpcMessage]:
    """Blank lines are none; a line that is too long is one message that says so."""
    cutter = LineCutter(MAX_LINE_BYTES)
    while data := await read():
        for line in cutter.feed(data):
            if line is None:
                yield RpcMalformed(None, RpcFault(INVALID_REQUEST, f"the line is longer than {MAX_LINE_BYTES} bytes"))
            elif line.strip():
                yield read_message(line)
