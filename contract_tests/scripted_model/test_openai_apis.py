"""The scripted model as OpenAI's own client meets it: Responses and Chat Completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import openai
import pytest

from contract_tests.requirements import requirement
from harness.scripted_model import ScriptedModel, open_scripted_model
from harness.scripted_model.openai_chat import QUIRKS

WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}}
FLAT: Any = [{"type": "function", "name": "get_weather", "parameters": WEATHER, "strict": False}]
NESTED: Any = [{"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}}]
ENTRY = {
    "thinking": "Hm.",
    "text": ["I ", "look."],
    "calls": [{"name": "get_weather", "arguments_json": '{"city": "Oslo", "t": 1.10}', "id": "c1"}],
    "usage": {"input_tokens": 50, "cached_input_tokens": 20, "output_tokens": 9},
}


@asynccontextmanager
async def model_and_openai(*script: dict[str, Any]) -> AsyncGenerator[tuple[ScriptedModel, openai.AsyncOpenAI]]:
    async with open_scripted_model(script) as model, httpx2.AsyncClient(trust_env=False) as http:
        yield model, openai.AsyncOpenAI(base_url=f"{model.url}/v1", api_key="made-up", http_client=http, max_retries=0)


@requirement("scripted-model:openai:responses")
async def test_a_responses_stream_is_what_openais_types_expect() -> None:
    async with model_and_openai(ENTRY) as (_, client):
        stream = await client.responses.create(model="m", input="Weather?", tools=FLAT, stream=True)
        events = [event async for event in stream]
    # model_validate is strict where the client itself is not
    checked = [type(event).model_validate(event.model_dump()) for event in events]
    last = checked[-1]
    assert last.type == "response.completed"
    reasoning, message, call = last.response.output
    assert (reasoning.type, message.type, call.type) == ("reasoning", "message", "function_call")
    assert call.type == "function_call" and (call.call_id, call.arguments) == ("c1", '{"city": "Oslo", "t": 1.10}')
    deltas = [event.delta for event in checked if event.type == "response.output_text.delta"]
    assert deltas == ["I ", "look."]
    usage = last.response.usage
    assert usage is not None and (usage.input_tokens, usage.input_tokens_details.cached_tokens) == (50, 20)


@requirement("scripted-model:openai:responses")
async def test_the_responses_api_refuses_a_history_without_its_pairs() -> None:
    call = {"type": "function_call", "call_id": "c1", "name": "get_weather", "arguments": "{}", "id": "fc_c1"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "7 C"}
    entry = {"text": "It is {{results.get_weather}}."}
    async with model_and_openai(entry) as (model, client):
        refused: list[tuple[list[Any], str]] = [
            ([call], "No tool output found for function call c1"),
            ([output], "No tool call found"),
            ([{**call, "id": "fc_c1_r"}, output], "without its required 'reasoning' item"),
        ]
        for items, problem in refused:
            with pytest.raises(openai.BadRequestError, match=problem):
                await client.responses.create(model="m", input=items)
        items: Any = [call, output]
        response = await client.responses.create(model="m", input=items)
    assert response.output_text == "It is 7 C."
    assert len(model.requests) == 1


@requirement("scripted-model:openai:chat")
async def test_a_chat_stream_is_what_openais_types_expect() -> None:
    async with model_and_openai(ENTRY) as (_, client):
        stream = await client.chat.completions.create(
            model="m",
            messages=[{"role": "user", "content": "Weather?"}],
            tools=NESTED,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = [type(chunk).model_validate(chunk.model_dump()) async for chunk in stream]
    *parts, usage = chunks
    assert usage.choices == [] and usage.usage is not None and usage.usage.prompt_tokens == 50
    deltas = [chunk.choices[0].delta for chunk in parts]
    assert "".join(delta.content or "" for delta in deltas) == "I look."
    entries = [entry for delta in deltas for entry in delta.tool_calls or []]
    assert [entry.id for entry in entries] == ["c1", None, None]
    assert "".join(e.function.arguments or "" for e in entries if e.function) == '{"city": "Oslo", "t": 1.10}'
    assert parts[-1].choices[0].finish_reason == "tool_calls"


@requirement("scripted-model:openai:chat")
async def test_the_chat_api_refuses_a_call_without_its_result_right_behind_it() -> None:
    call: Any = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    asked: Any = {"role": "user", "content": "?"}
    made: Any = {"role": "assistant", "tool_calls": [call]}
    answered: Any = {"role": "tool", "tool_call_id": "c1", "content": "7 C"}
    async with model_and_openai({"text": "{{results.c1}}"}) as (_, client):
        for messages in ([asked, made], [asked, made, asked, answered], [asked, answered]):
            with pytest.raises(openai.BadRequestError, match="tool"):
                await client.chat.completions.create(model="m", messages=messages)
        completion = await client.chat.completions.create(model="m", messages=[asked, made, answered])
    assert completion.choices[0].message.content == "7 C"


@requirement("scripted-model:openai:quirks")
@pytest.mark.parametrize("quirk", sorted(QUIRKS))
async def test_each_quirk_changes_the_stream(quirk: str) -> None:
    async with open_scripted_model([ENTRY, ENTRY]) as model, httpx2.AsyncClient(trust_env=False) as http:
        bodies = [
            {"model": name, "stream": True, "stream_options": {"include_usage": True}, "messages": [], "tools": NESTED}
            for name in ("m", f"m+{quirk}")
        ]
        usual, odd = [(await http.post(f"{model.url}/v1/chat/completions", json=body)).text for body in bodies]
    run = "chatcmpl-"
    assert usual.count(run) and odd.replace(f"m+{quirk}", "m") != usual
    assert "[DONE]" in usual


@requirement("scripted-model:errors")
@pytest.mark.parametrize("path", ["responses", "chat/completions"])
async def test_an_error_has_the_shape_and_header_of_the_api(path: str) -> None:
    entry = {"error": {"status": 429, "message": "slow down", "retry_after": 3}}
    async with open_scripted_model([entry]) as model, httpx2.AsyncClient(trust_env=False) as http:
        response = await http.post(f"{model.url}/v1/{path}", json={"model": "m", "messages": [], "input": []})
    assert response.status_code == 429 and response.headers["retry-after"] == "3"
    assert response.json()["error"]["message"] == "slow down"
