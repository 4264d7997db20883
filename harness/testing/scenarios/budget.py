"""A budget that is used up ends the turn; where no cost is known it is refused at begin."""

from __future__ import annotations

from harness.contract.options import Limits
from harness.testing.scenario import COST, Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: result(request, "ok"))
    turn.must_end("completed", "budget")


SCENARIO = Scenario(
    name="budget",
    requirements=("conformance:stop-reasons",),
    script=[[{"calls": [call("save", "call_1", n=1)], "usage": {"input_tokens": 1_000_000}}, {"text": "never"}]],
    run=run,
    options={"limits": Limits(cost_budget_usd=0.01)},
    needs=(COST,),
)
