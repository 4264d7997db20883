"""Arguments of a megabyte reach the host whole."""

from __future__ import annotations

import json

from harness.testing.checks import holds, only, same
from harness.testing.scenario import Scenario, Stage
from harness.testing.scenarios.longest_result import marked
from harness.testing.talk import result

NOTE = marked(1_000_000)


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: result(request, "kept"))
    request = only("requests", turn.requests)
    holds("the argument is whole", json.loads(request.arguments_json or "{}") == {"note": NOTE})
    error = turn.state.error
    if error is None or error.code != "context_overflow":  # of a model whose window is smaller than that
        same("the text", turn.text, "It was kept.")


SCENARIO = Scenario(
    name="large-arguments",
    requirements=("R-B4",),
    script=[
        [
            {"calls": [{"name": "save", "id": "call_1", "arguments_json": json.dumps({"note": NOTE})}]},
            {"text": "It was {{results.call_1}}."},
        ]
    ],
    run=run,
)
