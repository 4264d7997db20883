"""A conversation starts from a history that the host gives: the model reads it, exactly or as text."""

from __future__ import annotations

from harness.contract.capabilities import SeedHistory
from harness.contract.content import TextBlock
from harness.contract.options import HistoryMessage, HistoryRole
from harness.contract.tools import ToolCall, ToolResult
from harness.testing.checks import holds, same
from harness.testing.scenario import HISTORY, Scenario, Stage

HISTORY_GIVEN = [
    HistoryMessage(role=HistoryRole.USER, content=[TextBlock(text="Weather in Oslo?")]),
    HistoryMessage(
        role=HistoryRole.ASSISTANT,
        content=[TextBlock(text="I look.")],
        tool_calls=[ToolCall(call_id="call_0", tool_name="get_weather", arguments_json='{"city":"Oslo"}')],
    ),
    HistoryMessage(
        role=HistoryRole.USER, tool_results=[ToolResult(call_id="call_0", content=[TextBlock(text="hail")])]
    ),
    HistoryMessage(role=HistoryRole.ASSISTANT, content=[TextBlock(text="It hails.")]),
]


async def run(stage: Stage) -> None:
    talk = await stage.begin(history=HISTORY_GIVEN)
    turn = await talk.say("Really?")
    turn.must_end("completed", "end_turn")
    same("the text", turn.text, "Yes.")
    is_text = stage.capabilities.seed_history == SeedHistory.AS_TEXT
    same("it is told when the history is passed as text", bool(turn.notices("history_as_text")), is_text)
    if stage.model is not None:
        request = stage.model.requests[0]
        for said in ("Weather in Oslo?", "It hails.", "Really?"):
            holds(f"the model read '{said}'", said in request.body_text)
        if not is_text:
            [past] = request.past_calls
            same("the call in the history", (past.call_id, past.result), ("call_0", "hail"))


SCENARIO = Scenario(
    name="seeded-history",
    requirements=("conformance:history",),
    script=[[{"text": "Yes."}]],
    run=run,
    needs=(HISTORY,),
)
