"""Fewer tools for one turn are offered in this turn only, or refused before anything is sent."""

from __future__ import annotations

from harness.contract.options import TurnOptions
from harness.errors import InvalidArgument, NotSupported
from harness.testing.checks import Divergence, same
from harness.testing.scenario import Scenario, Stage, turn_option


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    try:
        await talk.start(options=TurnOptions(tool_names=["no_such_tool"]))
    except (InvalidArgument, NotSupported):
        pass
    else:
        raise Divergence("a tool that does not exist was taken")
    first = await talk.say("One.", options=TurnOptions(tool_names=["save"]))
    second = await talk.say("Two.")
    same("both texts", (first.text, second.text), ("one", "two"))
    if stage.model is not None:
        offered = [len(request.tools) for request in stage.model.requests]
        same("the number of tools in each turn", offered, [1, 2])


SCENARIO = Scenario(
    name="turn-tools",
    requirements=("conformance:turn-options",),
    script=[[{"text": "one"}], [{"text": "two"}]],
    run=run,
    needs=(turn_option("tool_names"),),
)
