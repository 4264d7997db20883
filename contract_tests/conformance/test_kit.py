"""The conformance kit in foreign hands: one fixture, and a connector that is not ours."""

import os
import subprocess
import sys

from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
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
