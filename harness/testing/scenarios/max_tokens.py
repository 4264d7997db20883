"""A limit of output tokens ends the turn with its own stop reason."""

from __future__ import annotations

from harness.contract.options import Limits
from harness.testing.checks import same
from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say()
    same("the end of the turn", turn.end, ("completed", "max_tokens"))


SCENARIO = Scenario(
    name="max-tokens",
    requirements=("conformance:stop-reasons",),
    script=[[{"text": "cut ", "stop": "max_tokens", "usage": {"output_tokens": 1000}}] * 4],
    run=run,
    options={"limits": Limits(max_output_tokens=1000)},
)
