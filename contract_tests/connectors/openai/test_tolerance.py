"""Chat Completions as servers in the wild speak it: every oddity comes out as if the server had been right."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from connectors.openai import OpenAiConnector
from contract_tests.connectors.model_talk import OSLO, ROME, final_text, model_talk
from contract_tests.core.scripted_chat_model import Talk, answered, notices
from contract_tests.requirements import requirement
from harness.contract import CallIdSource, ThinkingDelta, TurnStatus
from harness.scripted_model import ScriptedModel


@asynccontextmanager
async def talk_with_quirk(
    quirk: str, *script: Mapping[str, Any], **options: Any
) -> AsyncGenerator[tuple[Talk, ScriptedModel]]:
    asked = {"api": "chat", "max_retries": 0}
    async with model_talk(
        OpenAiConnector(), *script, path="/v1", connector_options=asked, model=f"m+{quirk}", **options
    ) as both:
        yield both


@requirement("openai:chat:tolerance")
@pytest.mark.parametrize(
    "quirk",
    [
        "same_index",
        "missing_index",
        "index_from_1",
        "new_id_each_chunk",
        "repeated_id_and_name",
        "empty_name_later",
        "object_arguments",
        "finish_stop",
        "finish_null",
        "no_done",
        "null_choices",
        "null_delta",
        "cut_after_finish",
    ],
)
async def test_parallel_calls_come_out_whole_with_their_ids(quirk: str) -> None:
    script = ({"text": "I look.", "calls": [OSLO, ROME]}, {"text": "done"})
    async with talk_with_quirk(quirk, *script) as (talk, _):
        state = await talk.run()
    assert state.status == TurnStatus.COMPLETED and final_text(state) == "done"
    assert [(r.call_id, r.call_id_source) for r in talk.opened] == [("call_oslo", "exact"), ("call_rome", "exact")]
    made = [json.loads(request.arguments_json or "") for request in talk.opened]
    assert made == [{"city": "Oslo", "at": 1.1}, {"city": "Rome"}]


@requirement("openai:chat:tolerance", "R-L5")
@pytest.mark.parametrize("quirk", ["missing_id", "empty_id", "missing_id+missing_index", "empty_id+same_index"])
async def test_calls_without_ids_get_unique_ones_that_pair_up(quirk: str) -> None:
    script = ({"calls": [OSLO, ROME]}, {"text": "done"})
    async with talk_with_quirk(quirk, *script) as (talk, model):
        state = await talk.run(tool=lambda r: answered(r, json.loads(r.arguments_json or "")["city"]))
    assert state.status == TurnStatus.COMPLETED
    assert {r.call_id_source for r in talk.opened} == {CallIdSource.MADE_UP}
    assert [past.result for past in model.requests[1].past_calls] == ["Oslo", "Rome"]
    assert len({past.call_id for past in model.requests[1].past_calls}) == 2
    assert len(notices(state, "call_id_made_up")) == 2


@requirement("openai:chat:tolerance", "R-L5")
async def test_doubled_ids_are_made_unique() -> None:
    twin = {**ROME, "id": "call_oslo"}
    async with talk_with_quirk("none", {"calls": [OSLO, twin]}, {"text": "done"}) as (talk, model):
        await talk.run(tool=lambda r: answered(r, json.loads(r.arguments_json or "")["city"]))
    assert [r.call_id_source for r in talk.opened] == [CallIdSource.EXACT, CallIdSource.MADE_UP]
    assert [past.result for past in model.requests[1].past_calls] == ["Oslo", "Rome"]


@requirement("openai:chat:tolerance")
@pytest.mark.parametrize("quirk", ["empty_arguments", "null_arguments"])
async def test_no_arguments_are_an_empty_object(quirk: str) -> None:
    async with talk_with_quirk(quirk, {"calls": [{"name": "clock", "id": "c"}]}, {"text": "noon"}) as (talk, _):
        await talk.run()
    assert [r.arguments_json for r in talk.opened] == ["{}"]


@requirement("openai:chat:tolerance")
async def test_an_entry_without_a_name_is_left_out_with_a_notice() -> None:
    async with talk_with_quirk("nameless_entry", {"calls": [OSLO]}, {"text": "7"}) as (talk, _):
        state = await talk.run()
    assert [r.call_id for r in talk.opened] == ["call_oslo"]
    assert notices(state, "nameless_call")


@requirement("openai:chat:tolerance")
@pytest.mark.parametrize("quirk", ["reasoning", "reasoning_content"])
async def test_reasoning_is_thinking_and_not_sent_back(quirk: str) -> None:
    async with talk_with_quirk(quirk, {"thinking": "Hm, Oslo.", "calls": [OSLO]}, {"text": "7"}) as (talk, model):
        state = await talk.run()
    assert [item.text for item in state.new_output_items if isinstance(item, ThinkingDelta)] == ["Hm, Oslo."]
    assert "Hm, Oslo." not in model.requests[1].body_text


@requirement("openai:chat:tolerance")
@pytest.mark.parametrize("quirk", ["error_mid_stream", "error_string"])
async def test_an_error_in_the_stream_fails_the_turn_with_its_text(quirk: str) -> None:
    async with talk_with_quirk(quirk, {"text": "half"}) as (talk, _):
        state = await talk.run()
    assert (
        state.error is not None and state.error.code == "provider_error" and "the server broke" in state.error.message
    )


@requirement("openai:chat:tolerance")
async def test_a_cut_call_reported_as_a_call_is_not_run() -> None:
    cut = {"calls": [{"name": "weather", "arguments_json": '{"city": "Os', "id": "c"}], "usage": {"output_tokens": 20}}
    async with talk_with_quirk("none", cut) as (talk, _):
        state = await talk.run(max_output_tokens=20)
    assert talk.opened == [] and state.stop_reason == "max_tokens"


@requirement("openai:chat:tolerance")
async def test_a_stream_without_any_end_is_an_error() -> None:
    async with talk_with_quirk("finish_null+no_done", {"text": "half"}) as (talk, _):
        state = await talk.run()
    assert state.error is not None and json.loads(state.error.detail_json or "")["reason"] == "network"


@requirement("openai:chat:tolerance")
async def test_arguments_that_are_no_json_go_back_as_json_to_servers_that_parse_them() -> None:
    broken = {"calls": [{"name": "weather", "arguments_json": "{city: Oslo", "id": "c"}]}
    async with talk_with_quirk("none", broken, {"text": "sorry"}) as (talk, model):
        state = await talk.run()
    assert state.status == TurnStatus.COMPLETED and notices(state, "invalid_arguments")
    (message,) = [m for m in json.loads(model.requests[1].body_text)["messages"] if "tool_calls" in m]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"invalid_json": "{city: Oslo"}
