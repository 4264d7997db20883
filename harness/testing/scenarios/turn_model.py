"""A model for one turn is used in this turn and forgotten after it, or refused before anything is sent."""

from __future__ import annotations

from typing import Any

from harness.contract.options import TurnOptions
from harness.testing.checks import same
from harness.testing.scenario import Scenario, Stage, turn_option

OTHER = "claude-haiku-4-5"


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    first = await talk.say("One.", options=TurnOptions(model=OTHER))
    second = await talk.say("Two.")
    same("both texts", (first.text, second.text), ("one", "two"))
    if stage.model is not None:
        bodies: list[Any] = [request.body for request in stage.model.requests]
        same("the model of the first turn", bodies[0]["model"], OTHER)
        same("it is forgotten after it", bodies[1]["model"] != OTHER, True)


SCENARIO = Scenario(
    name="turn-model",
    requirements=("conformance:turn-options",),
    script=[[{"text": "one"}], [{"text": "two"}]],
    run=run,
    needs=(turn_option("model"),),
)
