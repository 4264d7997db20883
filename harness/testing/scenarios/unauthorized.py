"""A key that is not accepted fails the turn with reason `auth` and the provider's words."""

from __future__ import annotations

import json

from harness.testing.checks import holds, same
from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say()
    turn.must_end("failed", "error")
    error = turn.state.error
    same("the error", error and error.code, "provider_error")
    detail = json.loads((error and error.detail_json) or "{}")
    same("its reason", detail.get("reason"), "auth")
    holds("the provider's words are in it", error and "no such key" in error.message, error and error.message)


SCENARIO = Scenario(
    name="unauthorized",
    requirements=("conformance:provider-errors",),
    script=[[{"error": {"status": 401, "message": "no such key"}}] * 4],
    run=run,
)
