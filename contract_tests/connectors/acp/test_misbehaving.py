"""An agent that does not see the host's tools, and one that does not listen."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from connectors.acp import AcpConnector
from contract_tests.connectors.agents import ENVIRONMENT, workplace
from contract_tests.connectors.processes import living
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions, ToolDescriptor
from harness.local import LocalHarness
from harness.registry import Registry
from harness.testing.scenario import SAVE, pid_in
from harness.testing.talk import Talk

DEAF = Path(__file__).parent.parent.parent / "peers" / "deaf_agent.py"


@asynccontextmanager
async def open_deaf(directory: Path, tools: Sequence[ToolDescriptor], **chosen: object) -> AsyncGenerator[Talk]:
    given = {"command": [sys.executable, str(DEAF)], "home": str(directory), **chosen}
    options = ConversationOptions(
        connector="acp",
        tools=list(tools),
        cwd=workplace(directory),
        connector_options_json=json.dumps(given),
    )
    registry = Registry({"acp": AcpConnector(ENVIRONMENT)})
    with anyio.fail_after(30):
        async with LocalHarness(registry) as harness:
            yield Talk(harness, await harness.begin_conversation(options))


@requirement("R-E1", "R-E3")
async def test_an_agent_that_never_asks_for_the_hosts_tools_gets_no_message(tmp_path: Path) -> None:
    async with open_deaf(tmp_path, [SAVE], start_seconds=1.5) as talk:
        turn = await talk.say("Answer.")
    assert turn.state.error is not None
    assert json.loads(turn.state.error.detail_json or "{}")["reason"] == "tools_unavailable"
    assert "did not ask for the host's tools within 1.5 s" in turn.state.error.message


@requirement("R-H2", "R-H3")
async def test_an_agent_that_ignores_a_cancel_is_ended_and_the_next_message_works(tmp_path: Path) -> None:
    async with open_deaf(tmp_path, [], interrupt_seconds=0.3, grace_seconds=0.3) as talk:
        turn_id = await talk.start("Wait.")
        begun = await talk.until(turn_id, lambda _, items: items)
        pid = pid_in(begun.notices("peer_started"))
        await talk.cancel(turn_id)
        assert (await talk.unanswered(turn_id)).end == ("cancelled", "cancelled")
        # it waits for the one before to be gone
        assert (await talk.say("Answer.")).end == ("completed", "end_turn")
        assert pid is not None and living([pid]) == []
