"""A cancel while the model speaks ends the turn as cancelled; the next message works."""

from __future__ import annotations

from harness.contract.capabilities import Streaming
from harness.testing.checks import holds, same
from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn_id = await talk.start()
    if stage.capabilities.streaming == Streaming.NONE:
        if stage.model is not None:
            await stage.model.wait_for_request(1)
    else:
        await talk.until(turn_id, lambda _, items: any(item.kind == "text_delta" for item in items))
    await talk.cancel(turn_id)
    await talk.cancel(turn_id)  # idempotent
    turn = await talk.finished(turn_id)
    turn.must_end("cancelled", "cancelled")
    holds("the cancel is in the stream", turn.notices("cancel_requested"))
    after = await talk.say("And now?")
    after.must_end("completed", "end_turn")
    same("the next message", after.text, "Here again.")


SCENARIO = Scenario(
    name="cancel-streaming",
    requirements=("R-H3",),
    script=[[{"text": "It was a dark and ", "hang": True}], [{"text": "Here again."}]],
    run=run,
)
