"""The host allows a call with other arguments: those are what runs."""

from __future__ import annotations

from harness.testing.checks import holds, only, same
from harness.testing.scenario import APPROVALS, Scenario, Stage, run_command
from harness.testing.talk import choice


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    changed = '{"command":"echo two"}'
    turn = await talk.say(answer=lambda request: choice(request, "allow_once", updated_arguments_json=changed))
    request = only("requests", turn.requests)
    same("what became of it", turn.outcomes(), {request.request_id: "answered"})
    holds("the command as written was not run", not (stage.directory / "made").exists())
    same("the text", turn.text, "Done.")
    if stage.model is not None:
        [past] = stage.model.requests[-1].past_calls
        holds("the changed command was run", "two" in (past.result or ""), past.result)


SCENARIO = Scenario(
    name="approval-changed",
    requirements=("conformance:approval",),
    script=[[{"calls": [run_command("call_1", "touch made")]}, {"text": "Done."}]],
    run=run,
    needs=(APPROVALS,),
)
