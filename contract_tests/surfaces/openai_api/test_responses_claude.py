"""The Responses API before the real Claude CLI, whose model follows a script."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from contract_tests.connectors.claude.cli import MODEL, needs_cli
from contract_tests.requirements import requirement
from contract_tests.surfaces.openai_api.responses import Talker, calls_of
from contract_tests.surfaces.openai_api.test_live_claude import ANSWER, RESULTS, TWO_CITIES, open_place, said

pytestmark = needs_cli


@requirement("responses:claude", "R-M11")
@pytest.mark.parametrize("by_id", [False, True])
async def test_a_tool_loop_is_one_process_one_conversation_and_one_history(by_id: bool, tmp_path: Path) -> None:
    thoughtful = {**TWO_CITIES, "thinking": "Two cities."}
    async with open_place([thoughtful, ANSWER, {"text": "You are welcome."}], tmp_path) as place:
        talk = Talker(place.client, {"model": f"claude/{MODEL}", "stream": not by_id}, by_id)
        asked = await talk.say("How is the weather?")
        answered = await talk.answer(RESULTS)
        thanked = await talk.say("Thanks.")
        pids = await place.pids()
        requests = [request for request in place.model.requests if request.is_model_call]

    assert [(call[0], call[1], json.loads(call[2])) for call in calls_of(asked)] == [
        ("toolu_oslo", "weather", {"city": "Oslo"}),
        ("toolu_rome", "weather", {"city": "Rome"}),
    ]
    assert [item.type for item in asked.output] == ["reasoning", "message", "function_call", "function_call"]
    assert (asked.output_text, answered.output_text) == ("I will look.", "Oslo: rain, Rome: sun.")
    assert thanked.output_text == "You are welcome."
    assert answered.usage is not None
    assert (answered.usage.input_tokens, answered.usage.output_tokens) == (80, 13)
    assert len(pids) == 1
    # one continuous history: each request of the model begins with all of the one before it
    for before, after in pairwise([said(request) for request in requests]):
        assert after[: len(before)] == before
    assert {past.call_id: past.result for past in requests[-1].past_calls} == RESULTS
