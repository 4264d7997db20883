"""One live connection to an MCP server: a client in a task of its own, until it is lost or closed."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, cast

import anyio
from anyio.abc import TaskStatus

from harness.contract.tools import ToolSourceKind
from harness.errors import ConnectorUnavailable, HarnessError, PeerLost, PeerProtocolError
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.mcp_stdio import open_stdio, server_environment
from harness.orchestrator.routing import is_secret_name
from harness.processes import OpenProcess, RunningProcess

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import CallToolResult, Tool

    from harness.orchestrator.mcp_stdio import Streams
    from harness.orchestrator.tool_context import ToolContext

logger = logging.getLogger(__name__)

HTTP_CONNECT_SECONDS = 10.0
MAX_PAGES = 100
MAX_SSE_EVENT_BYTES = 64 * 1024 * 1024
_SHOWN_STDERR = 500
_CLOSED = -32000
_SESSION_GONE = "Session terminated"
"""What the client makes of a 404: a server that was started again knows no old session."""


class McpConnection:
    """Made by its source for each start of the server; `run` is its task, the rest is called from others."""

    def __init__(
        self,
        server: McpServer,
        *,
        open_process: Callable[[], OpenProcess],
        on_list_changed: Callable[[], None],
    ) -> None:
        self._server = server
        self._open_process = open_process
        self._on_list_changed = on_list_changed
        self._process: RunningProcess | None = None
        self._status: int | None = None
        self._client: Client | None = None
        self._closing = anyio.Event()
        self._lost: HarnessError | None = None

    @property
    def is_lost(self) -> bool:
        return self._lost is not None or self._closing.is_set()

    async def run(self, *, task_status: TaskStatus[HarnessError | None]) -> None:
        """Reports null once it is connected, or why it could not be; then stays until the end."""
        try:
            async with self._opened() as client:
                self._client = client
                task_status.started(None)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._listen, client)
                    await self._closing.wait()
                    group.cancel_scope.cancel()
        except Exception as error:  # the edge of the task: the next call learns it and connects again
            self._lost = self._explained(error)
            logger.info("%s", self._lost.message)
            if self._client is None:
                task_status.started(self._lost)
        finally:
            self._client = None
            self._lost = self._lost or PeerLost(f"the connection to MCP server '{self._server.name}' was closed")

    def close(self) -> None:
        self._closing.set()

    async def list_tools(self) -> list[Tool]:
        """All pages.

        Raises:
            HarnessError: the server is gone or answers nonsense.
        """
        tools: list[Tool] = []
        cursor: str | None = None
        try:
            for _ in range(MAX_PAGES):
                page = await self._connected().list_tools(cursor=cursor, cache_mode="bypass")
                tools += page.tools
                cursor = page.next_cursor
                if cursor is None:
                    return tools
        except Exception as error:  # whatever the client raises for a broken wire
            raise self._explained(error) from error
        raise PeerProtocolError(f"MCP server '{self._server.name}' lists tools without end ({MAX_PAGES} pages)")

    async def call(self, name: str, arguments: dict[str, Any], context: ToolContext) -> CallToolResult:
        """The server's answer; cancelling tells the server.

        Raises:
            HarnessError: there was none, so whether the tool took effect is unknown.
        """

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            context.progress(progress, total, message)

        try:
            return await self._connected().call_tool(
                name, arguments, self._server.call_ms / 1000, progress_callback=on_progress
            )
        except Exception as error:  # whatever the client raises for a broken wire, and for a refusal
            raise self._explained(error) from error

    # inside

    def _connected(self) -> Client:
        if self._client is None:
            raise self._lost or PeerLost(f"MCP server '{self._server.name}' is not connected")
        return self._client

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[Client]:
        from mcp import Client
        from mcp_types import Implementation

        info = Implementation(name="level2-harness", version=version("level2-harness"))
        async with AsyncExitStack() as stack:
            if self._server.source.kind == ToolSourceKind.MCP_HTTP:
                transport = self._over_http(await stack.enter_async_context(self._http_client()))
            else:
                transport = self._over_stdio()
            yield await stack.enter_async_context(Client(transport, client_info=info, message_handler=self._heard))

    def _over_stdio(self) -> AbstractAsyncContextManager[Streams]:
        source = self._server.source

        def started(process: RunningProcess) -> None:
            self._process = process

        return open_stdio(
            [source.command or "", *source.args],
            env=server_environment({variable.name: variable.value for variable in source.env}),
            cwd=self._server.cwd,
            name=f"MCP server '{source.name}'",
            open_process=self._open_process(),
            on_start=started,
        )

    def _over_http(self, http: Any) -> AbstractAsyncContextManager[Any]:
        from mcp.client.streamable_http import streamable_http_client

        url = self._server.source.url or ""
        return streamable_http_client(url, http_client=http, max_sse_event_size=MAX_SSE_EVENT_BYTES)

    def _http_client(self) -> AbstractAsyncContextManager[Any]:
        import httpx2

        async def note_status(response: httpx2.Response) -> None:
            self._status = response.status_code

        return httpx2.AsyncClient(
            headers={header.name: header.value for header in self._server.source.headers},
            # how long a call may take is the call's own limit
            timeout=httpx2.Timeout(HTTP_CONNECT_SECONDS, read=None),
            event_hooks={"response": [note_status]},
            trust_env=False,
        )

    async def _listen(self, client: Client) -> None:
        """News of the tool list where the protocol has to be asked for them (2026-07-28); older ones just send them."""
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
        from mcp.shared.exceptions import MCPError

        try:
            async with client.listen(tools_list_changed=True) as subscription:
                async for _ in subscription:
                    self._on_list_changed()
        except (ListenNotSupportedError, SubscriptionLost, MCPError) as error:
            logger.debug("MCP server '%s' tells no changes: %s", self._server.name, error)

    async def _heard(self, message: Any) -> None:
        from mcp_types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification):
            self._on_list_changed()

    def _explained(self, error: BaseException) -> HarnessError:
        """What went wrong, in our words, with the server's own last ones."""
        from mcp.shared.exceptions import MCPError

        error = _first_of(error)
        if isinstance(error, ConnectorUnavailable):
            return ConnectorUnavailable(f"{self._who}: {error.message}", reason="tools_unavailable")
        if isinstance(error, HarnessError):
            return error
        if self._status in (401, 403):
            text = f"{self._who} refuses us (status {self._status}); give it an 'Authorization' header"
            return ConnectorUnavailable(text, reason="tools_unavailable")
        what = str(error) or type(error).__name__
        if not isinstance(error, MCPError):
            return PeerLost(f"{self._who} cannot be reached: {what}")
        if self._status is not None and self._status >= 400:
            what += f" (status {self._status})"
        if error.code == _CLOSED or error.message == _SESSION_GONE or self._client is None:
            self._closing.set()
            return PeerLost(f"{self._who} is gone: {what}{self._last_words()}")
        return PeerProtocolError(f"{self._who} answered with an error: {what} ({error.code})")

    @property
    def _who(self) -> str:
        return f"MCP server '{self._server.name}'"

    def _last_words(self) -> str:
        """Without the secrets that it was given: what is said here is read by a model."""
        tail = self._process.stderr_tail.strip() if self._process is not None else ""
        for variable in self._server.source.env:
            if is_secret_name(variable.name) and variable.value:
                tail = tail.replace(variable.value, "(secret)")
        return f"; it wrote last: {tail[-_SHOWN_STDERR:]}" if tail else ""


def _first_of(error: BaseException) -> BaseException:
    """The first error inside a group, as deep as groups go."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
