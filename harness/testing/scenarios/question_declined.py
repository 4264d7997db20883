"""A declined question is no answer: the model hears that it was declined, and the turn goes on."""

from __future__ import annotations

from harness.contract.requests import HostResponse
from harness.testing.checks import only, same
from harness.testing.scenario import QUESTIONS, Scenario, Stage, ask_user


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    turn = await talk.say(answer=lambda request: HostResponse(request_id=request.request_id, action="decline"))
    request = only("requests", turn.requests)
    same("what became of it", turn.outcomes(), {request.request_id: "refused"})
    turn.must_end("completed", "end_turn")
    same("the text", turn.text, "As you like.")


SCENARIO = Scenario(
    name="question-declined",
    requirements=("R-D11",),
    script=[
        [
            {"calls": [ask_user("call_1", {"text": "Which colour?", "options": ["Red", "Blue"]})]},
            {"text": "As you like."},
        ]
    ],
    run=run,
    needs=(QUESTIONS,),
)
