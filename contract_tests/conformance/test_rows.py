"""Every scenario on every connector, and the published matrix that says how it went.

`make test` runs all of it on the connectors that need no program, and eight scenarios with the real CLI; `make
test-live` runs the rest.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract_tests.connectors.acp.schema_check import CheckedJsonRpc
from contract_tests.connectors.claude.cli import has_cli
from contract_tests.peers_installed import is_quick, needs_peer, path_with_peers
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.testing.matrix import Cell, read_matrix
from harness.testing.row import Row
from harness.testing.rows import ROWS
from harness.testing.running import run_scenario
from harness.testing.scenarios import all_scenarios

SCENARIOS = all_scenarios()
MATRIX_FILE = ROOT / "docs" / "conformance.md"
MATRIX = read_matrix(MATRIX_FILE)
OUT_OF_STEP = "docs/conformance.md is out of step; type: harness verify --matrix docs/conformance.md"
ALWAYS_LIVE = {
    "one-call",
    "parallel-calls",
    "tool-error",
    "approval-granted",
    "cancel-blocked",
    "usage-once",
    "peer-killed",
    "continued",
}


def cases() -> Iterator[object]:
    for row in ROWS.values():
        for name in SCENARIOS:
            yield pytest.param(row.name, name, marks=marks_of(row, name), id=f"{row.name}-{name}")


def marks_of(row: Row, scenario: str) -> list[pytest.MarkDecorator]:
    if row.program is None:
        return []
    if row.program == "claude":
        needed = [pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'")]
    else:
        needed = needs_peer(row.program)
    is_always = scenario in ALWAYS_LIVE and is_quick(row.program)
    return [*needed, pytest.mark.live if is_always else pytest.mark.all_live]


@pytest.fixture(autouse=True)
def agents_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agents of peers.txt are found as a user's are."""
    monkeypatch.setenv("PATH", path_with_peers(os.environ["PATH"]))


@pytest.fixture(autouse=True)
def checked_acp(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said to ACP agents is checked against ACP's schema."""
    monkeypatch.setattr("connectors.acp.protocol.JsonRpc", CheckedJsonRpc)


@requirement("conformance:matrix")
@pytest.mark.parametrize(("row", "scenario"), [*cases()])
async def test_the_connector_keeps_the_contract_as_the_matrix_says(row: str, scenario: str, tmp_path: Path) -> None:
    outcome = await run_scenario(SCENARIOS[scenario], ROWS[row], tmp_path)
    assert Cell.of(outcome) == MATRIX.cell(row, scenario), OUT_OF_STEP


@requirement("conformance:matrix")
def test_the_matrix_has_every_connector_and_every_scenario() -> None:
    assert MATRIX.missing(ROWS, SCENARIOS) == set(), OUT_OF_STEP
    assert MATRIX.render(SCENARIOS) == MATRIX_FILE.read_text(encoding="utf-8"), OUT_OF_STEP
