"""A pytest plugin: a test that asks for the fixture `scenario` runs once for each scenario.

pytest_plugins = ["harness.testing.plugin"]

async def test_my_connector_keeps_the_contract(scenario: Scenario, tmp_path: Path) -> None:
    await run_scenario(scenario, ROW, tmp_path)
"""

from __future__ import annotations

import pytest

from harness.testing.scenarios import all_scenarios


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrises `scenario`, unless the test does so itself."""
    asked = "scenario" in metafunc.fixturenames
    if asked and not any("scenario" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")):
        scenarios = all_scenarios()
        metafunc.parametrize("scenario", list(scenarios.values()), ids=list(scenarios))
