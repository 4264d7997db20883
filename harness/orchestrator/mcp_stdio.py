"""The stdio transport of an MCP server: our process port, with the streams that the `mcp` client wants.

The client's own transport leaves a server's children alone and shows its stderr to whoever looks at ours.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream

from harness.errors import HarnessError, PeerLost
from harness.processes import OpenProcess, RunningProcess

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage

    FromServer: TypeAlias = ObjectSendStream[SessionMessage | Exception]
    ToServer: TypeAlias = ObjectReceiveStream[SessionMessage]
    Streams: TypeAlias = tuple[ObjectReceiveStream[SessionMessage | Exception], ObjectSendStream[SessionMessage]]

logger = logging.getLogger(__name__)

_INHERITED = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")


def server_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """What any program needs, and what the server's entry gives; never keys and tokens that happen to be ours."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ} | dict(extra)


@asynccontextmanager
async def open_stdio(
    argv: list[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    name: str,
    open_process: OpenProcess,
    on_start: Callable[[RunningProcess], None],
) -> AsyncGenerator[Streams]:
    """The server's streams while it runs; leaving ends it and everything it started."""
    async with open_process(argv, env=env, cwd=cwd, name=name) as process:
        on_start(process)
        from_server, heard = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
        said, to_server = anyio.create_memory_object_stream["SessionMessage"](0)
        async with from_server, heard, said, to_server, anyio.create_task_group() as group:
            group.start_soon(_hear, process, from_server)
            group.start_soon(_say, process, to_server, from_server)
            yield heard, said
            group.cancel_scope.cancel()


async def _hear(process: RunningProcess, from_server: FromServer) -> None:
    from mcp.shared.message import SessionMessage
    from mcp_types import jsonrpc_message_adapter

    async with from_server:  # closing it tells the client that the server is gone
        try:
            async for lines in process.lines():
                for line in lines:
                    try:
                        message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                    except ValueError:
                        logger.warning("an MCP server wrote a line that is no message: %r", line[:200])
                        continue
                    await from_server.send(message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return  # nobody listens any more
        except HarnessError as error:
            logger.info("%s", error.message)


async def _say(process: RunningProcess, to_server: ToServer, from_server: FromServer) -> None:
    async with to_server:
        async for message in to_server:
            data = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                process.write(data.encode() + b"\n")
            except PeerLost:
                await from_server.aclose()
                return
