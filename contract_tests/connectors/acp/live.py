"""A conversation with a real ACP agent, started as the matrix starts it, before a scripted model."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from connectors.acp import AcpConnector
from contract_tests.connectors.agents import ENVIRONMENT, Agent, workplace
from contract_tests.peers_installed import path_with_peers
from harness.local import LocalHarness
from harness.registry import Registry
from harness.testing.agent_rows import CLAUDE_ACP, CODEX_ACP, GEMINI, OPENCODE
from harness.testing.scenario import SAVE, WEATHER, Scenario, Stage
from harness.testing.talk import Talk

ROWS = {row.name.removeprefix("acp:"): row for row in (OPENCODE, GEMINI, CLAUDE_ACP, CODEX_ACP)}


@asynccontextmanager
async def open_live(
    name: str,
    script: Sequence[Mapping[str, Any]],
    directory: Path,
    *,
    chosen: Mapping[str, Any] | None = None,
    **more: Any,
) -> AsyncGenerator[Agent]:
    """`chosen` are options of the connector beside those of the matrix."""
    environ = {**ENVIRONMENT, "PATH": path_with_peers(ENVIRONMENT["PATH"])}
    scenario = Scenario(name="live", requirements=(), script=[[dict(entry) for entry in script]], run=_unused)
    registry = Registry({"acp": AcpConnector(environ)})
    with anyio.fail_after(120):
        async with ROWS[name].prepare(scenario, directory) as prepared, LocalHarness(registry) as harness:
            given = json.loads(prepared.options.connector_options_json or "{}")
            changes = {
                "tools": [WEATHER, SAVE],
                "cwd": workplace(directory),
                "connector_options_json": json.dumps({**given, **(chosen or {})}),
                **more,
            }
            options = prepared.options.model_copy(update=changes)
            talk = Talk(harness, await harness.begin_conversation(options))
            assert prepared.model is not None
            yield Agent(harness, prepared.model, talk)


async def _unused(stage: Stage) -> None:
    raise AssertionError("this scenario is only what a model says")
