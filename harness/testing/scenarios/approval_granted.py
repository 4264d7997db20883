"""An internal tool asks before it acts; allowed once, it acts, and the host sees the call and its end."""

from __future__ import annotations

from harness.testing.checks import holds, only, same
from harness.testing.scenario import APPROVALS, RUN, Scenario, Stage, run_command
from harness.testing.talk import choice


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: choice(request, "allow_once"))
    request = only("requests", turn.requests)
    same("the kind", request.kind, "approval")
    same("the tool", request.tool_name, stage.peer_name(RUN))
    same("the call it gates", request.call_id, "call_1")
    holds("it shows the command", "echo made" in (request.arguments_json or ""), request.arguments_json)
    holds("it can be denied", request.option("deny") is not None, request.options)
    same("what became of it", turn.outcomes(), {request.request_id: "answered"})
    started, finished = turn.internal_tool("call_1")
    same("the tool that ran", started.tool_name, stage.peer_name(RUN))
    same("how it went", finished.result, "ok")
    same("the text", turn.text, "Done.")


SCENARIO = Scenario(
    name="approval-granted",
    requirements=("conformance:approval",),
    script=[[{"calls": [run_command("call_1", "echo made > made")]}, {"text": "Done."}]],
    run=run,
    needs=(APPROVALS,),
)
