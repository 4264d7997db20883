"""A call may take its time: it stays open, and its late result arrives whole."""

from __future__ import annotations

import os

import anyio

from harness.testing.checks import only, same
from harness.testing.scenario import Scenario, Stage, call
from harness.testing.talk import result

SECONDS_VARIABLE = "HARNESS_SLOW_TOOL_SECONDS"
"""How long the tool takes; the real watchdogs of peers take minutes."""


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn_id = await talk.start()
    request = only("requests", await talk.pending(turn_id))
    await anyio.sleep(float(os.environ.get(SECONDS_VARIABLE, "0.5")))
    turn = await talk.now(turn_id)
    same("it still waits", [one.request_id for one in turn.state.pending_requests], [request.request_id])
    await talk.answer(turn_id, result(request, "at last"))
    same("the text", (await talk.finished(turn_id)).text, "It said: at last")


SCENARIO = Scenario(
    name="slow-tool",
    requirements=("conformance:call:slow",),
    script=[[{"calls": [call("save", "call_1", note="x")]}, {"text": "It said: {{results.call_1}}"}]],
    run=run,
    seconds=3600.0,
)
