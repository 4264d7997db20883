"""Conversations with stand-ins for the agents: programs of ours that speak their protocols and act on command."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio

from connectors.acp import AcpConnector
from connectors.codex import CodexConnector
from connectors.copilot import CopilotConnector
from contract_tests.connectors.agents import ENVIRONMENT, workplace
from harness.contract import ConversationOptions
from harness.local import LocalHarness
from harness.registry import Registry
from harness.store.memory import MemoryStore
from harness.testing.talk import Talk

PEERS = Path(__file__).parent.parent / "peers"


@dataclass(frozen=True)
class Standin:
    """Which connector it is for, its program, and the options it is started with."""

    connector: str
    program: str
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    model: str | None = None
    takes: str = "command"
    """The option that names the program."""


_PROVIDER = {"base_url": "http://127.0.0.1:9/v1", "key": "made-up"}
CODEX = Standin("codex", "codex_standin.py", _PROVIDER)
COPILOT_SDK = Standin("copilot:sdk", "copilot_standin.py", _PROVIDER, "m")
COPILOT_ACP = Standin("copilot:acp", "deaf_agent.py", _PROVIDER, "m")
ACP = Standin("acp:opencode", "deaf_agent.py", takes="program")
CLAUDE_AGENT_ACP = Standin("acp:claude-agent-acp", "deaf_agent.py", takes="program")


@asynccontextmanager
async def open_standin(
    standin: Standin, directory: Path, *, journal: MemoryStore | None = None, **chosen: Any
) -> AsyncGenerator[Talk]:
    """`chosen` are more options of the connector."""
    program = directory / "program"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {PEERS / standin.program} "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    home = directory / "home"
    given = {**standin.options, standin.takes: str(program), "home": str(home), "interrupt_seconds": 0.3, **chosen}
    options = ConversationOptions(
        connector=standin.connector,
        model=standin.model,
        cwd=workplace(directory),
        connector_options_json=json.dumps({"grace_seconds": 0.3, **given}),
    )
    made = (AcpConnector(ENVIRONMENT), CodexConnector(ENVIRONMENT), CopilotConnector(ENVIRONMENT))
    with anyio.fail_after(30):
        async with LocalHarness(Registry({one.name: one for one in made}), store=journal) as harness:
            yield Talk(harness, await harness.begin_conversation(options))
