"""A peer that is killed while it works fails the turn as lost; the next message goes on in the same conversation."""

from __future__ import annotations

from harness.contract.capabilities import Resume
from harness.testing.checks import holds, same
from harness.testing.scenario import DIES, RESUME, Scenario, Stage, pid_in


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    first = await talk.say("One.")
    turn_id = await talk.start("Two.")
    pid = pid_in(first.notices("peer_started"))
    if stage.model is not None and pid is not None:
        await stage.model.wait_for_request(2)
        stage.kill_peer(pid)
    turn = await talk.finished(turn_id)
    turn.must_end("failed", "error")
    same("the error", turn.state.error and turn.state.error.code, "peer_lost")
    after = await talk.say("Three.")
    after.must_end("completed", "end_turn")
    same("the next message", after.text, "Back.")
    if stage.capabilities.resume == Resume.CONTINUED and stage.model is not None:
        body = stage.model.requests[-1].body_text
        # what the peer had not written when it was killed is gone; that must be said
        knows = "One." in body and "Noted." in body
        holds("the model knows what was said before, or the loss is told", knows or after.notices("history_lost"))


SCENARIO = Scenario(
    name="peer-killed",
    requirements=("R-B3", "R-F1"),
    script=[[{"text": "Noted."}], [DIES], [{"text": "Back."}]],
    run=run,
    needs=(RESUME,),
)
