"""The tools of an MCP server, run by this host. A server that is lost is started or reached anew with the next call."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from harness.contract.tools import ToolCall, ToolDescriptor
from harness.errors import ConnectorUnavailable, HarnessError, InvalidArgument
from harness.orchestrator.arguments import arguments_of
from harness.orchestrator.mcp_config import ListChanges, McpServer
from harness.orchestrator.mcp_connection import McpConnection
from harness.orchestrator.mcp_mapping import descriptor_of, outcome_of
from harness.orchestrator.tool_context import ToolContext
from harness.orchestrator.tool_provider import ToolOutcome, failure
from harness.processes import OpenProcess, find_open_process

logger = logging.getLogger(__name__)

END_SECONDS = 5.0
"""How long a server may take to say goodbye; after that it is ended without."""

_INSTALL = "MCP servers need the package 'mcp'; type: pip install 'level2-harness[mcp]'"


@asynccontextmanager
async def open_mcp_source(server: McpServer, *, open_process: OpenProcess | None = None) -> AsyncGenerator[McpSource]:
    """The server's tools as a `ToolProvider`; leaving ends the server and everything it started.

    Raises:
        ConnectorUnavailable: the package `mcp` is missing, or the server cannot be started, reached or entered.
        PeerLost: it went away while it was greeted.
    """
    try:
        import mcp as _  # noqa: F401
    except ImportError as error:
        raise ConnectorUnavailable(_INSTALL, reason="tools_unavailable") from error
    problem: Exception | None = None
    async with anyio.create_task_group() as group:
        source = McpSource(server, group, lambda: open_process or find_open_process())
        try:
            await source.connect()
            yield source
        except Exception as error:  # raised again below, as it is: not wrapped into a group
            problem = error
        finally:
            source.close()
            group.cancel_scope.deadline = anyio.current_time() + END_SECONDS
    if problem is not None:
        raise problem


class McpSource:
    """Comes from `open_mcp_source`, whose task group holds its connections."""

    def __init__(self, server: McpServer, group: TaskGroup, open_process: Callable[[], OpenProcess]) -> None:
        self.label = f"MCP server '{server.name}'"
        self.server = server
        self._group = group
        self._open_process = open_process
        self._one_at_a_time = anyio.Lock()
        self._connection: McpConnection | None = None
        self._names: dict[str, str] = {}
        self._listed: list[ToolDescriptor] | None = None
        self.has_changed = False
        """Whether its list is another one now than the one it gave."""

    async def list_tools(self) -> Sequence[ToolDescriptor]:
        """The server's tools, or those of them that were asked for.

        Raises:
            HarnessError: the server is gone, or two of its tools would have one name, or one that was asked for is not
                there.
        """
        if self._listed is None or (self.has_changed and self.server.list_changes == ListChanges.FOLLOW):
            await self._list(await self.connect())
        return self._listed or []

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """An error of the tool is the tool's; an error of the server says so, and that the outcome is unknown."""
        if self.has_changed and self.server.list_changes == ListChanges.FAIL:
            return failure(f"{self.label} changed its tools; '{call.tool_name}' runs again in a new conversation.")
        try:
            connection = await self.connect()
        except HarnessError as error:
            return failure(f"The tool '{call.tool_name}' was not run: {error.message}")
        try:
            result = await connection.call(self._names[call.tool_name], arguments_of(call), context)
        except HarnessError as error:
            # never tried again here: the tool may have done its work before the answer was lost
            return failure(f"{error.message}. Whether '{call.tool_name}' took effect is unknown.")
        return outcome_of(result)

    async def connect(self) -> McpConnection:
        """The live connection, a new one where the last is lost.

        Raises:
            HarnessError: there is none to be had.
        """
        async with self._one_at_a_time:
            if self._connection is not None and not self._connection.is_lost:
                return self._connection
            was_connected = self._connection is not None
            connection = McpConnection(self.server, open_process=self._open_process, on_list_changed=self._list_changed)
            problem: HarnessError | None = None
            with anyio.move_on_after(self.server.connect_ms / 1000) as limit:
                problem = await self._group.start(connection.run)
            if limit.cancelled_caught:
                seconds = self.server.connect_ms / 1000
                text = f"{self.label} did not answer the greeting within {seconds:g} s"
                raise ConnectorUnavailable(text, reason="tools_unavailable")
            if problem is not None:
                raise problem
            self._connection = connection
            if was_connected and self._listed is not None:
                await self._compare(connection)
            return connection

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    # the list

    async def _list(self, connection: McpConnection) -> None:
        wanted = self.server.source.tool_names
        names: dict[str, str] = {}
        listed: list[ToolDescriptor] = []
        for tool in await connection.list_tools():
            if wanted is not None and tool.name not in wanted:
                continue
            descriptor = descriptor_of(tool, self.server.prefix)
            if descriptor.name in names:
                both = f"'{names[descriptor.name]}' and '{tool.name}'"
                raise InvalidArgument(f"{self.label}: tools {both} would both be called '{descriptor.name}'")
            names[descriptor.name] = tool.name
            listed.append(descriptor)
        missing = sorted(set(wanted or ()) - set(names.values()))
        if missing:
            raise InvalidArgument(f"{self.label} has no tool '{missing[0]}'; it has: {', '.join(names.values())}")
        # names that a conversation knows keep their meaning
        self._names |= names
        self._listed = listed
        self.has_changed = False

    def _list_changed(self) -> None:
        if not self.has_changed:
            logger.warning("%s changed its list of tools (policy '%s')", self.label, self.server.list_changes)
        self.has_changed = True

    async def _compare(self, connection: McpConnection) -> None:
        """A server that was started again may be another version."""
        now = [descriptor_of(tool, self.server.prefix) for tool in await connection.list_tools()]
        wanted = self.server.source.tool_names
        before = {descriptor.name: descriptor for descriptor in self._listed or ()}
        if {one.name: one for one in now if wanted is None or one.name in before} != before:
            self._list_changed()
