"""After a restart of the harness a conversation goes on, with what the model read before."""

from __future__ import annotations

from harness.testing.checks import holds, same
from harness.testing.scenario import RESUME, Scenario, Stage, call
from harness.testing.talk import result


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    await talk.say(answer=lambda request: result(request, "the word is xylophone"))
    talk = await stage.restart(talk)
    turn = await talk.say("What was it?")
    turn.must_end("completed", "end_turn")
    holds("nothing was lost", not turn.notices("history_lost"), turn.notices("history_lost"))
    same("the text", turn.text, "It was: the word is xylophone")


SCENARIO = Scenario(
    name="continued",
    requirements=("R-F1",),
    script=[
        [{"calls": [call("save", "call_1", note="x")]}, {"text": "Noted."}],
        [{"text": "It was: {{results.call_1}}"}],
    ],
    run=run,
    needs=(RESUME,),
)
