"""A stream that is cut is asked for again or fails the turn: its half never counts as an answer."""

from __future__ import annotations

import json

from harness.testing.checks import same
from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say()
    if turn.state.status == "failed":
        error = turn.state.error
        same("the error", error and error.code, "provider_error")
        detail = json.loads((error and error.detail_json) or "{}")
        same("its reason", detail.get("reason"), "network")
        turn = await talk.say("Again.")
    turn.must_end("completed", "end_turn")
    same("the text", turn.text, "The whole answer.")


SCENARIO = Scenario(
    name="cut-stream",
    requirements=("conformance:provider-errors",),
    script=[[{"text": ["half an ", "answer"], "drop": True}, {"text": "The whole answer."}]],
    run=run,
)
