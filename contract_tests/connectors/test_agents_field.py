"""What was seen to go wrong around real agents, provoked with each of them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from connectors.acp import AcpConnector
from connectors.codex import CodexConnector
from connectors.copilot import CopilotConnector
from contract_tests.connectors.agents import ENVIRONMENT, workplace
from contract_tests.connectors.processes import living
from contract_tests.peers_installed import needs_peer, path_with_peers
from contract_tests.requirements import requirement
from harness.local import LocalHarness
from harness.registry import Registry
from harness.scripted_model import ScriptedModel
from harness.testing.agent_rows import AGENTS
from harness.testing.row import Row
from harness.testing.scenario import SAVE, WEATHER, Scenario, Stage, pid_in
from harness.testing.talk import Talk, result

ALL = [pytest.param(row, marks=needs_peer(row.program or ""), id=row.name) for row in AGENTS]
ACP = [one for one in ALL if str(one.id).startswith("acp:")]


async def never(stage: Stage) -> None:
    raise NotImplementedError


@dataclass(frozen=True)
class House:
    harness: LocalHarness
    model: ScriptedModel
    options: Any

    async def begin(self, **more: Any) -> Talk:
        return Talk(self.harness, await self.harness.begin_conversation(self.options.model_copy(update=more)))


@asynccontextmanager
async def open_house(
    row: Row, script: list[dict[str, Any]], directory: Path, environ: dict[str, str] | None = None, **chosen: Any
) -> AsyncGenerator[House]:
    path = path_with_peers(ENVIRONMENT["PATH"])
    environment = {**ENVIRONMENT, "PATH": path, "HOME": str(directory), **(environ or {})}
    made = (AcpConnector(environment), CodexConnector(environment), CopilotConnector(environment))
    registry = Registry({connector.name: connector for connector in made})
    scenario = Scenario(name="field", requirements=(), script=[script], run=never)
    with anyio.fail_after(150):
        async with row.prepare(scenario, directory) as prepared, LocalHarness(registry) as harness:
            given = json.loads(prepared.options.connector_options_json or "{}")
            changes = {"cwd": workplace(directory), "connector_options_json": json.dumps({**given, **chosen})}
            assert prepared.model is not None
            yield House(harness, prepared.model, prepared.options.model_copy(update=changes))


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    return [pid, *(one for child in children for one in family(int(child)))]


@requirement("R-C2", "R-E4")
@pytest.mark.parametrize("row", ALL)
async def test_each_conversation_has_a_process_and_tools_of_its_own_and_its_end_ends_all_it_started(
    row: Row, tmp_path: Path
) -> None:
    script = [
        {"calls": [{"name": name, "id": name, "arguments": {"city": "Oslo"}}]} for name in ("save", "get_weather")
    ]
    async with open_house(row, [*script, {"text": "Done."}, {"text": "Done."}], tmp_path) as house:
        first, second = await house.begin(tools=[SAVE]), await house.begin(tools=[WEATHER])
        families: list[list[int]] = []
        waiting: list[tuple[Talk, str, Any]] = []
        for talk, tool in ((first, "save"), (second, "get_weather")):
            turn_id = await talk.start()
            [request] = await talk.pending(turn_id)
            assert request.tool_name == tool
            pid = pid_in((await talk.now(turn_id)).notices("peer_started"))
            assert pid is not None
            families.append(family(pid))
            waiting.append((talk, turn_id, request))
        assert set(families[0]).isdisjoint(families[1])
        await house.harness.end_conversation(second.conversation_id)
        assert living(families[1]) == []
        assert families[0][0] in living(families[0])
        talk, turn_id, request = waiting[0]
        await talk.answer(turn_id, result(request, "kept"))
        assert (await talk.finished(turn_id)).end == ("completed", "end_turn")
        await house.harness.end_conversation(first.conversation_id)
        assert living(families[0]) == []


def plant(home: Path, marker: Path) -> None:
    """The user's own settings of every agent: an MCP server that leaves a mark when it is started."""
    server = {"command": "/usr/bin/touch", "args": [str(marker)]}
    files = {
        ".claude.json": {"mcpServers": {"mine": {"type": "stdio", **server}}},
        ".claude/settings.json": {"enableAllProjectMcpServers": True},
        ".gemini/settings.json": {"mcpServers": {"mine": server}},
        ".config/opencode/opencode.json": {
            "mcp": {"mine": {"type": "local", "command": ["/usr/bin/touch", str(marker)]}}
        },
    }
    for name, settings in files.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    codex = home / ".codex" / "config.toml"
    codex.parent.mkdir()
    codex.write_text(f'[mcp_servers.mine]\ncommand = "/usr/bin/touch"\nargs = ["{marker}"]\n', encoding="utf-8")


@requirement("R-E5")
@pytest.mark.parametrize("row", ACP)
async def test_the_users_own_servers_are_not_started_and_the_model_sees_the_hosts_tools_only(
    row: Row, tmp_path: Path
) -> None:
    home, marker = tmp_path / "user", tmp_path / "started"
    plant(home, marker)
    environ = {"HOME": str(home)}
    async with open_house(row, [{"text": "Done."}], tmp_path, environ, isolated_home=False) as house:
        talk = await house.begin(tools=[SAVE])
        assert (await talk.say()).text == "Done."
        shown = set(house.model.requests[-1].tools)
    assert not marker.exists()
    assert not [name for name in shown if "mine" in name]
    assert any(name.endswith("save") for name in shown)
