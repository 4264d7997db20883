"""What the connectors of agents promise is what was seen of the agents, no more and no less."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.acp import AcpConnector
from connectors.codex import CodexConnector
from connectors.copilot import CopilotConnector
from contract_tests.connectors.agents import ENVIRONMENT
from contract_tests.connectors.expected_capabilities import EXPECTED, OURS, is_no
from contract_tests.peers_installed import path_with_peers, peer_program, pinned_versions
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions
from harness.registry import Registry

PROVIDER = {"key": "k", "base_url": "http://127.0.0.1:9/v1"}
OPTIONS = {"codex": PROVIDER, "copilot": PROVIDER}


@requirement("agents:expected")
@pytest.mark.parametrize("row", EXPECTED)
async def test_a_connector_promises_exactly_what_was_seen_of_its_agent(row: str, tmp_path: Path) -> None:
    name, _, variant = row.partition(":")
    program = variant if name == "acp" else name
    if peer_program(program) is None:
        pytest.skip(f"'{program}' is not installed: type: make peers PEERS={program}")
    environ = {**ENVIRONMENT, "PATH": path_with_peers(ENVIRONMENT["PATH"]), "HOME": str(tmp_path)}
    registry = Registry(
        {
            "acp": AcpConnector(environ),
            "codex": CodexConnector(environ),
            "copilot": CopilotConnector(environ),
        }
    )
    given = json.dumps(OPTIONS.get(name, {}))
    chosen = ConversationOptions(connector=row, model="m", connector_options_json=given)
    connector, options = registry.resolve(chosen)
    told: dict[str, Any] = (await connector.get_capabilities(options)).model_dump(mode="json")
    expected = EXPECTED[row]
    assert {capability: told[capability] for capability in expected.values} == expected.values
    noes = {capability for capability, value in told.items() if is_no(capability, value)}
    assert noes - set(expected.recordings) - set(OURS) == set(), "a 'no' that no recording shows"
    assert told["inner"] == {"name": told["inner"]["name"], "version": expected.version, "tested": True}


@requirement("agents:expected")
@pytest.mark.parametrize("row", EXPECTED)
def test_every_no_names_the_recording_that_shows_it_and_the_version_is_the_pinned_one(row: str) -> None:
    expected = EXPECTED[row]
    program = row.removeprefix("acp:").partition(":")[0]
    assert expected.version == pinned_versions()[program]
    noes = {name for name, value in expected.values.items() if is_no(name, value)}
    assert noes - set(expected.recordings) == set()
    assert all(text.strip() for text in expected.recordings.values())
