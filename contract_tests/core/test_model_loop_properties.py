"""Arbitrary models and hosts: whatever they do, the next request to the model is valid."""

from __future__ import annotations

import anyio
from hypothesis import given, settings
from hypothesis import strategies as st

from contract_tests.core.scripted_chat_model import (
    Hang,
    ScriptedChatModel,
    Step,
    answered,
    calls,
    says,
    talk_with,
)
from contract_tests.requirements import requirement
from harness.contract import TERMINAL, RequestOpened, RequestResolved
from harness.errors import ProviderError

CALL = st.tuples(
    st.sampled_from(["", "c1", "c2", "c3"]),
    st.sampled_from(["look", "add", "nothing"]),
    st.sampled_from(["{}", '{"a":1,"b":2}', "{", '{"a":"x"}']),
)
STEP = st.one_of(
    st.lists(CALL, min_size=1, max_size=4).map(lambda made: calls(*made)),
    st.text(max_size=5).map(says),
    st.sampled_from([ProviderError("no", reason="request"), ProviderError("later", reason="server", retry_after_ms=0)]),
    st.builds(Hang, st.sampled_from(["", "half an ans"])),
)
MOVE = st.sampled_from(["answer", "answer_last", "fail", "cancel", "poll"])


async def play(steps: list[Step], moves: list[str]) -> ScriptedChatModel:
    model = ScriptedChatModel(*steps)
    left = iter(moves)
    async with talk_with(model) as talk:
        for text in ("one", "two", "three"):
            turn = await talk.begin(text)
            with anyio.fail_after(10):
                while True:
                    state = await talk.house.poll_turn(talk.conversation_id, turn)
                    if state.status in TERMINAL:
                        break
                    move = next(left, "cancel")
                    pending = state.pending_requests
                    if move == "cancel":
                        await talk.house.cancel_turn(talk.conversation_id, turn)
                    elif pending and move != "poll":
                        request = pending[-1 if move == "answer_last" else 0]
                        await talk.answer(turn, answered(request, "result", is_error=move == "fail"))
                    await talk.house.poll_turn(talk.conversation_id, turn, state.sequence_no, 5)
            opened = [i.request.request_id for i in state.new_output_items if isinstance(i, RequestOpened)]
            resolved = [i.request_id for i in state.new_output_items if isinstance(i, RequestResolved)]
            assert sorted(opened) == sorted(resolved) and state.pending_requests == []
        model.steps.clear()
        await talk.run("last")
    return model


@requirement("R-G1", "model-loop:any-order")
@settings(max_examples=60)
@given(st.lists(STEP, max_size=8), st.lists(MOVE, max_size=20))
async def test_every_request_to_the_model_has_exactly_one_result_for_each_call(
    steps: list[Step], moves: list[str]
) -> None:
    model = await play(steps, moves)
    model.check_pairs()
