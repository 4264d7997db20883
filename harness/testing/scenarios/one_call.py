"""A call reaches the host as the model wrote it, its result reaches the model."""

from __future__ import annotations

from harness.contract.capabilities import CallIds
from harness.testing.checks import holds, only, same
from harness.testing.scenario import WEATHER, Scenario, Stage
from harness.testing.talk import result

ARGUMENTS = '{"city":"Oslo","at":[1,2]}'


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: result(request, "12 °C"))
    request = only("requests", turn.requests)
    same("the kind", request.kind, "tool_call")
    same("the tool", request.tool_name, WEATHER.name)
    same("the arguments", (request.arguments_json or "").replace(" ", ""), ARGUMENTS)
    if stage.capabilities.call_ids == CallIds.EXACT:
        same("the call id", request.call_id, "call_1")
        same("its source", request.call_id_source, "exact")
    holds("the host knows when the call was opened", request.opened_at > 0)
    same("what became of it", turn.outcomes(), {request.request_id: "answered"})
    same("the text", turn.text.splitlines()[-1], "It is 12 °C.")


SCENARIO = Scenario(
    name="one-call",
    requirements=("conformance:call", "R-I5"),
    script=[
        [
            {"text": "I look.", "calls": [{"name": "get_weather", "id": "call_1", "arguments_json": ARGUMENTS}]},
            {"text": "It is {{results.call_1}}."},
        ]
    ],
    run=run,
)
