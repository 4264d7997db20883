"""Tool sources as they are typed: files of functions, MCP configurations, services on the network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from harness.orchestrator.mcp_config import McpServer, read_mcp_config
from harness.orchestrator.tool_provider import ToolProvider


def read_servers(files: Sequence[Path]) -> list[McpServer]:
    """Raises:
    ConfigError: a file that cannot be used.
    """
    return [server for file in files for server in read_mcp_config(file)]


@asynccontextmanager
async def open_services(openapi: Sequence[str], ujmw: Sequence[str]) -> AsyncGenerator[list[ToolProvider]]:
    """The services at these `URL[#NAME,...]`; the names select operations, of OpenAPI also by tag.

    Raises:
        HarnessError: one that cannot be reached or used.
    """
    async with AsyncExitStack() as stack:
        providers: list[ToolProvider] = []
        # each brings an HTTP client with it
        if openapi:
            from harness.orchestrator.openapi_source import open_openapi_source

            for typed in openapi:
                location, select = _parsed(typed)
                providers.append(await stack.enter_async_context(open_openapi_source(location, select=select)))
        if ujmw:
            from harness.orchestrator.ujmw_source import open_ujmw_source

            for typed in ujmw:
                location, select = _parsed(typed)
                providers.append(await stack.enter_async_context(open_ujmw_source(location, select=select)))
        yield providers


def _parsed(typed: str) -> tuple[str, list[str] | None]:
    location, _, names = typed.partition("#")
    return location, [name for name in names.split(",") if name] or None
