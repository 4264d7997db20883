"""Which program a conversation's options start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connectors.acp.connector import AcpConnector
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions
from harness.errors import InvalidArgument


def chosen(**options: Any) -> ConversationOptions:
    return ConversationOptions(connector="acp", connector_options_json=json.dumps(options))


@requirement("acp:program")
async def test_a_known_agent_may_lie_anywhere_and_keeps_its_arguments_and_version(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"version": "1.18.33"}', encoding="utf-8")
    program = tmp_path / "some-opencode"
    program.touch()
    connector, options = AcpConnector({"PATH": "/nowhere"}), chosen(agent="opencode", program=str(program))
    assert connector.dry_run(options)["argv"] == [str(program), "acp"]
    inner = (await connector.get_capabilities(options)).inner
    assert inner is not None
    assert (inner.name, inner.version, inner.tested) == ("opencode", "1.18.33", True)


@requirement("acp:program")
def test_a_program_goes_with_a_known_agent_only_and_is_not_for_remote_callers() -> None:
    for others in ({}, {"command": ["other"]}, {"agent": "gemini", "command": ["other"]}):
        with pytest.raises(InvalidArgument, match="'agent'"):
            AcpConnector({}).dry_run(chosen(program="/opt/agent", **others))
    assert "program" in AcpConnector.restricted_options
