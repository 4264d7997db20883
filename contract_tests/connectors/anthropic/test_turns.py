"""Whole turns of `anthropic` over loopback HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from connectors.anthropic import AnthropicConfig, AnthropicConnector
from contract_tests.connectors.model_talk import OSLO, PIXEL, ROME, final_text, model_talk
from contract_tests.core.scripted_chat_model import Talk, answered, kinds, notices
from contract_tests.requirements import requirement
from harness.contract import ImageBlock, Message, TextBlock, ThinkingDelta, ToolDescriptor, TurnStatus
from harness.errors import ConnectorUnavailable, InvalidArgument
from harness.scripted_model import ScriptedModel


@asynccontextmanager
async def talk_to(
    *script: Mapping[str, Any], connector_options: Mapping[str, Any] | None = None, **options: Any
) -> AsyncGenerator[tuple[Talk, ScriptedModel]]:
    async with model_talk(AnthropicConnector(), *script, connector_options=connector_options, **options) as both:
        yield both


def bodies(model: ScriptedModel) -> list[Any]:
    return [request.body for request in model.requests]


@requirement("anthropic:turn")
async def test_a_turn_with_parallel_calls_passes_ids_order_and_text_through() -> None:
    usage = {"input_tokens": 1500, "cached_input_tokens": 300, "cache_write_tokens": 200, "output_tokens": 50}
    script = (
        {"thinking": "Two.", "text": ["I ", "look."], "calls": [OSLO, ROME], "usage": usage},
        {"text": "Oslo {{results.call_oslo}}, Rome {{results.call_rome}}."},
    )
    async with talk_to(*script) as (talk, model):
        state = await talk.run("Weather?", lambda r: answered(r, "7" if r.call_id == "call_oslo" else "19"))
    assert state.status == TurnStatus.COMPLETED and final_text(state) == "Oslo 7, Rome 19."
    assert [(r.call_id, r.call_id_source, r.arguments_json) for r in talk.opened] == [
        ("call_oslo", "exact", OSLO["arguments_json"]),
        ("call_rome", "exact", ROME["arguments_json"]),
    ]
    assert [item.text for item in state.new_output_items if isinstance(item, ThinkingDelta)] == ["Two."]
    assert state.usage is not None
    assert (state.usage.input_tokens, state.usage.cached_input_tokens, state.usage.cache_write_tokens) == (
        1600,
        300,
        200,
    )
    user, assistant, results = bodies(model)[1]["messages"]
    assert user["role"] == "user"
    assert [block["type"] for block in assistant["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert assistant["content"][0]["signature"] and assistant["content"][2]["input"] == {"city": "Oslo", "at": 1.1}
    assert [block["tool_use_id"] for block in results["content"]] == ["call_oslo", "call_rome"]


@requirement("R-G3", "anthropic:turn")
async def test_a_tools_error_keeps_its_flag() -> None:
    async with talk_to({"calls": [OSLO]}, {"text": "sorry"}) as (talk, model):
        await talk.run(tool=lambda request: answered(request, "no such city", is_error=True))
    assert [(past.result, past.is_error) for past in model.requests[1].past_calls] == [("no such city", True)]


@requirement("anthropic:results-first")
async def test_results_come_first_in_the_message_that_follows_a_cancelled_round() -> None:
    async with talk_to({"calls": [OSLO]}, {"text": "ok"}) as (talk, model):
        turn = await talk.begin()
        await talk.pending(turn)
        await talk.house.cancel_turn(talk.conversation_id, turn)
        await talk.finish(turn)
        assert (await talk.run("never mind")).status == TurnStatus.COMPLETED
    last = bodies(model)[1]["messages"][-1]
    assert [block["type"] for block in last["content"]] == ["tool_result", "text"]
    assert last["content"][0]["is_error"] is True


@requirement("anthropic:cache")
async def test_the_stable_beginning_is_marked_for_the_cache() -> None:
    async with talk_to({"calls": [OSLO]}, {"text": "ok"}, system_prompt="Be kind.") as (talk, model):
        await talk.run()
    for body in bodies(model):
        marked = [body["tools"][-1], body["system"][-1], body["messages"][-1]["content"][-1]]
        assert all(part["cache_control"] == {"type": "ephemeral"} for part in marked)
        assert json.dumps(body).count("cache_control") == 3
    async with talk_to({"text": "ok"}, connector_options={"cache": False}) as (talk, model):
        await talk.run()
    assert "cache_control" not in model.requests[0].body_text


@requirement("anthropic:pause")
async def test_a_pause_of_the_provider_is_gone_on_from() -> None:
    async with talk_to({"text": "first", "stop": "pause_turn"}, {"text": "second"}) as (talk, model):
        state = await talk.run()
    assert state.status == TurnStatus.COMPLETED and final_text(state) == "second"
    texts = [item.content[0] for item in state.new_output_items if isinstance(item, Message)]
    assert [getattr(block, "text", "") for block in texts] == ["first", "second"]
    assert bodies(model)[1]["messages"][-1] == {"role": "assistant", "content": [{"type": "text", "text": "first"}]}


@requirement("anthropic:turn-options")
async def test_every_option_of_a_turn_is_on_the_wire() -> None:
    async with talk_to({"text": '{"n":1}'}, {"text": "plain"}, {"text": "hm"}) as (talk, model):
        state = await talk.run(
            model="other",
            tool_names=["clock"],
            tool_mode="one",
            temperature=0.25,
            max_output_tokens=99,
            instructions="Rhyme.",
            output_schema_json='{"type":"object"}',
        )
        assert state.structured_output_json == '{"n":1}'
        await talk.run(tool_mode="none", effort="low")
        state = await talk.run(effort="low", temperature=0.5)
        assert state.error is not None and state.error.code == "not_supported"
    first, second = bodies(model)
    assert (first["model"], first["temperature"], first["max_tokens"]) == ("other", 0.25, 99)
    assert first["tool_choice"] == {"type": "any", "disable_parallel_tool_use": True}
    assert [tool["name"] for tool in first["tools"]] == ["clock"]
    assert first["system"][0]["text"].startswith("Rhyme.") and '{"type":"object"}' in first["system"][0]["text"]
    assert second["thinking"] == {"type": "enabled", "budget_tokens": 2048} and second["max_tokens"] > 2048
    assert second["tool_choice"] == {"type": "none"} and "system" not in second


@requirement("R-I4")
async def test_schemas_pass_through_and_an_unusable_one_is_named() -> None:
    schema = '{"type":"object","properties":{"a":{"anyOf":[{"const":1},{"type":"string"}]}},"$defs":{"b":{}}}'
    async with talk_to({"text": "ok"}, tools=[ToolDescriptor(name="odd", input_schema_json=schema)]) as (talk, model):
        await talk.run()
    sent = json.loads(model.requests[0].body_text)["tools"][0]["input_schema"]
    assert json.dumps(sent, separators=(",", ":")) == schema
    with pytest.raises(InvalidArgument, match=r"'either'.*\$\.oneOf"):
        async with talk_to(tools=[ToolDescriptor(name="either", input_schema_json='{"type":"object","oneOf":[]}')]):
            pass


@requirement("R-I5")
async def test_a_tool_without_arguments_is_called_with_an_empty_object() -> None:
    async with talk_to({"calls": [{"name": "clock"}]}, {"text": "noon"}) as (talk, _):
        assert (await talk.run()).status == TurnStatus.COMPLETED
    assert talk.opened[0].arguments_json == "{}"


@requirement("anthropic:images")
async def test_images_reach_the_model_from_prompts_and_results() -> None:
    image = ImageBlock(data=PIXEL, media_type="image/png")
    async with talk_to({"calls": [OSLO]}, {"text": "ok"}) as (talk, model):
        turn = await talk.house.submit_user_message(talk.conversation_id, [TextBlock(text="what?"), image])
        await talk.finish(turn, lambda r: answered(r, "").model_copy(update={"content": [image]}))
    assert model.requests[1].body_text.count(PIXEL) == 2


@requirement("anthropic:stop-reasons")
@pytest.mark.parametrize(
    ("stop", "expected"), [("max_tokens", "max_tokens"), ("refusal", "refusal"), ("stop_sequence", "end_turn")]
)
async def test_stop_reasons_are_ours(stop: str, expected: str) -> None:
    async with talk_to({"text": "I can", "stop": stop}) as (talk, _):
        state = await talk.run()
    assert (state.status, state.stop_reason, final_text(state)) == (TurnStatus.COMPLETED, expected, "I can")


@requirement("anthropic:stop-reasons")
async def test_a_call_that_was_cut_off_is_neither_run_nor_passed_back() -> None:
    cut = {"name": "weather", "arguments_json": '{"city": "Ro', "id": "cut"}
    async with talk_to({"text": "I", "calls": [cut], "stop": "max_tokens"}, {"text": "ok"}) as (talk, model):
        assert (await talk.run()).stop_reason == "max_tokens"
        assert (await talk.run()).status == TurnStatus.COMPLETED
    assert talk.opened == [] and '"cut"' not in model.requests[1].body_text


@requirement("anthropic:errors")
async def test_arguments_that_are_no_json_go_back_as_an_object() -> None:
    broken = {"name": "weather", "arguments_json": "{city", "id": "c"}
    async with talk_to({"calls": [broken]}, {"text": "sorry"}) as (talk, model):
        assert (await talk.run()).status == TurnStatus.COMPLETED
    assert bodies(model)[1]["messages"][1]["content"][0]["input"] == {"invalid_json": "{city"}


@requirement("anthropic:errors", "R-L2")
@pytest.mark.parametrize(("status", "code"), [(429, "rate_limit"), (529, "retry"), (500, "retry")])
async def test_failures_that_pass_are_told_and_tried_again(status: int, code: str) -> None:
    failing = {"error": {"status": status, "message": "later", "retry_after": 0}}
    async with talk_to(failing, {"text": "ok"}) as (talk, _):
        state = await talk.run()
    assert state.status == TurnStatus.COMPLETED and "later" in notices(state, code)[0]


@requirement("anthropic:errors")
async def test_a_prompt_that_is_too_long_is_an_overflow() -> None:
    error = {"error": {"status": 400, "message": "prompt is too long: 210000 tokens > 200000 maximum"}}
    async with talk_to(error, connector_options={"compaction": "off"}) as (talk, _):
        state = await talk.run()
    assert state.error is not None and state.error.code == "context_overflow"


@requirement("anthropic:errors")
async def test_a_stream_that_is_cut_is_an_error_and_not_repeated_once_shown() -> None:
    async with talk_to({"text": "half", "drop": True}, {"text": "ok"}) as (talk, model):
        state = await talk.run()
        assert state.error is not None and json.loads(state.error.detail_json or "")["reason"] == "network"
        assert len(model.requests) == 1
        assert (await talk.run()).status == TurnStatus.COMPLETED


@requirement("anthropic:cancel")
async def test_a_cancel_closes_the_connection_and_the_conversation_goes_on() -> None:
    async with talk_to({"text": "half", "hang": True}, {"text": "ok"}) as (talk, model):
        turn = await talk.begin()
        await talk.until(turn, lambda state: "text_delta" in kinds(state.new_output_items))
        await talk.house.cancel_turn(talk.conversation_id, turn)
        assert (await talk.finish(turn)).status == TurnStatus.CANCELLED
        with anyio.fail_after(5):
            assert await model.requests[0].wait_ended() == "client_left"
        assert (await talk.run("go on")).status == TurnStatus.COMPLETED


@requirement("anthropic:key")
def test_the_key_goes_to_the_server_it_is_for_and_to_no_other() -> None:
    environment = {"ANTHROPIC_API_KEY": "sk-own", "OTHER_KEY": "sk-other"}
    assert AnthropicConfig().target(environment)[1]["x-api-key"] == "sk-own"
    assert AnthropicConfig(base_url="http://10.0.0.5").target(environment)[1]["x-api-key"] == "none"
    other = AnthropicConfig(base_url="http://10.0.0.5", api_key_env="OTHER_KEY")
    assert other.target(environment)[1]["x-api-key"] == "sk-other"
    with pytest.raises(ConnectorUnavailable, match="export ANTHROPIC_API_KEY="):
        AnthropicConfig().target({})
