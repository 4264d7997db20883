"""The table of bypasses against the real CLI: it lets nothing through that the host's policy would not allow."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract_tests.connectors.claude.cli import OTHER_CLI, needs_cli
from contract_tests.requirements import requirement
from harness.testing.policy_probes import Probe
from harness.testing.probing import Finding, by_policy, try_probes
from harness.testing.rows import ROWS

pytestmark = needs_cli


@requirement("claude:delegation:policy", "policy:delegation:never-wider")
@pytest.mark.parametrize("probes", by_policy(), ids=lambda probes: probes[0].tries)
async def test_the_cli_is_no_wider_than_the_policy_it_was_given(probes: list[Probe], tmp_path: Path) -> None:
    options = {} if OTHER_CLI is None else {"command": OTHER_CLI}
    found = await try_probes(ROWS["claude"], probes, tmp_path, options)
    assert [one for one in found if one.finding != Finding.KEPT] == []
