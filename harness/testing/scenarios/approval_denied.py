"""A denied call does not happen, the model learns why, and the turn goes on or ends as the capability says."""

from __future__ import annotations

from harness.contract.capabilities import Denial
from harness.testing.checks import holds, only, same
from harness.testing.scenario import APPROVALS, Scenario, Stage, run_command
from harness.testing.talk import choice

REASON = "Not on a Sunday."


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: choice(request, "deny", reason=REASON))
    request = only("requests", turn.requests)
    same("what became of it", turn.outcomes(), {request.request_id: "refused"})
    holds("the command was not run", not (stage.directory / "made").exists())
    same("how the call ended", turn.internal_tool("call_1")[1].result, "refused")
    if stage.capabilities.denial == Denial.CONTINUES:
        turn.must_end("completed", "end_turn")
        same("the text", turn.text, "Then not.")
    if stage.model is not None and stage.capabilities.denial == Denial.CONTINUES:
        [past] = stage.model.requests[-1].past_calls
        holds("the model was told why", REASON in (past.result or ""), past.result)


SCENARIO = Scenario(
    name="approval-denied",
    requirements=("conformance:approval",),
    script=[[{"calls": [run_command("call_1", "touch made")]}, {"text": "Then not."}]],
    run=run,
    needs=(APPROVALS,),
)
