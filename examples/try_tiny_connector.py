"""The conformance kit for a connector of your own: pytest examples/try_tiny_connector.py"""

from pathlib import Path

from examples.tiny_connector import TinyConnector
from harness.registry import Registry
from harness.testing.rows import scripted
from harness.testing.running import run_scenario
from harness.testing.scenario import Scenario

pytest_plugins = ["harness.testing.plugin"]

ROW = scripted(
    "tiny",
    lambda url, _: {"base_url": f"{url}/v1", "max_retries": 2},
    registry=lambda: Registry({"tiny": TinyConnector()}),
    exempt={
        "peer-killed": "there is no process to kill",
        "request-withdrawn": "the loop takes no request back",
    },
)


async def test_the_connector_keeps_the_contract(scenario: Scenario, tmp_path: Path) -> None:
    await run_scenario(scenario, ROW, tmp_path)
