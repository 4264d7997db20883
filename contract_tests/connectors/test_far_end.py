"""What was configured arrives: a stand-in of each agent tells with what it was started."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from contract_tests.connectors import standins
from contract_tests.connectors.standins import Standin, open_standin
from contract_tests.requirements import requirement
from harness.contract import ToolSourceDescriptor
from harness.local import LocalHarness
from harness.testing.talk import Talk

DAY_SECONDS = 24 * 3600
ALL = [
    pytest.param(one, id=one.connector)
    for one in (standins.CODEX, standins.COPILOT_SDK, standins.COPILOT_ACP, standins.ACP)
]


async def told(talk: Talk) -> dict[str, Any]:
    """The environment of the far end, and what its session was opened with."""
    turn = await talk.say("Told.")
    return json.loads(turn.text)


@requirement("R-A4")
@pytest.mark.parametrize("standin", ALL)
async def test_a_limit_that_the_user_sets_in_the_environment_reaches_the_agent(
    standin: Standin, tmp_path: Path
) -> None:
    async with open_standin(standin, tmp_path, env={"MCP_TOOL_TIMEOUT": "1200000"}) as talk:
        assert (await told(talk))["env"]["MCP_TOOL_TIMEOUT"] == "1200000"


@requirement("R-A4")
async def test_codex_is_told_how_long_a_tool_of_a_delegated_source_may_take(tmp_path: Path) -> None:
    source = ToolSourceDescriptor(name="shop", kind="mcp_stdio", command="/nowhere/shop")
    async with open_standin(standins.CODEX, tmp_path) as talk:
        await cast(LocalHarness, talk.llm).delegate_tool_sources(talk.conversation_id, [source])
        entry = (await told(talk))["opened"]["config"]["mcp_servers"]["shop"]
    assert (entry["startup_timeout_sec"], entry["tool_timeout_sec"]) == (30, DAY_SECONDS)


@requirement("R-A4")
async def test_acp_agents_are_told_how_long_a_call_may_take_each_in_its_own_way(tmp_path: Path) -> None:
    async with open_standin(standins.ACP, tmp_path) as talk:
        config = json.loads((await told(talk))["env"]["OPENCODE_CONFIG_CONTENT"])
    assert config["experimental"]["mcp_timeout"] == DAY_SECONDS * 1000
    async with open_standin(standins.CLAUDE_AGENT_ACP, tmp_path) as talk:
        options = (await told(talk))["opened"]["_meta"]["claudeCode"]["options"]
    assert options["env"]["MCP_TOOL_TIMEOUT"] == str(DAY_SECONDS * 1000)
