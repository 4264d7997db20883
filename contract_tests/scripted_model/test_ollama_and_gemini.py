"""The scripted model as clients of Ollama and of Gemini meet it on the wire."""

from __future__ import annotations

import json
from typing import Any

from contract_tests.requirements import requirement
from contract_tests.scripted_model.wire import model_and_client

CALL = {"name": "get_weather", "arguments_json": '{"city": "Oslo", "t": 1.10}', "id": "c1"}
ENTRY = {"thinking": "Hm.", "text": ["I ", "look."], "calls": [CALL], "usage": {"input_tokens": 50, "output_tokens": 9}}
FUNCTION = {"name": "get_weather", "parameters": {"type": "object"}}


def chat(*messages: dict[str, Any], model: str = "m", **more: Any) -> dict[str, Any]:
    tools = [{"type": "function", "function": FUNCTION}]
    return {"model": model, "messages": [{"role": "user", "content": "?"}, *messages], "tools": tools, **more}


@requirement("scripted-model:ollama")
async def test_ollama_streams_lines_with_whole_calls_and_ends_with_done() -> None:
    async with model_and_client(ENTRY, ENTRY) as (_, client):
        response = await client.post("/api/chat", json=chat())
        whole = (await client.post("/api/chat", json=chat(stream=False))).json()
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert [line["done"] for line in lines] == [False] * 4 + [True]
    assert [line["message"].get("content") for line in lines] == ["", "I ", "look.", "", ""]
    (call,) = lines[3]["message"]["tool_calls"]
    assert call == {
        "id": "c1",
        "function": {"index": 0, "name": "get_weather", "arguments": {"city": "Oslo", "t": 1.1}},
    }
    assert '"t": 1.10' in response.text
    assert (lines[-1]["done_reason"], lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]) == ("stop", 50, 9)
    assert whole["message"]["tool_calls"] == [call] and whole["message"]["content"] == "I look."


@requirement("scripted-model:ollama")
async def test_ollama_answers_what_a_client_looks_up() -> None:
    async with model_and_client({"text": "{{results.c1}}"}) as (model, client):
        assert (await client.get("/api/version")).json()["version"] == "0.33.0"
        assert (await client.get("/api/tags")).json()["models"][0]["name"] == "scripted:latest"
        assert "tools" in (await client.post("/api/show", json={"model": "m"})).json()["capabilities"]
        assert (await client.post("/api/show", json={"model": "missing"})).status_code == 404
        pulled = (await client.post("/api/pull", json={"model": "m"})).text.splitlines()
        assert json.loads(pulled[-1]) == {"status": "success"}
        loaded = await client.post("/api/chat", json={"model": "m", "messages": []})
        assert loaded.json()["done_reason"] == "load"
        refused = await client.post("/api/chat", json=chat(model="m+no_tools"))
        assert refused.status_code == 400 and "does not support tools" in refused.json()["error"]
        called = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "function": FUNCTION}]}
        result = {"role": "tool", "tool_name": "get_weather", "tool_call_id": "c1", "content": "7 C"}
        answer = await client.post("/api/chat", json=chat(called, result, stream=False))
    assert answer.json()["message"]["content"] == "7 C"
    assert len(model.requests) == 1


@requirement("scripted-model:gemini")
async def test_gemini_streams_parts_and_reads_responses_back() -> None:
    body: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [{"text": "?"}]}],
        "tools": [{"functionDeclarations": [FUNCTION]}],
    }
    async with model_and_client(ENTRY, {"text": "It is {{results.get_weather}}."}) as (model, client):
        streamed = await client.post("/v1beta/models/g:streamGenerateContent?alt=sse", json=body)
        chunks = [json.loads(line.removeprefix("data: ")) for line in streamed.text.split("\r\n") if line]
        parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
        body["contents"] += [
            {"role": "model", "parts": [parts[3]]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "get_weather", "response": {"output": "7 C"}}}],
            },
        ]
        count = await client.post("/v1beta/models/g:countTokens", json=body)
        whole = (await client.post("/v1beta/models/g:generateContent", json=body)).json()
    assert parts[0] == {"text": "Hm.", "thought": True}
    assert parts[3]["functionCall"] == {"id": "c1", "name": "get_weather", "args": {"city": "Oslo", "t": 1.1}}
    assert chunks[-1]["candidates"][0]["finishReason"] == "STOP"
    assert chunks[-1]["usageMetadata"]["promptTokenCount"] == 50
    assert whole["candidates"][0]["content"]["parts"] == [{"text": "It is 7 C."}]
    assert count.json()["totalTokens"] > 10
    assert [request.tools for request in model.requests] == [("get_weather",)] * 2


@requirement("scripted-model:errors")
async def test_errors_have_each_apis_shape() -> None:
    entry = {"error": {"status": 503, "message": "busy"}}
    async with model_and_client(entry, entry) as (_, client):
        ollama = await client.post("/api/chat", json=chat())
        gemini = await client.post("/v1beta/models/g:generateContent", json={"contents": []})
    assert (ollama.status_code, ollama.json()) == (503, {"error": "busy"})
    assert gemini.json()["error"] == {"code": 503, "message": "busy", "status": "UNAVAILABLE"}
