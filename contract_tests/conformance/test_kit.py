"""The conformance kit in foreign hands: one fixture, and a connector that is not ours."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.testing.checks import Divergence
from harness.testing.rows import ROWS
from harness.testing.running import run_scenario
from harness.testing.scenarios import all_scenarios


@requirement("conformance:kit")
def test_the_example_connector_passes_every_scenario_by_one_fixture() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "examples/try_tiny_connector.py"],
        cwd=ROOT,
        env={name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(all_scenarios())} passed" in done.stdout


@requirement("conformance:kit")
def test_every_scenario_is_told_in_a_line_and_says_what_it_covers() -> None:
    for name, scenario in all_scenarios().items():
        assert scenario.summary.endswith("."), name
        assert scenario.requirements, name


@requirement("conformance:kit")
async def test_a_gap_that_is_none_any_more_is_told_unless_it_shows_by_chance_only(tmp_path: Path) -> None:
    row = replace(ROWS["fake"], known_gaps={"no-tool": "it is said to fail"})
    scenario = all_scenarios()["no-tool"]
    with pytest.raises(Divergence, match="take it out of its known gaps"):
        await run_scenario(scenario, row, tmp_path)
    outcome = await run_scenario(scenario, replace(row, chance=frozenset({"no-tool"})), tmp_path)
    assert outcome.because == "it is said to fail"
