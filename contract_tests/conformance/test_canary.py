"""The canary falls for a peer that does not ask, and its verdict belongs to one binary."""

import json
import os
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from connectors.acp import AcpConnector
from connectors.codex import CodexConnector
from connectors.copilot import CopilotConnector
from contract_tests.peers_installed import needs_peer, path_with_peers
from contract_tests.requirements import requirement
from harness.connector import Connector
from harness.contract import ConversationOptions
from harness.registry import Registry
from harness.testing.agent_rows import AGENTS
from harness.testing.canary import (
    CanaryVerdict,
    Subject,
    keep_verdict,
    known_verdict,
    row_of,
    run_canary,
    subject_of,
)
from harness.testing.rows import FAKE, Prepared, Row
from harness.testing.scenario import Scenario

Steps = list[dict[str, Any]]
SUBJECT = Subject("fake", "/opt/peer", "ab" * 32, "Linux 6 x86_64")


def a_fake(change: Callable[[Steps], Steps]) -> Row:
    """The fake peer after a change of what it does in each turn."""

    @asynccontextmanager
    async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
        async with FAKE.prepare(scenario, directory) as prepared:
            script = json.loads(prepared.options.connector_options_json or "{}")
            script["turns"] = [change(turn) for turn in script["turns"]]
            changed = {"connector_options_json": json.dumps(script)}
            yield Prepared(prepared.options.model_copy(update=changed))

    return replace(FAKE, prepare=prepare)


def as_it_is(steps: Steps) -> Steps:
    return steps


def never_asks(steps: Steps) -> Steps:
    return [step for step in steps if "approval" not in step]


def acts_first(steps: Steps) -> Steps:
    """Runs the tool, then asks."""
    asks = [step for step in steps if "approval" in step]
    return [*never_asks(steps)[:-2], *never_asks(steps)[-2:-1], *asks, *never_asks(steps)[-1:]]


def never_waits(steps: Steps) -> Steps:
    """Calls the host's tool and answers without its result."""
    return [{**step, "wait": False} if "calls" in step else step for step in steps]


def cannot_start(steps: Steps) -> Steps:
    return [{"error": {"code": "peer_lost", "message": "no such flag"}}]


@requirement("canary:falls")
@pytest.mark.parametrize(
    ("peer", "because"),
    [
        (as_it_is, ""),
        (never_asks, "approvals of an internal tool: expected exactly one, found 0"),
        (acts_first, "how the denied tool ended: expected 'refused', found"),
        (never_waits, "fewer than 1 requests|what the model read of the host's tool"),
        (cannot_start, "the turn failed: no such flag"),
    ],
)
async def test_a_peer_that_does_not_keep_what_approvals_promise_fells_it(
    peer: Callable[[Steps], Steps], because: str
) -> None:
    verdict = await run_canary(a_fake(peer), SUBJECT, {})
    assert verdict.passed == (because == "")
    assert re.search(because, verdict.because)


@requirement("canary:verdict")
def test_a_verdict_is_known_for_the_same_binary_route_and_system_only(tmp_path: Path) -> None:
    verdict = CanaryVerdict(SUBJECT, False, "it did not ask", 1)
    assert known_verdict(tmp_path, SUBJECT) is None
    file = keep_verdict(tmp_path / "state", verdict)
    assert known_verdict(file.parent, SUBJECT) == verdict
    moved = replace(SUBJECT, program="/elsewhere/peer")
    assert known_verdict(file.parent, moved) == verdict
    for other in (replace(SUBJECT, digest="cd" * 32), replace(SUBJECT, row="fake:ask"), replace(SUBJECT, system="x")):
        assert known_verdict(file.parent, other) is None
    file.write_text("{")
    assert known_verdict(file.parent, SUBJECT) is None


@requirement("canary:agents", "R-D7", "R-D12")
@pytest.mark.parametrize("row", [pytest.param(row, marks=needs_peer(row.program or ""), id=row.name) for row in AGENTS])
async def test_each_installed_agent_passes_or_has_nothing_to_prove(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", path_with_peers(os.environ["PATH"]))
    connector, _ = Registry().resolve(ConversationOptions(connector=row.name))
    subject = await subject_of(row, connector, {})
    if subject is None:
        assert "canary" in row.exempt
        return
    verdict = await run_canary(row, subject, {})
    assert (verdict.passed, verdict.because) == (True, "")


@requirement("canary:agents")
@pytest.mark.parametrize(
    ("connector", "options", "name"),
    [
        (CodexConnector, {}, "codex"),
        (CopilotConnector, {}, "copilot:sdk"),
        (CopilotConnector, {"mode": "acp"}, "copilot:acp"),
        (AcpConnector, {"agent": "gemini"}, "acp:gemini"),
        (AcpConnector, {"command": ["/opt/agent"]}, None),
        (AcpConnector, {}, None),
    ],
)
def test_a_conversation_is_guarded_by_the_row_of_what_it_starts(
    connector: Callable[[dict[str, str]], Connector], options: dict[str, Any], name: str | None, tmp_path: Path
) -> None:
    program = tmp_path / "copilot"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    asked = ConversationOptions(connector_options_json=json.dumps(options))
    row = row_of(connector({"PATH": str(tmp_path), "HOME": str(tmp_path)}), asked)
    assert (row and row.name) == name
