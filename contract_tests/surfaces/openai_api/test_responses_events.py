"""Every turn as events: whatever an agent says, thinks and takes back, and in whatever order."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from contract_tests.requirements import requirement
from contract_tests.surfaces.openai_api.responses import strictly
from harness.contract import (
    HistoryMessage,
    HistoryRole,
    ItemDiscarded,
    OutputItem,
    TextBlock,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    TurnState,
    TurnStatus,
)
from harness.surfaces.compatible.exchange import CallPart, ReplyEnd, ReplyEnded, TextPart
from harness.surfaces.compatible.reading import TurnReading
from harness.surfaces.compatible.reply import Reply
from harness.surfaces.compatible.tips import tip
from harness.surfaces.openai.responses_events import ResponseEvents, whole_response
from harness.surfaces.openai.responses_request import responses_request

REQUEST = responses_request({"model": "fake", "input": "Go."}, Headers())
CALL = CallPart(ToolCall(call_id="c", tool_name="weather", arguments_json="{}"))
WORDS = st.sampled_from(["a", "b ", "\n", " ", "c\n\n"])


@st.composite
def items(draw: st.DrawFn) -> list[OutputItem]:
    """Texts and thoughts of several items, in pieces that may be mixed, some taken back."""
    told: list[Any] = []
    for kind, number in draw(st.lists(st.tuples(st.sampled_from(["say", "think", "discard"]), st.integers(0, 3)))):
        if kind == "discard":
            told.append({"type": ItemDiscarded, "reason": "restarted", "item_id": f"m{number}"})
        else:
            of = TextDelta if kind == "say" else ThinkingDelta
            told.append({"type": of, "text": draw(WORDS), "item_id": f"{'m' if kind == 'say' else 't'}{number}"})
    return [one.pop("type")(sequence_no=number, at=0, **one) for number, one in enumerate(told, 1)]


def reply_of(said: list[OutputItem], end: ReplyEnd) -> Reply:
    reading, reply = TurnReading("t"), Reply("fake")
    reading.begin_reply()
    state = TurnState(
        status=TurnStatus.RUNNING, last_activity_at=0, started_at=0, sequence_no=len(said), new_output_items=said
    )
    reply.add(*reading.read(state), *([CALL] if end == ReplyEnd.TOOL_CALLS else []), ReplyEnded(end, None))
    return reply


def tip_of(text: str) -> str:
    """Where a history with these words of the agent leads."""
    return tip([HistoryMessage(role=HistoryRole.ASSISTANT, content=[TextBlock(text=text)])])


def text_of_items(output: list[Any]) -> str:
    return "".join(part.text for item in output if item.type == "message" for part in item.content)


@requirement("responses:events")
@given(items(), st.sampled_from(ReplyEnd))
def test_deltas_items_and_the_whole_response_agree_and_lead_back(said: list[OutputItem], end: ReplyEnd) -> None:
    reply = reply_of(said, end)
    writer = ResponseEvents(REQUEST, reply)
    told = [*writer.opening(), *(event for part in reply.parts for event in writer.part(part))]
    events = [strictly(event) for event in told]

    assert [event.sequence_number for event in events] == [*range(len(events))]
    done = [event.item for event in events if event.type == "response.output_item.done"]
    last = events[-1].response
    assert (
        last.to_dict()
        == strictly(
            {"type": events[-1].type, "sequence_number": 0, "response": whole_response(REQUEST, reply)}
        ).response.to_dict()
    )
    assert [item.id for item in last.output] == [item.id for item in done if item.id in {one.id for one in last.output}]
    assert {item.type for item in last.output} & {"message", "function_call"}

    # the two texts that a client may have are the two that the conversation can be found by
    streamed = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    known = {tip_of("".join(b.text for b in one.content if isinstance(b, TextBlock))) for one in reply.messages()}
    assert tip_of(streamed) == tip_of("".join(part.text for part in reply.parts if isinstance(part, TextPart)))
    assert {tip_of(streamed), tip_of(text_of_items(done)), tip_of(text_of_items(last.output))} <= known
