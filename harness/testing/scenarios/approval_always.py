"""Allowed always, the same call is not asked about again in this conversation."""

from __future__ import annotations

from harness.testing.checks import holds, only, same
from harness.testing.scenario import APPROVALS, Scenario, Stage, run_command
from harness.testing.talk import choice

COMMAND = "mkdir -p made"


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: choice(request, "allow_always"))
    request = only("requests of two equal calls", turn.requests)
    holds("the option is offered", request.option("allow_always") is not None)
    same("the second call", turn.internal_tool("call_2")[1].result, "ok")
    same("the text", turn.text, "Twice.")
    written = sorted(file.name for file in stage.directory.iterdir() if file.name != "made")
    same("files written into the work directory", written, [])


SCENARIO = Scenario(
    name="approval-always",
    requirements=("conformance:approval",),
    script=[
        [
            {"calls": [run_command("call_1", COMMAND)]},
            {"calls": [run_command("call_2", COMMAND, asks=False)]},
            {"text": "Twice."},
        ]
    ],
    run=run,
    needs=(APPROVALS,),
)
