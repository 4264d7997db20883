"""A provider that stays down fails the turn after the peer's retries, which are told."""

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
    same("its reason", detail.get("reason"), "server")
    holds("the retries are told", turn.notices("retry"), [item.kind for item in turn.items])


SCENARIO = Scenario(
    name="provider-down",
    requirements=("conformance:provider-errors",),
    script=[[{"error": {"status": 500, "message": "boom", "retry_after": 0}}] * 8],
    run=run,
)
