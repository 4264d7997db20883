"""A request that the peer takes back is withdrawn; a late answer is accepted and goes nowhere."""

from __future__ import annotations

from harness.contract.requests import HostResponse
from harness.testing.checks import only, same
from harness.testing.scenario import Scenario, Stage, call, withdraws


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.unanswered(await talk.start())
    request_id, outcome = only("requests", list(turn.outcomes().items()))
    same("what became of it", outcome, "withdrawn")
    await talk.answer(turn.turn_id, HostResponse(request_id=request_id, is_error=True))
    turn.must_end("completed", "end_turn")
    same("the text", turn.text, "Never mind.")


SCENARIO = Scenario(
    name="request-withdrawn",
    requirements=("R-H5",),
    script=[
        [{"calls": [call("save", "call_1", note="x")], "waits": False}, withdraws("call_1"), {"text": "Never mind."}]
    ],
    run=run,
)
