"""A limit of model calls ends the turn, not the conversation."""

from __future__ import annotations

from harness.contract.options import Limits
from harness.testing.checks import same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: result(request, "ok"))
    turn.must_end("completed", "max_turns")
    same("the next message", (await talk.say("And?")).text, "next")


SCENARIO = Scenario(
    name="max-turns",
    requirements=("conformance:stop-reasons",),
    script=[[{"calls": [call("save", "call_1", n=1)]}, {"calls": [call("save", "call_2", n=2)]}], [{"text": "next"}]],
    run=run,
    options={"limits": Limits(max_turns=2)},
)
