"""Usage is that of the turn: every model call counts once, and the next turn starts at nothing."""

from __future__ import annotations

from harness.testing.checks import same
from harness.testing.scenario import USAGE, Scenario, Stage, call
from harness.testing.talk import Turn, result

USED = {"input_tokens": 1500, "output_tokens": 50}


def figures(turn: Turn) -> tuple[int | None, int | None, int | None]:
    usage = turn.state.usage
    return (usage and usage.input_tokens, usage and usage.output_tokens, usage and usage.model_calls)


async def run(stage: Stage) -> None:
    talk = await stage.begin()
    first = await talk.say(answer=lambda request: result(request, "ok"))
    same("the text", first.text, "one: ok")
    second = await talk.say("And?")
    same("input, output and calls of the first turn", figures(first), (3000, 100, 2))
    same("input, output and calls of the second turn", figures(second), (1500, 50, 1))
    total = second.state.conversation_usage
    same("input of the conversation", total and total.input_tokens, 4500)


SCENARIO = Scenario(
    name="usage-once",
    requirements=("R-L1",),
    script=[
        [{"calls": [call("save", "call_1", n=1)], "usage": USED}, {"text": "one: {{results.call_1}}", "usage": USED}],
        [{"text": "two", "usage": USED}],
    ],
    run=run,
    needs=(USAGE,),
)
