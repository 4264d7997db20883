"""An answer without any call streams, and ends as one text."""

from __future__ import annotations

from harness.contract.capabilities import Streaming
from harness.testing.checks import holds, same
from harness.testing.scenario import Scenario, Stage


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say("Hi.")
    turn.must_end("completed", "end_turn")
    same("the text", turn.text, "Hello there.")
    same("the last item", turn.items[-1].kind, "turn_ended")
    same("the numbers of the items", [item.sequence_no for item in turn.items], [*range(1, len(turn.items) + 1)])
    if stage.capabilities.streaming == Streaming.TOKEN:
        same("the streamed text", turn.deltas, "Hello there.")
    holds(
        "nothing the peer said was unknown", not turn.notices("unknown_peer_event"), turn.notices("unknown_peer_event")
    )


SCENARIO = Scenario(
    name="no-tool",
    requirements=("conformance:text",),
    script=[[{"text": ["Hello ", "there."]}]],
    run=run,
)
