"""Several questions at once, one of them with several choices: each answer goes to its question."""

from __future__ import annotations

from harness.contract.requests import Answer, HostRequest, HostResponse
from harness.testing.checks import holds, only, same
from harness.testing.scenario import QUESTIONS, Scenario, Stage, ask_user

COLOURS = {"text": "Which colours?", "options": ["Red", "Blue", "Green"], "multi_select": True}
SIZE = {"text": "Which size?", "options": ["Small", "Large"]}


async def run(stage: Stage) -> None:
    talk = await stage.begin()

    def choose(request: HostRequest) -> HostResponse:
        same("the number of questions", len(request.questions), 2)
        colours, size = request.questions
        answers = [
            Answer(question_id=colours.id, selected=["Red", "Green"]),
            Answer(question_id=size.id, selected=["Large"]),
        ]
        return HostResponse(request_id=request.request_id, action="accept", answers=answers)

    turn = await talk.say(answer=choose)
    request = only("requests", turn.requests)
    same("several may be chosen", [one.multi_select for one in request.questions], [True, False])
    for chosen in ("Red", "Green", "Large"):
        holds(f"the model read '{chosen}'", chosen in turn.text, turn.text)
    holds("the model did not read what was not chosen", "Blue" not in turn.text, turn.text)


SCENARIO = Scenario(
    name="question-multi-select",
    requirements=("R-D11",),
    script=[[{"calls": [ask_user("call_1", COLOURS, SIZE)]}, {"text": "You said: {{results.call_1}}"}]],
    run=run,
    needs=(QUESTIONS,),
)
