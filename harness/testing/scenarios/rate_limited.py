"""A rate limit is told while the peer tries again, and the answer comes."""

from __future__ import annotations

from harness.testing.checks import holds, same
from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say()
    turn.must_end("completed", "end_turn")
    same("the text", turn.text, "Fine.")
    holds("the rate limit is told", turn.notices("rate_limit"), [item.kind for item in turn.items])


SCENARIO = Scenario(
    name="rate-limited",
    requirements=("R-L2",),
    script=[[{"error": {"status": 429, "message": "slow down", "retry_after": 0}}, {"text": "Fine."}]],
    run=run,
)
