"""The real agents behind a server of ours, each before a scripted model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from harness.contract import ConversationInfo, Notice
from harness.local import LocalHarness
from harness.scripted_model import ScriptedModel
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.server import Server, serve
from harness.surfaces.tokens import Token
from harness.testing.rows import ROWS
from harness.testing.scenario import Scenario

SECONDS = 180


@dataclass(frozen=True)
class AgentServer:
    """A server with one agent, which clients know as a model by this name."""

    server: Server
    house: LocalHarness
    name: str
    model: ScriptedModel

    async def conversations(self, token: int = 0) -> list[ConversationInfo]:
        return list(await self._view(token).list_conversations())

    async def pids(self, token: int = 0) -> list[int]:
        """Of all processes that were started for this token, as its conversations tell."""
        view = self._view(token)
        told = [await view.export_conversation(one.conversation_id) for one in await view.list_conversations()]
        items = [item for one in told for turn in one.turns for item in turn.items]
        texts = [item.text for item in items if isinstance(item, Notice) and item.code == "peer_started"]
        return [int(found[1]) for text in texts if (found := re.search(r"pid (\d+)", text))]

    def _view(self, token: int) -> LocalHarness:
        chosen = self.server.tokens[token]
        return self.house.for_owner(chosen.owner, chosen.rights)


@asynccontextmanager
async def open_agent_server(
    row: str, script: Sequence[Any], directory: Path, compatible: CompatibleSettings, tokens: Sequence[Token] = ()
) -> AsyncGenerator[AgentServer]:
    """A variant `lab` stands for the options that lead the agent to its model, which no remote caller may name."""
    prepared_row = ROWS[row]
    scenario = Scenario("clients", (), [script], _unplayed)
    registry = prepared_row.registry()
    with anyio.fail_after(SECONDS):
        async with prepared_row.prepare(scenario, directory) as prepared, LocalHarness(registry) as harness:
            name, _, variant = row.partition(":")
            connector: Any = registry.connector(name)
            chosen = json.loads(prepared.options.connector_options_json or "{}")
            connector.variants = {"lab": {**connector.variants.get(variant, {}), **chosen}}
            async with serve(harness, connectors=[name], compatible=compatible, tokens=tokens) as server:
                assert prepared.model is not None
                yield AgentServer(server, harness, f"{name}:lab/{prepared.options.model or 'm'}", prepared.model)


async def _unplayed(stage: object) -> None:
    raise AssertionError("only its script is wanted")
