"""A tool's error goes to the model, with its text; the turn goes on."""

from __future__ import annotations

from harness.contract.capabilities import ToolErrorFlag
from harness.testing.checks import holds, only, same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: result(request, "disk full", is_error=True))
    turn.must_end("completed", "end_turn")
    holds("the model read the error", "disk full" in turn.text, turn.text)
    request = only("requests", turn.requests)
    same("an error is an answer", turn.outcomes(), {request.request_id: "answered"})
    if stage.model is not None and stage.capabilities.tool_error_flag == ToolErrorFlag.KEPT:
        [past] = stage.model.requests[-1].past_calls
        holds("the model sees it marked as an error", past.is_error)


SCENARIO = Scenario(
    name="tool-error",
    requirements=("R-G3",),
    script=[[{"calls": [call("save", "call_1", note="x")]}, {"text": "I read: {{results.call_1}}"}]],
    run=run,
)
