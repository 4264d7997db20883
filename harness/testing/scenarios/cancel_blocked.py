"""A cancel while a call waits resolves it as cancelled; a late answer goes nowhere and the next message works."""

from __future__ import annotations

from harness.testing.checks import only, same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn_id = await talk.start()
    request = only("requests", await talk.pending(turn_id))
    await talk.cancel(turn_id)
    turn = await talk.finished(turn_id)
    turn.must_end("cancelled", "cancelled")
    same("what became of the call", turn.outcomes(), {request.request_id: "cancelled"})
    await talk.answer(turn_id, result(request, "too late"))
    after = await talk.say("And now?")
    after.must_end("completed", "end_turn")
    same("the next message", after.text, "Here again.")


SCENARIO = Scenario(
    name="cancel-blocked",
    requirements=("R-H1", "R-H3"),
    script=[[{"calls": [call("save", "call_1", note="x")]}], [{"text": "Here again."}]],
    run=run,
)
