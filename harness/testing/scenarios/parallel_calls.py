"""Two calls of one round wait together where the peer can, and may be answered in any order."""

from __future__ import annotations

from harness.contract.capabilities import Parallel
from harness.contract.requests import HostRequest
from harness.testing.checks import same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn_id = await talk.start()
    count = 1 if stage.capabilities.parallel == Parallel.NONE else 2
    waiting = await talk.pending(turn_id, count)
    if count == 2 and stage.keeps_order:
        same("the order of the model", [one.arguments_json or "" for one in waiting], sorted_by_city(waiting))
    await talk.answer(turn_id, *(result(one, f"[{one.arguments_json}]") for one in reversed(waiting)))
    turn = await talk.finished(turn_id, lambda one: result(one, f"[{one.arguments_json}]"))
    text = turn.text.replace(" ", "")
    same("each result belongs to its call", text, '[{"city":"Oslo"}]and[{"city":"Rome"}]')


def sorted_by_city(requests: list[HostRequest]) -> list[str]:
    return sorted(one.arguments_json or "" for one in requests)


SCENARIO = Scenario(
    name="parallel-calls",
    requirements=("conformance:call:parallel", "R-M7"),
    script=[
        [
            {"calls": [call("get_weather", "call_1", city="Oslo"), call("get_weather", "call_2", city="Rome")]},
            {"text": "{{results.call_1}} and {{results.call_2}}"},
        ]
    ],
    run=run,
)
