"""A cancel while an approval waits: what was asked for does not happen, and the next message works."""

from __future__ import annotations

from harness.testing.checks import holds, only, same
from harness.testing.scenario import APPROVALS, Scenario, Stage, run_command


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn_id = await talk.start()
    request = only("requests", await talk.pending(turn_id))
    same("the kind", request.kind, "approval")
    await talk.cancel(turn_id)
    turn = await talk.finished(turn_id)
    turn.must_end("cancelled", "cancelled")
    same("what became of the approval", turn.outcomes(), {request.request_id: "cancelled"})
    after = await talk.say("And now?")
    after.must_end("completed", "end_turn")
    same("the next message", after.text, "Here again.")
    holds("the command was not run", not (stage.directory / "made").exists())


SCENARIO = Scenario(
    name="cancel-approval",
    requirements=("R-H1", "R-H3"),
    script=[[{"calls": [run_command("call_1", "touch made")]}], [{"text": "Here again."}]],
    run=run,
    needs=(APPROVALS,),
)
