"""A limit of output tokens ends the turn with its own stop reason."""

from __future__ import annotations

from harness.contract.options import Limits
from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say()
    turn.must_end("completed", "max_tokens")


SCENARIO = Scenario(
    name="max-tokens",
    requirements=("conformance:stop-reasons",),
    script=[[{"text": "cut ", "stop": "max_tokens", "usage": {"output_tokens": 1000}}] * 4],
    run=run,
    options={"limits": Limits(max_output_tokens=1000)},
)
