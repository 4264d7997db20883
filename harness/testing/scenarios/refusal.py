"""A model that refuses has its own stop reason."""

from __future__ import annotations

from harness.testing.checks import same
from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    same("the end of the turn", (await talk.say()).end, ("completed", "refusal"))


SCENARIO = Scenario(
    name="refusal",
    requirements=("conformance:stop-reasons",),
    script=[[{"text": "I", "stop": "refusal"}]],
    run=run,
)
