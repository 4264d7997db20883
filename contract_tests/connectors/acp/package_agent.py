"""An agent on ACP made with the package `agent-client-protocol`; run by path.

What it is told is a list of steps in JSON, each a list with the step's name before its arguments; it says what came of
each. It has what a session was told in a file below HOME, and plays it back when the session is loaded.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import anyio
from acp import schema
from acp.helpers import plan_entry, start_tool_call, update_agent_message_text, update_plan, update_tool_call

OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Allow", kind="allow_once"),
    schema.PermissionOption(option_id="no", name="Reject", kind="reject_once"),
]


class StepAgent:
    def __init__(self) -> None:
        self._client: Any = None
        self._servers: dict[str, list[Any]] = {}
        self._cwds: dict[str, str] = {}
        self._told: schema.ClientCapabilities | None = None
        self._cancelled = anyio.Event()
        self._calls = 0

    def on_connect(self, conn: Any) -> None:
        self._client = conn

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **more: Any
    ) -> schema.InitializeResponse:
        self._told = client_capabilities
        mcp = schema.McpCapabilities(http="STDIO_ONLY" not in os.environ)
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="steps", version="1"),
            agent_capabilities=schema.AgentCapabilities(load_session=True, mcp_capabilities=mcp),
        )

    async def new_session(self, cwd: str, mcp_servers: Any = None, **more: Any) -> schema.NewSessionResponse:
        session_id = f"steps-{os.getpid()}-{len(self._servers)}"
        await self._open(session_id, cwd, mcp_servers)
        return schema.NewSessionResponse(session_id=session_id)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Any = None, **more: Any
    ) -> schema.LoadSessionResponse:
        if not _memory(session_id).exists():
            raise acp.RequestError(-32002, "Resource not found")
        for said in _memory(session_id).read_text(encoding="utf-8").splitlines():
            await self._say(session_id, said)
        await self._open(session_id, cwd, mcp_servers)
        return schema.LoadSessionResponse()

    async def cancel(self, session_id: str, **more: Any) -> None:
        self._cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **more: Any) -> schema.PromptResponse:
        self._cancelled = anyio.Event()
        with _memory(session_id).open("a", encoding="utf-8") as memory:
            memory.write(json.dumps([block.text for block in prompt]) + "\n")
        for step, *arguments in json.loads(prompt[-1].text):
            said = await getattr(self, f"_step_{step}")(session_id, *arguments)
            if self._cancelled.is_set():
                return schema.PromptResponse(stop_reason="cancelled")
            await self._say(session_id, str(said))
        return schema.PromptResponse(stop_reason="end_turn")

    # the steps

    async def _step_call(self, session_id: str, tool: str, arguments: dict[str, Any]) -> str:
        """A tool of the host, over MCP."""
        self._calls += 1
        call_id = f"call_{self._calls}"
        title = f"host_{tool}"
        start = start_tool_call(call_id, title, kind="other", status="in_progress", raw_input=arguments)
        await self._client.session_update(session_id, start)
        async with _connected(self._servers[session_id][0]) as server:
            result = await server.call_tool(tool, arguments)
        await self._client.session_update(session_id, update_tool_call(call_id, status="completed"))
        return "".join(block.text for block in result.content)

    async def _step_ask(self, session_id: str, command: str) -> str:
        call = schema.ToolCallUpdate(
            tool_call_id="own_1", title=command, kind="execute", raw_input={"command": command}, status="pending"
        )
        answer = await self._client.request_permission(session_id=session_id, tool_call=call, options=OPTIONS)
        return f"[{getattr(answer.outcome, 'option_id', answer.outcome.outcome)}]"

    async def _step_plan(self, session_id: str, *entries: str) -> str:
        plan = update_plan([plan_entry(entry, status="in_progress") for entry in entries])
        await self._client.session_update(session_id, plan)
        return "[planned]"

    async def _step_wait(self, session_id: str) -> str:
        await self._cancelled.wait()
        return ""

    async def _step_offered(self, session_id: str) -> str:
        """What the client has told that it can."""
        assert self._told is not None
        return json.dumps(self._told.model_dump(mode="json", by_alias=True, include={"fs", "terminal"}))

    async def _step_read(self, session_id: str, path: str, **more: Any) -> str:
        try:
            return (await self._client.read_text_file(session_id=session_id, path=path, **more)).content
        except acp.RequestError as error:
            return f"[{error.code} {error}]"

    async def _step_write(self, session_id: str, path: str, content: str) -> str:
        try:
            await self._client.write_text_file(session_id=session_id, path=path, content=content)
        except acp.RequestError as error:
            return f"[{error.code} {error}]"
        return "[written]"

    async def _step_start(self, session_id: str, command: str, *arguments: str) -> str:
        """A command that goes on while the agent does other things."""
        terminal = await self._client.create_terminal(session_id=session_id, command=command, args=list(arguments))
        return terminal.terminal_id

    async def _step_run(self, session_id: str, command: str, *arguments: str, **more: Any) -> str:
        try:
            terminal = await self._client.create_terminal(
                session_id=session_id, command=command, args=list(arguments) or None, **more
            )
        except acp.RequestError as error:
            return f"[{error.code} {error}]"
        of_it = {"session_id": session_id, "terminal_id": terminal.terminal_id}
        try:
            ended = await self._client.wait_for_terminal_exit(**of_it)
        except acp.RequestError as error:
            return f"[{error.code} {error}]"
        output = await self._client.terminal_output(**of_it)
        await self._client.kill_terminal(**of_it)
        await self._client.release_terminal(**of_it)
        return f"{output.output}[{ended.exit_code} {ended.signal}]"

    # inside

    async def _open(self, session_id: str, cwd: str, servers: list[Any]) -> None:
        self._servers[session_id], self._cwds[session_id] = servers, cwd
        for server in servers:
            async with _connected(server) as connected:
                await connected.list_tools()

    async def _say(self, session_id: str, text: str) -> None:
        if text:
            await self._client.session_update(session_id, update_agent_message_text(text))


def _memory(session_id: str) -> Path:
    return Path(os.environ["HOME"]) / f"{session_id}.txt"


@asynccontextmanager
async def _connected(server: Any) -> AsyncGenerator[Any]:
    import httpx2
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    if isinstance(server, schema.McpServerStdio):
        env = {variable.name: variable.value for variable in server.env}
        transport: Any = StdioServerParameters(command=server.command, args=server.args, env=env)
        async with Client(transport) as client:
            yield client
        return
    headers = {header.name: header.value for header in server.headers}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=None, trust_env=False) as http,
        Client(streamable_http_client(server.url, http_client=http)) as client,
    ):
        yield client


if __name__ == "__main__":
    anyio.run(acp.run_agent, StepAgent())  # type: ignore[arg-type]
