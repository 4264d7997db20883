"""A call that nobody answers in time gets one error result, leaves the list, and the turn goes on."""

from __future__ import annotations

from harness.contract.options import Timeouts
from harness.testing.checks import holds, only, same
from harness.testing.scenario import Scenario, Stage, call

TOOL_MS = 200


async def run(stage: Stage) -> None:
    talk = await stage.begin(timeouts=Timeouts(tool_ms=TOOL_MS))
    turn_id = await talk.start()
    request = only("requests", await talk.pending(turn_id))
    same("the deadline it shows", (request.expires_at or 0) - request.opened_at, TOOL_MS)
    turn = await talk.unanswered(turn_id)
    same("what became of it", turn.outcomes(), {request.request_id: "expired"})
    same("nothing waits any more", turn.state.pending_requests, [])
    holds("the model was told", "0.2 s" in turn.text, turn.text)
    turn.must_end("completed", "end_turn")


SCENARIO = Scenario(
    name="tool-timeout",
    requirements=("R-A6",),
    script=[[{"calls": [call("save", "call_1", note="x")]}, {"text": "I read: {{results.call_1}}"}]],
    run=run,
)
