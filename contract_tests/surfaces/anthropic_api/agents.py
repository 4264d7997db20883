"""The real agents behind our surface, each before a scripted model."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from anthropic.types import Message, MessageParam, ToolParam

from contract_tests.connectors.claude.cli import has_cli
from contract_tests.peers_installed import needs_peer
from contract_tests.surfaces.agents import open_agent_server
from contract_tests.surfaces.http import client_of
from harness.scripted_model import ScriptedModel
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.server import Server
from harness.testing.rows import ROWS

WEATHER: ToolParam = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
QUESTION: MessageParam = {"role": "user", "content": "How is the weather in Oslo and Rome?"}


def rows(*names: str) -> Iterator[object]:
    for name in names:
        program = ROWS[name].program
        if program == "claude":
            skipped = pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'")
            yield pytest.param(name, marks=[pytest.mark.live, skipped])
        else:
            yield pytest.param(name, marks=needs_peer(program) if program is not None else [])


def sdk_of(server: Server) -> AsyncAnthropic:
    return AsyncAnthropic(base_url=f"{server.url}/anthropic", api_key=server.tokens[0].secret, max_retries=0)


async def conversations(server: Server) -> list[dict[str, Any]]:
    async with client_of(server) as client:
        return (await client.get("/v1/conversations")).json()["conversations"]


class Agent:
    """A server with one agent before a scripted model, and a client of it."""

    def __init__(self, server: Server, client: AsyncAnthropic, name: str, model: ScriptedModel) -> None:
        self.server = server
        self.client = client
        self.name = name
        self.model = model

    async def say(self, messages: Sequence[MessageParam], *, streams: bool = True) -> Message:
        asked: dict[str, Any] = {
            "model": self.name,
            "max_tokens": 4096,
            "tools": [WEATHER],
            "system": "You know the weather.",
            "messages": messages,
        }
        if not streams:
            return await self.client.messages.create(**asked)
        async with self.client.messages.stream(**asked) as stream:
            return await stream.get_final_message()

    async def run(self, messages: Sequence[MessageParam], *, streams: bool = True) -> list[MessageParam]:
        """The history when the agent has answered; every call gets its result on the way."""
        history = list(messages)
        while True:
            message = await self.say(history, streams=streams)
            history.append({"role": "assistant", "content": message.content})
            results: list[Any] = [
                {"type": "tool_result", "tool_use_id": block.id, "content": f"rain in {block.input['city']}"}
                for block in message.content
                if block.type == "tool_use"
            ]
            if not results:
                return history
            history.append({"role": "user", "content": results})


@asynccontextmanager
async def open_agent(row: str, script: Sequence[Any], directory: Path) -> AsyncGenerator[Agent]:
    settings = CompatibleSettings(stream_grace_seconds=0)
    async with (
        open_agent_server(row, script, directory, settings) as agent,
        sdk_of(agent.server) as client,
    ):
        yield Agent(agent.server, client, agent.name, agent.model)
