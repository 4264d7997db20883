"""Every scenario on every connector, and the published matrix that says how it went.

`make test` runs all of it on the connectors that need no program, and eight scenarios with the real CLI; `make
test-live` runs the rest.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract_tests.connectors.claude.cli import has_cli
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.testing import matrix
from harness.testing.rows import ROWS
from harness.testing.running import run_scenario
from harness.testing.scenarios import all_scenarios

SCENARIOS = all_scenarios()
MATRIX = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
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
            marks = [pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'")]
            marks.append(pytest.mark.live if name in ALWAYS_LIVE else pytest.mark.all_live)
            yield pytest.param(row.name, name, marks=marks if row.is_live else [], id=f"{row.name}-{name}")


@requirement("conformance:matrix")
@pytest.mark.parametrize(("row", "scenario"), [*cases()])
async def test_the_connector_keeps_the_contract_as_the_matrix_says(row: str, scenario: str, tmp_path: Path) -> None:
    outcome = await run_scenario(SCENARIOS[scenario], ROWS[row], tmp_path)
    assert matrix.word_of(outcome) == matrix.cells(MATRIX).get((row, scenario)), (
        "docs/conformance.md is out of step; type: harness verify --matrix docs/conformance.md"
    )


@requirement("conformance:matrix")
def test_the_matrix_has_every_connector_and_every_scenario() -> None:
    assert matrix.unknown_names(MATRIX, ROWS, SCENARIOS) == set()
