"""A turn goes through several rounds; each call is made once and has one result."""

from __future__ import annotations

from harness.testing.checks import same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: result(request, f"<{request.tool_name}>"))
    same("the tools in order", [one.tool_name for one in turn.requests], ["get_weather", "save", "get_weather"])
    same("all outcomes", sorted(turn.outcomes().values()), ["answered"] * 3)
    same("the text of the last round", turn.text.splitlines()[-1], "<get_weather><save><get_weather>")
    turn.must_end("completed", "end_turn")


SCENARIO = Scenario(
    name="three-rounds",
    requirements=("R-G1",),
    script=[
        [
            {"calls": [call("get_weather", "call_1", city="Oslo")]},
            {"text": "And now this.", "calls": [call("save", "call_2", note="Oslo")]},
            {"calls": [call("get_weather", "call_3", city="Rome")]},
            {"text": "{{results.call_1}}{{results.call_2}}{{results.call_3}}"},
        ]
    ],
    run=run,
)
