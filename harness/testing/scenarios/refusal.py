"""A model that refuses has its own stop reason."""

from __future__ import annotations

from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    (await talk.say()).must_end("completed", "refusal")


SCENARIO = Scenario(
    name="refusal",
    requirements=("conformance:stop-reasons",),
    script=[[{"text": "I", "stop": "refusal"}]],
    run=run,
)
