"""Two identical calls of one round are two requests with a result each."""

from __future__ import annotations

from harness.testing.checks import holds, same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    answers = iter(("first", "second"))
    turn = await talk.say(answer=lambda request: result(request, next(answers)))
    same("the number of requests", len(turn.requests), 2)
    holds("they have ids of their own", turn.requests[0].request_id != turn.requests[1].request_id)
    same("their arguments", turn.requests[0].arguments_json, turn.requests[1].arguments_json)
    results = turn.text.split(" and ")
    same("both results", results if stage.keeps_order else sorted(results), ["first", "second"])


SCENARIO = Scenario(
    name="identical-calls",
    requirements=("R-G4",),
    script=[
        [
            {"calls": [call("get_weather", "call_1", city="Oslo"), call("get_weather", "call_2", city="Oslo")]},
            {"text": "{{results.call_1}} and {{results.call_2}}"},
        ]
    ],
    run=run,
)
