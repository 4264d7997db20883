"""Whole turns of `ollama` over loopback HTTP, and what its servers do silently."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from connectors.ollama import OllamaConfig, OllamaConnector
from contract_tests.connectors.model_talk import OSLO, PIXEL, ROME, final_text, model_talk
from contract_tests.core.scripted_chat_model import Talk, answered, kinds, notices
from contract_tests.requirements import requirement
from harness.contract import (
    CallIdSource,
    ConversationOptions,
    ImageBlock,
    TextBlock,
    ThinkingDelta,
    ToolDescriptor,
    TurnStatus,
)
from harness.errors import ConnectorUnavailable, InvalidArgument, NotSupported
from harness.scripted_model import ScriptedModel


@asynccontextmanager
async def talk_to(
    *script: Mapping[str, Any], connector_options: Mapping[str, Any] | None = None, **options: Any
) -> AsyncGenerator[tuple[Talk, ScriptedModel]]:
    async with model_talk(OllamaConnector(), *script, connector_options=connector_options, **options) as both:
        yield both


def bodies(model: ScriptedModel) -> list[Any]:
    return [request.body for request in model.requests]


@requirement("ollama:turn")
@pytest.mark.parametrize("quirk", ["none", "calls_at_end", "same_index"])
async def test_a_turn_with_parallel_calls_passes_ids_order_and_values_through(quirk: str) -> None:
    script = (
        {
            "thinking": "Two.",
            "text": ["I ", "look."],
            "calls": [OSLO, ROME],
            "usage": {"input_tokens": 50, "output_tokens": 9},
        },
        {"text": "Oslo {{results.call_oslo}}, Rome {{results.call_rome}}."},
    )
    async with talk_to(*script, model=f"m+{quirk}") as (talk, model):
        state = await talk.run("Weather?", lambda r: answered(r, "7" if r.call_id == "call_oslo" else "19"))
    assert state.status == TurnStatus.COMPLETED and final_text(state) == "Oslo 7, Rome 19."
    assert [(r.call_id, r.call_id_source) for r in talk.opened] == [("call_oslo", "exact"), ("call_rome", "exact")]
    assert json.loads(talk.opened[0].arguments_json or "") == {"city": "Oslo", "at": 1.1}
    assert [item.text for item in state.new_output_items if isinstance(item, ThinkingDelta)] == ["Two."]
    assert state.usage is not None and (state.usage.input_tokens, state.usage.cached_input_tokens) == (150, None)
    sent = bodies(model)[1]["messages"]
    assert [message["role"] for message in sent] == ["user", "assistant", "tool", "tool"]
    assert sent[1]["thinking"] == "Two."
    assert [call["function"]["arguments"] for call in sent[1]["tool_calls"]] == [
        {"city": "Oslo", "at": 1.1},
        {"city": "Rome"},
    ]
    assert [(m["tool_call_id"], m["tool_name"]) for m in sent[2:]] == [
        ("call_oslo", "weather"),
        ("call_rome", "weather"),
    ]


@requirement("ollama:turn", "R-L5")
async def test_calls_without_ids_get_unique_ones_that_pair_up() -> None:
    script = ({"calls": [OSLO, ROME]}, {"text": "done"})
    async with talk_to(*script, model="m+missing_id+same_index") as (talk, model):
        await talk.run(tool=lambda r: answered(r, json.loads(r.arguments_json or "")["city"]))
    assert {r.call_id_source for r in talk.opened} == {CallIdSource.MADE_UP}
    assert [past.result for past in model.requests[1].past_calls] == ["Oslo", "Rome"]


@requirement("R-L3")
async def test_the_window_is_always_sent_and_nothing_may_be_cut_silently() -> None:
    async with talk_to({"text": "one"}, {"text": "two"}, connector_options={"num_ctx": 8192}) as (talk, model):
        await talk.run(temperature=0.5, max_output_tokens=9)
        await talk.run()
    for body in bodies(model):
        assert body["options"]["num_ctx"] == 8192
        assert (body["truncate"], body["shift"]) == (False, False)
    assert bodies(model)[0]["options"] == {"num_ctx": 8192, "temperature": 0.5, "num_predict": 9}
    (loaded,) = [r.body for r in model.side_requests if r.path == "/api/chat"]
    assert loaded is not None and loaded["options"] == {"num_ctx": 8192} and loaded["messages"] == []


@requirement("R-L3")
async def test_a_prompt_that_the_server_cut_is_told() -> None:
    options = {"num_ctx": 4096, "compaction": "off"}
    async with talk_to({"text": "hm"}, model="m+cut_prompt", connector_options=options) as (talk, _):
        state = await talk.run("word " * 3000)
    assert "the model saw 2050 tokens of a prompt of about" in notices(state, "context_truncated")[0]


@requirement("R-L3")
async def test_a_usual_prompt_is_not_called_cut() -> None:
    async with talk_to({"text": "hm", "usage": {"input_tokens": 30}}) as (talk, _):
        assert notices(await talk.run(), "context_truncated") == []


@requirement("R-L4")
async def test_the_native_endpoint_is_asked_and_no_other() -> None:
    async with talk_to({"text": "ok"}) as (talk, model):
        await talk.run()
    paths = {request.path for request in [*model.requests, *model.side_requests]}
    assert paths == {"/api/version", "/api/show", "/api/chat"}


@requirement("R-I4")
async def test_schemas_pass_through_as_they_are() -> None:
    schema = (
        '{"type":"object","properties":{"a":{"anyOf":[{"const":1},{"type":"string","pattern":"^x"}]}},"$defs":{"b":{}}}'
    )
    async with talk_to({"text": "ok"}, tools=[ToolDescriptor(name="odd", input_schema_json=schema)]) as (talk, model):
        await talk.run()
    (declared,) = json.loads(model.requests[0].body_text)["tools"]
    assert json.dumps(declared["function"]["parameters"], separators=(",", ":")) == schema


@requirement("R-I5")
async def test_a_tool_without_arguments_is_called_with_an_empty_object() -> None:
    async with talk_to({"calls": [{"name": "clock"}]}, {"text": "noon"}) as (talk, _):
        await talk.run()
    assert talk.opened[0].arguments_json == "{}"


@requirement("ollama:model")
async def test_what_the_model_cannot_do_is_said_before_anything_is_sent() -> None:
    with pytest.raises(NotSupported, match="cannot call tools"):
        async with talk_to(model="m+no_tools"):
            pass
    async with talk_to({"text": "ok"}) as (talk, model):
        state = await talk.run(tool_mode="any")
        assert state.error is not None and state.error.code == "not_supported"
        assert model.requests == []
        assert (await talk.run()).status == TurnStatus.COMPLETED


@requirement("ollama:model")
async def test_a_model_or_server_that_is_not_there_says_what_to_type() -> None:
    with pytest.raises(ConnectorUnavailable, match="ollama pull missing"):
        async with talk_to(model="missing"):
            pass
    options = ConversationOptions(connector_options_json='{"base_url": "http://127.0.0.1:9"}')
    with pytest.raises(ConnectorUnavailable, match="ollama serve"):
        await OllamaConnector().get_capabilities(options)


@requirement("ollama:cloud")
@pytest.mark.parametrize("model", ["gpt-oss:120b-cloud", "m:cloud"])
async def test_models_that_run_elsewhere_are_refused_unless_allowed(model: str) -> None:
    with pytest.raises(InvalidArgument, match="allow_cloud"):
        async with talk_to(model=model):
            pass
    async with talk_to({"text": "ok"}, model=model, connector_options={"allow_cloud": True}) as (talk, _):
        assert (await talk.run()).status == TurnStatus.COMPLETED


@requirement("ollama:structured-output")
async def test_a_schema_is_enforced_where_no_call_could_be_made_and_told_where_one_could() -> None:
    schema = '{"type":"object","required":["n"]}'
    async with talk_to({"text": "none"}, {"text": '{"n": 1}'}) as (talk, model):
        state = await talk.run(output_schema_json=schema)
    assert state.structured_output_json == '{"n": 1}'
    first, second = bodies(model)
    assert "format" not in first and schema in first["messages"][0]["content"]
    assert second["format"] == {"type": "object", "required": ["n"]} and "tools" not in second


@requirement("ollama:thinking")
async def test_effort_switches_thinking() -> None:
    async with talk_to(*[{"text": "ok"}] * 3) as (talk, model):
        await talk.run()
        await talk.run(effort="none")
        await talk.run(effort="high")
    assert [body.get("think") for body in bodies(model)] == [None, False, True]


@requirement("ollama:errors")
@pytest.mark.parametrize("quirk", ["error_mid_stream", "odd_error"])
async def test_errors_in_the_stream_fail_the_turn_or_are_tried_again(quirk: str) -> None:
    async with talk_to(*[{"text": "half"}] * 3, model=f"m+{quirk}") as (talk, model):
        state = await talk.run()
    assert state.error is not None and state.error.code == "provider_error"
    assert len(model.requests) == (3 if quirk == "odd_error" else 1)
    discarded = [kind for kind in kinds(state.new_output_items) if kind == "item_discarded"]
    assert len(discarded) == (2 if quirk == "odd_error" else 0)


@requirement("ollama:errors")
async def test_a_call_the_server_could_not_parse_is_asked_for_again() -> None:
    broken = {"error": {"status": 500, "message": "error parsing tool call: raw='{', err=EOF"}}
    async with talk_to(broken, {"text": "ok"}) as (talk, _):
        state = await talk.run()
    assert state.status == TurnStatus.COMPLETED and len(notices(state, "retry")) == 1


@requirement("ollama:errors")
async def test_a_stream_without_its_end_is_an_error() -> None:
    async with talk_to({"text": "half", "drop": True}, {"text": "ok"}) as (talk, _):
        state = await talk.run()
        assert state.error is not None and json.loads(state.error.detail_json or "")["reason"] == "network"
        assert (await talk.run()).status == TurnStatus.COMPLETED


@requirement("ollama:stop-reasons")
async def test_an_answer_that_reached_its_length_says_so() -> None:
    async with talk_to({"text": "I", "stop": "max_tokens"}) as (talk, _):
        assert (await talk.run()).stop_reason == "max_tokens"


@requirement("ollama:cancel")
async def test_a_cancel_closes_the_connection_and_the_conversation_goes_on() -> None:
    async with talk_to({"text": "half", "hang": True}, {"text": "ok"}) as (talk, model):
        turn = await talk.begin()
        await talk.until(turn, lambda state: "text_delta" in kinds(state.new_output_items))
        await talk.house.cancel_turn(talk.conversation_id, turn)
        assert (await talk.finish(turn)).status == TurnStatus.CANCELLED
        with anyio.fail_after(5):
            assert await model.requests[0].wait_ended() == "client_left"
        assert (await talk.run("go on")).status == TurnStatus.COMPLETED


@requirement("ollama:images")
async def test_images_go_where_templates_look_for_them() -> None:
    image = ImageBlock(data=PIXEL, media_type="image/png")
    async with talk_to({"calls": [OSLO]}, {"text": "ok"}) as (talk, model):
        turn = await talk.house.submit_user_message(talk.conversation_id, [TextBlock(text="what?"), image])
        await talk.finish(
            turn, lambda r: answered(r, "see").model_copy(update={"content": [TextBlock(text="see"), image]})
        )
    sent = bodies(model)[1]["messages"]
    assert [message.get("images") for message in sent] == [[PIXEL], None, None, [PIXEL]]


def test_the_address_is_the_usual_one_or_the_one_the_server_was_given() -> None:
    assert OllamaConfig().url({}) == "http://127.0.0.1:11434"
    assert OllamaConfig().url({"OLLAMA_HOST": "0.0.0.0:8080"}) == "http://127.0.0.1:8080"
    assert OllamaConfig().url({"OLLAMA_HOST": "gpu.lan"}) == "http://gpu.lan:11434"
    assert OllamaConfig(base_url="http://h:1/").url({"OLLAMA_HOST": "x"}) == "http://h:1"
