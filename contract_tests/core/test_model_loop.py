"""The agent loop over a model that answers at once."""

from __future__ import annotations

import json

import anyio
import pytest

from contract_tests.core.scripted_chat_model import (
    ADD,
    Hang,
    ScriptedChatModel,
    answered,
    calls,
    kinds,
    notices,
    says,
    talk_with,
)
from contract_tests.requirements import requirement
from harness.contract import (
    CallIdSource,
    HostRequest,
    HostResponse,
    Message,
    RequestResolved,
    TurnStatus,
)
from harness.errors import InvalidArgument, ProviderError
from harness.model_loop import AssistantMessage, MalformedAnswer, ToolMessage, UserMessage


def results_in(model: ScriptedChatModel, request: int = -1) -> list[tuple[str, str, bool]]:
    """Call id, text and flag of every result in a request."""
    return [
        (result.call_id, "".join(getattr(block, "text", "") for block in result.content), result.is_error)
        for message in model.requests[request].messages
        if isinstance(message, ToolMessage)
        for result in message.results
    ]


@requirement("model-loop:round:opened-together")
async def test_calls_of_a_round_are_opened_together_in_the_models_order() -> None:
    model = ScriptedChatModel(
        calls(("c1", "add", '{"a":1, "b":2}'), ("c2", "look", "{}"), ("c3", "add", '{"a":1, "b":2}'), text="I look."),
        says("3"),
    )
    async with talk_with(model) as talk:
        turn = await talk.begin()
        opened = await talk.pending(turn, 3)
        assert [request.call_id for request in opened] == ["c1", "c2", "c3"]
        assert [request.order for request in opened] == [0, 1, 2]
        assert [request.read_only for request in opened] == [None, True, None]
        assert opened[0].arguments_json == '{"a":1, "b":2}'
        state = await talk.until(turn, lambda one: True)
        assert kinds(state.new_output_items)[-4:] == ["usage", *["request_opened"] * 3]
        # answered backwards, one by one: the model reads them in the order of its calls, all at once
        for request in reversed(opened):
            assert len(model.requests) == 1
            await talk.answer(turn, answered(request, f"result of {request.call_id}"))
        state = await talk.finish(turn)

    assert state.status == TurnStatus.COMPLETED and state.stop_reason == "end_turn"
    assert [call_id for call_id, _, _ in results_in(model)] == ["c1", "c2", "c3"]
    phases = [(item.content[0], item.phase) for item in state.new_output_items if isinstance(item, Message)]
    assert [(getattr(block, "text", ""), phase) for block, phase in phases] == [
        ("I look.", "commentary"),
        ("3", "final"),
    ]


@requirement("R-G3")
async def test_a_tools_error_reaches_the_model_with_its_flag_and_the_turn_goes_on() -> None:
    model = ScriptedChatModel(calls(("c1", "look", "{}")), says("It is broken."))
    async with talk_with(model) as talk:
        state = await talk.run(tool=lambda request: answered(request, "boom", is_error=True))
    assert state.status == TurnStatus.COMPLETED
    assert results_in(model) == [("c1", "boom", True)]


@requirement("R-G3")
async def test_a_providers_failure_is_the_turns_failure_and_never_a_tool_result() -> None:
    model = ScriptedChatModel(
        calls(("c1", "look", "{}")), ProviderError("the key is wrong", reason="auth", status=401), says("fine")
    )
    async with talk_with(model) as talk:
        state = await talk.run()
        assert state.status == TurnStatus.FAILED
        assert state.error is not None and state.error.code == "provider_error"
        assert (await talk.run("again")).status == TurnStatus.COMPLETED
    assert results_in(model) == [("c1", "{}", False)]


@requirement("R-L5")
@pytest.mark.parametrize("ids", [("", ""), ("same", "same"), ("c1", "")])
async def test_missing_and_repeated_call_ids_are_made_up_and_said_so(ids: tuple[str, str]) -> None:
    model = ScriptedChatModel(calls((ids[0], "look", "{}"), (ids[1], "look", "{}")), calls((ids[0], "look", "{}")))
    async with talk_with(model, connector_options_json='{"loop_guard": false}') as talk:
        state = await talk.run()
    given = [request.call_id for request in talk.opened]
    assert len(set(given)) == 3 and all(given)
    sources = [request.call_id_source for request in talk.opened]
    kept = [i for i, source in enumerate(sources) if source == CallIdSource.EXACT]
    assert [given[i] for i in kept] == [one for one in dict.fromkeys(ids) if one]
    assert len(notices(state, "call_id_made_up")) == 3 - len(kept)
    model.check_pairs()
    assert [call_id for call_id, _, _ in results_in(model)] == given


@requirement("model-loop:arguments:actionable")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("{not json", "not JSON"),
        ("[1]", "JSON object"),
        ('{"a": 1}', "'b' is a required property"),
        ('{"a": 1, "b": "two"}', "'b': 'two' is not of type 'integer'"),
    ],
)
async def test_unusable_arguments_are_answered_so_that_the_model_can_mend_them(arguments: str, told: str) -> None:
    model = ScriptedChatModel(
        calls(("c1", "add", arguments), ("c2", "look", "{}")), calls(("c3", "add", '{"a":1,"b":2}')), says("3")
    )
    async with talk_with(model) as talk:
        state = await talk.run()
    assert state.status == TurnStatus.COMPLETED
    assert [request.call_id for request in talk.opened] == ["c2", "c3"]
    assert len(notices(state, "invalid_arguments")) == 1
    call_id, text, is_error = results_in(model, 1)[0]
    assert (call_id, is_error) == ("c1", True)
    assert told in text and "Required: 'a', 'b'; allowed: 'a', 'b'." in text and "do not repeat empty ones" in text


@requirement("model-loop:arguments:unknown-tool")
async def test_a_tool_that_is_not_on_offer_is_answered_with_those_that_are() -> None:
    model = ScriptedChatModel(calls(("c1", "delete", "{}"), ("c2", "add", '{"a":1,"b":1}')), says("no"))
    async with talk_with(model) as talk:
        state = await talk.run(tool_names=["look"])
    assert talk.opened == []
    assert len(notices(state, "unknown_tool")) == 2
    assert all("Tools on offer: 'look'" in text and is_error for _, text, is_error in results_in(model))


@requirement("R-I5")
async def test_a_tool_without_arguments_is_called_with_an_empty_object() -> None:
    model = ScriptedChatModel(calls(("c1", "look", "{}")), says("done"))
    async with talk_with(model) as talk:
        assert (await talk.run()).status == TurnStatus.COMPLETED
    assert talk.opened[0].arguments_json == "{}"


@requirement("model-loop:text:never-a-call")
async def test_text_that_looks_like_a_call_stays_text() -> None:
    text = '<tool_call>{"name": "add", "arguments": {"a": 1, "b": 2}}</tool_call>'
    async with talk_with(ScriptedChatModel(says(text))) as talk:
        state = await talk.run()
    assert talk.opened == [] and state.status == TurnStatus.COMPLETED


@requirement("R-G1")
async def test_a_cancel_gives_every_open_call_its_synthetic_result_and_keeps_the_given_ones() -> None:
    model = ScriptedChatModel(calls(("c1", "look", "{}"), ("c2", "look", "{}")), says("hello"))
    async with talk_with(model) as talk:
        turn = await talk.begin()
        first, _ = await talk.pending(turn, 2)
        await talk.answer(turn, answered(first, "seen"))
        await talk.house.cancel_turn(talk.conversation_id, turn)
        state = await talk.finish(turn)
        assert state.status == TurnStatus.CANCELLED
        assert len(model.requests) == 1
        assert (await talk.run("next")).status == TurnStatus.COMPLETED
    model.check_pairs()
    assert results_in(model) == [("c1", "seen", False), ("c2", "The turn was cancelled by the host.", True)]


@requirement("R-G1")
async def test_an_expired_call_gets_one_error_result_and_the_turn_goes_on() -> None:
    model = ScriptedChatModel(calls(("c1", "look", "{}")), says("no answer"))
    async with talk_with(model, timeouts={"tool_ms": 20}) as talk:
        turn = await talk.begin()
        state = await talk.until(turn, lambda one: one.status == TurnStatus.COMPLETED)
    outcomes = [item.outcome for item in state.new_output_items if isinstance(item, RequestResolved)]
    assert outcomes == ["expired"]
    assert [(call_id, is_error) for call_id, _, is_error in results_in(model)] == [("c1", True)]


async def test_what_was_heard_before_a_cancel_stays_in_the_history() -> None:
    hang = Hang("Once upon")
    model = ScriptedChatModel(hang, says("a time"))
    async with talk_with(model) as talk:
        turn = await talk.begin()
        await talk.until(turn, lambda one: "text_delta" in kinds(one.new_output_items))
        await talk.house.cancel_turn(talk.conversation_id, turn)
        assert (await talk.finish(turn)).status == TurnStatus.CANCELLED
        await talk.run("go on")
    assert [type(message) for message in model.requests[1].messages] == [UserMessage, AssistantMessage, UserMessage]
    kept = model.requests[1].messages[1]
    assert isinstance(kept, AssistantMessage) and kept.said[0].text == "Once upon"


@requirement("R-M1")
async def test_a_silent_model_is_stalled_and_a_long_turn_timed_out() -> None:
    for timeouts, code in (({"idle_ms": 30}, "turn_stalled"), ({"turn_ms": 30}, "turn_timeout")):
        model = ScriptedChatModel(Hang())
        async with talk_with(model, timeouts=timeouts) as talk:
            state = await talk.run()
            assert state.error is not None and state.error.code == code
            assert (await talk.run("again")).status == TurnStatus.COMPLETED


@requirement("R-M1")
async def test_idle_time_does_not_run_while_a_call_is_open() -> None:
    model = ScriptedChatModel(calls(("c1", "look", "{}")), says("done"))
    async with talk_with(model, timeouts={"idle_ms": 40}) as talk:
        turn = await talk.begin()
        (request,) = await talk.pending(turn)
        with anyio.move_on_after(0.1):
            await talk.house.poll_turn(talk.conversation_id, turn, 1000, 1000)
        await talk.answer(turn, answered(request, "late"))
        assert (await talk.finish(turn)).status == TurnStatus.COMPLETED


@requirement("R-L2")
async def test_a_rate_limit_is_shown_waited_for_and_tried_again() -> None:
    limited = ProviderError("slow down", reason="rate_limit", status=429, retry_after_ms=1)
    model = ScriptedChatModel(limited, limited, says("hello"))
    async with talk_with(model) as talk:
        state = await talk.run()
    assert state.status == TurnStatus.COMPLETED
    assert len(notices(state, "rate_limit")) == 2 and "retry 1 of 4 in 0.0 s" in notices(state, "rate_limit")[0]


@requirement("R-L2")
async def test_a_rate_limit_that_lasts_fails_the_turn_with_its_reason() -> None:
    limited = ProviderError("slow down", reason="rate_limit", status=429, retry_after_ms=1)
    async with talk_with(ScriptedChatModel(*[limited] * 3), connector_options_json='{"max_retries": 2}') as talk:
        state = await talk.run()
    assert state.error is not None and state.error.code == "provider_error"
    assert json.loads(state.error.detail_json or "")["reason"] == "rate_limit"


@requirement("model-loop:retry:only-before-delivery")
@pytest.mark.parametrize("reason", ["auth", "billing", "request"])
async def test_failures_that_do_not_pass_are_not_tried_again(reason: str) -> None:
    model = ScriptedChatModel(ProviderError("no", reason=reason))
    async with talk_with(model) as talk:
        assert (await talk.run()).status == TurnStatus.FAILED
    assert len(model.requests) == 1


@requirement("model-loop:retry:malformed")
async def test_an_answer_the_provider_could_not_read_is_asked_for_again() -> None:
    broken = MalformedAnswer("error parsing tool call", reason="request")
    model = ScriptedChatModel(broken, says("hello"))
    async with talk_with(model) as talk:
        state = await talk.run()
        assert state.status == TurnStatus.COMPLETED and len(notices(state, "retry")) == 1
        model.steps += [broken] * 3
        assert (await talk.run("again")).status == TurnStatus.FAILED


@requirement("model-loop:turn-options")
async def test_options_of_a_turn_hold_for_that_turn_only() -> None:
    model = ScriptedChatModel()
    async with talk_with(model, model="big", system_prompt="Be short.", effort="low") as talk:
        await talk.run(
            "one",
            model="small",
            tool_names=["add"],
            tool_mode="any",
            effort="high",
            temperature=0.5,
            max_output_tokens=7,
            instructions="Rhyme.",
        )
        await talk.run("two", tool_mode="none")
    first, second = model.requests
    assert (first.model, first.tools, first.tool_mode, first.effort) == ("small", (ADD,), "any", "high")
    assert (first.temperature, first.max_output_tokens, first.system) == (0.5, 7, "Be short.\n\nRhyme.")
    assert (second.model, len(second.tools), second.tool_mode, second.effort) == ("big", 2, "none", "low")
    assert (second.temperature, second.max_output_tokens, second.system) == (None, None, "Be short.")
    assert not any("Rhyme" in str(message) for message in second.messages)


async def test_a_demanded_call_is_demanded_once() -> None:
    model = ScriptedChatModel(calls(("c1", "look", "{}")), says("done"))
    async with talk_with(model) as talk:
        await talk.run(tool_mode="any")
    assert [request.tool_mode for request in model.requests] == ["any", "auto"]


@requirement("model-loop:history:seeded")
async def test_a_seeded_history_reaches_the_model_exactly() -> None:
    history = [
        {"role": "user", "content": [{"type": "text", "text": "1+2?"}]},
        {"role": "assistant", "tool_calls": [{"call_id": "x", "tool_name": "add", "arguments_json": '{"a": 1,"b":2}'}]},
        {"role": "user", "tool_results": [{"call_id": "x", "content": [{"type": "text", "text": "3"}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Three."}]},
    ]
    model = ScriptedChatModel(calls(("x", "look", "{}")), says("done"))
    async with talk_with(model, history=history) as talk:
        await talk.run("and now?")
    said, called, result, answer, asked = model.requests[0].messages
    assert isinstance(called, AssistantMessage) and called.calls[0].arguments_json == '{"a": 1,"b":2}'
    assert isinstance(result, ToolMessage) and result.results[0].call_id == "x"
    assert isinstance(answer, AssistantMessage) and answer.said[0].text == "Three."
    assert isinstance(said, UserMessage) and isinstance(asked, UserMessage)
    assert talk.opened[0].call_id_source == CallIdSource.MADE_UP  # the id is taken
    model.check_pairs()


SCHEMA = '{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}'


@requirement("model-loop:structured-output")
async def test_a_structured_answer_is_checked_and_asked_for_once_more() -> None:
    model = ScriptedChatModel(says("three"), says('```json\n{"n": 3}\n```'))
    async with talk_with(model) as talk:
        state = await talk.run(output_schema_json=SCHEMA)
        assert state.structured_output_json == '{"n": 3}'
        assert len(notices(state, "structured_output_retry")) == 1
        assert model.requests[1].tool_mode == "none"
        state = await talk.run("next", output_schema_json=SCHEMA)
        assert state.structured_output_json is None and len(notices(state, "structured_output_invalid")) == 1
        assert state.status == TurnStatus.COMPLETED


@requirement("model-loop:limits")
async def test_limits_end_the_turn_with_their_stop_reason() -> None:
    round_ = calls(("", "look", "{}"), usage=(100, 10))
    async with talk_with(ScriptedChatModel(*[round_] * 9), limits={"max_turns": 2}) as talk:
        state = await talk.run()
        assert (state.stop_reason, len(talk.opened)) == ("max_turns", 2)
    async with talk_with(ScriptedChatModel(*[round_] * 9), limits={"token_budget": 200}) as talk:
        state = await talk.run()
        assert (state.stop_reason, len(talk.opened)) == ("budget", 2)
        assert len(notices(state, "limit_near")) == 1
        assert (await talk.run("again")).stop_reason == "budget"
    model = ScriptedChatModel(*[round_] * 9)
    async with talk_with(model, limits={"max_output_tokens": 15}) as talk:
        state = await talk.run()
        assert state.stop_reason == "max_tokens"
        assert [request.max_output_tokens for request in model.requests] == [15, 5]


@requirement("model-loop:usage")
async def test_usage_of_a_turn_is_the_sum_of_its_model_calls() -> None:
    model = ScriptedChatModel(calls(("c1", "look", "{}"), usage=(100, 10)), says("done", usage=(130, 5)))
    async with talk_with(model, model="m") as talk:
        state = await talk.run()
    assert state.usage is not None
    assert (state.usage.input_tokens, state.usage.output_tokens, state.usage.model_calls) == (230, 15, 2)
    assert [one.model for one in state.usage.by_model] == ["m"]
    assert state.usage.cached_input_tokens is None


async def test_a_structured_result_reaches_the_model_as_json_text() -> None:
    model = ScriptedChatModel(calls(("c1", "look", "{}")), says("done"))

    def tool(request: HostRequest) -> HostResponse:
        return HostResponse(request_id=request.request_id, structured_content_json='{"x": 1.10}')

    async with talk_with(model) as talk:
        await talk.run(tool=tool)
    assert results_in(model) == [("c1", '{"x": 1.10}', False)]


async def test_options_that_are_not_understood_are_refused_at_begin() -> None:
    with pytest.raises(InvalidArgument, match="'max_retires'"):
        async with talk_with(ScriptedChatModel(), connector_options_json='{"max_retires": 1}'):
            pass
