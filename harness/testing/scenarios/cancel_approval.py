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
    same("the end of the turn", turn.end, ("cancelled", "cancelled"))
    same("what became of the approval", turn.outcomes(), {request.request_id: "cancelled"})
    after = await talk.say("And now?")
    same("the next message", (after.end, after.text), (("completed", "end_turn"), "Here again."))
    holds("the command was not run", not (stage.directory / "made").exists())


SCENARIO = Scenario(
    name="cancel-approval",
    requirements=("R-H1", "R-H3"),
    script=[[{"calls": [run_command("call_1", "touch made")]}], [{"text": "Here again."}]],
    run=run,
    needs=(APPROVALS,),
)
