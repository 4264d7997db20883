"""An MCP server with the `mcp` package: over stdio as a program, over HTTP from `http_app()`.

It lists one tool per page. `slow` waits until it is cancelled and then says so in `cancelled`.
"""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.subscriptions import ToolsListChanged

DOT = "iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/n"}}, "required": ["a"]}
TOOLS = [
    types.Tool(
        name="add.numbers",
        description="Adds.",
        input_schema={**SCHEMA, "$defs": {"n": {"type": "integer", "default": None}}},
        annotations=types.ToolAnnotations(read_only_hint=True, destructive_hint=False),
    ),
    types.Tool(name="draw", input_schema={"type": "object"}),
    types.Tool(name="fail", input_schema={"type": "object"}),
    types.Tool(name="slow", input_schema={"type": "object"}),
    types.Tool(name="who", input_schema={"type": "object"}),
    types.Tool(name="change", input_schema={"type": "object"}),
]


class Peer:
    """The server and what it saw."""

    def __init__(self) -> None:
        self.cancelled = anyio.Event()
        self.started = anyio.Event()
        self.called: list[str] = []
        self.tools = list(TOOLS)
        self.news = InMemorySubscriptionBus()
        self.server: Server[Any] = Server(
            "peer",
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_subscriptions_listen=ListenHandler(self.news),
        )

    async def list_tools(self, ctx: Any, params: Any) -> types.ListToolsResult:
        page = int(params.cursor or 0) if params else 0
        following = str(page + 1) if page + 1 < len(self.tools) else None
        return types.ListToolsResult(tools=self.tools[page : page + 1], next_cursor=following)

    async def call_tool(self, ctx: Any, params: Any) -> types.CallToolResult:
        arguments = params.arguments or {}
        self.called.append(params.name)
        match params.name:
            case "add.numbers":
                await ctx.session.report_progress(1, 2, "adding")
                total = arguments["a"] + arguments.get("b", 0)
                return types.CallToolResult(
                    content=[types.TextContent(type="text", text=str(total))], structured_content={"sum": total}
                )
            case "draw":
                image = types.ImageContent(type="image", data=DOT, mime_type="image/png")
                link = types.ResourceLink(type="resource_link", uri="file:///a", name="a")
                return types.CallToolResult(content=[image, link])
            case "fail":
                return types.CallToolResult(content=[types.TextContent(type="text", text="no such row")], is_error=True)
            case "slow":
                self.started.set()
                try:
                    await anyio.sleep_forever()
                finally:
                    self.cancelled.set()
            case "who":
                request = ctx.request
                said = None if request is None else request.headers.get("authorization")
                return types.CallToolResult(content=[types.TextContent(type="text", text=str(said))])
            case "change":
                self.tools = [tool for tool in self.tools if tool.name != "fail"]
                await self.news.publish(ToolsListChanged())
                return types.CallToolResult(content=[])
            case unknown:
                raise ValueError(unknown)
        raise AssertionError


async def main() -> None:
    peer = Peer()
    print("ready to serve", file=sys.stderr, flush=True)
    async with stdio_server() as (read, write):
        await peer.server.run(read, write, peer.server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
