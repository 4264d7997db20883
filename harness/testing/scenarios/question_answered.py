"""A question of the model reaches the host with its options; the choice reaches the model."""

from __future__ import annotations

from harness.contract.requests import Answer, HostRequest, HostResponse
from harness.testing.checks import holds, only, same
from harness.testing.scenario import QUESTIONS, Scenario, Stage, ask_user


async def run(stage: Stage) -> None:
    talk = await stage.begin()

    def choose(request: HostRequest) -> HostResponse:
        question = only("questions", request.questions)
        return HostResponse(
            request_id=request.request_id, action="accept", answers=[Answer(question_id=question.id, selected=["Red"])]
        )

    turn = await talk.say(answer=choose)
    request = only("requests", turn.requests)
    same("the kind", request.kind, "user_question")
    question = request.questions[0]
    same("the text of the question", question.text, "Which colour?")
    same("its options", [option.label for option in question.options], ["Red", "Blue"])
    same("several may be chosen", question.multi_select, False)
    same("what became of it", turn.outcomes(), {request.request_id: "answered"})
    holds("the model read the choice", "Red" in turn.text, turn.text)


SCENARIO = Scenario(
    name="question-answered",
    requirements=("R-D11",),
    script=[
        [
            {"calls": [ask_user("call_1", {"text": "Which colour?", "options": ["Red", "Blue"]})]},
            {"text": "You said: {{results.call_1}}"},
        ]
    ],
    run=run,
    needs=(QUESTIONS,),
)
