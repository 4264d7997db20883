"""A message while a turn runs is refused and disturbs nothing; the same one again is the same turn."""

from __future__ import annotations

from harness.errors import TurnInProgress
from harness.testing.checks import Divergence, only, same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn_id = await talk.start("One.")
    request = only("requests", await talk.pending(turn_id))
    try:
        await talk.start("Two.")
    except TurnInProgress:
        pass
    else:
        raise Divergence("a second message was taken while a turn runs")
    same("the turn of the same message", await talk.start("One."), turn_id)
    await talk.answer(turn_id, result(request, "ok"))
    same("the text", (await talk.finished(turn_id)).text, "Done: ok")


SCENARIO = Scenario(
    name="second-message",
    requirements=("R-M6", "R-D4"),
    script=[[{"calls": [call("save", "call_1", note="x")]}, {"text": "Done: {{results.call_1}}"}]],
    run=run,
)
