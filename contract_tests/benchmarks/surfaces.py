"""What a provider's wire costs: `python -m contract_tests.benchmarks.surfaces`.

The connector `fake` answers at once or asks for one call: what is left is the surface, its conversation and HTTP. Both
ends share one process and one core.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import httpx2

from connectors.fake import FakeConnector
from harness.local import LocalHarness
from harness.registry import Registry
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.server import local_token, serve

REPETITIONS = 200
QUIET_SECONDS = 0.0
"""A reply's wait for a further call is a choice, not a cost: it is left out here and 50 ms in a server."""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = 'call get_weather {"city": "Oslo"}'


async def _post(client: httpx2.AsyncClient, path: str, body: dict[str, Any]) -> dict[str, Any]:
    response = await client.post(path, json=body)
    assert response.status_code == 200, response.text
    return response.json()


async def chat_answer(client: httpx2.AsyncClient, number: int) -> None:
    await _post(client, "/openai/v1/chat/completions", {"model": "fake", "messages": [_user(f"hello {number}")]})


async def chat_loop(client: httpx2.AsyncClient, number: int) -> None:
    tools = [{"type": "function", "function": {"name": "get_weather", "parameters": SCHEMA}}]
    messages: list[dict[str, Any]] = [_user(f"{number}\n{CALL}")]
    body = {"model": "fake", "tools": tools, "messages": messages}
    asked = (await _post(client, "/openai/v1/chat/completions", body))["choices"][0]["message"]
    messages += [asked, {"role": "tool", "tool_call_id": asked["tool_calls"][0]["id"], "content": "3 °C"}]
    answered = await _post(client, "/openai/v1/chat/completions", body)
    assert answered["choices"][0]["finish_reason"] == "stop"


async def messages_loop(client: httpx2.AsyncClient, number: int) -> None:
    messages: list[dict[str, Any]] = [_user(f"{number}\n{CALL}")]
    tools = [{"name": "get_weather", "input_schema": SCHEMA}]
    body = {"model": "fake", "max_tokens": 100, "tools": tools, "messages": messages}
    asked = (await _post(client, "/anthropic/v1/messages", body))["content"]
    result = {"type": "tool_result", "tool_use_id": asked[-1]["id"], "content": "3 °C"}
    messages += [{"role": "assistant", "content": asked}, {"role": "user", "content": [result]}]
    assert (await _post(client, "/anthropic/v1/messages", body))["stop_reason"] == "end_turn"


async def native_loop(client: httpx2.AsyncClient, number: int) -> None:
    tool = {"name": "get_weather", "input_schema_json": "{}"}
    begun = await client.post("/v1/conversations", json={"tools": [tool]})
    conversation = f"/v1/conversations/{begun.json()['conversation_id']}"
    message = {"content": [{"type": "text", "text": f"{number}\n{CALL}"}]}
    turn = f"{conversation}/turns/{(await client.post(f'{conversation}/turns', json=message)).json()['turn_id']}"
    since, status = 0, "running"
    while status != "completed":
        state = (await client.get(f"{turn}?since_sequence_no={since}&max_wait_ms=10000")).json()
        since, status = state["sequence_no"], state["status"]
        for request in state["pending_requests"]:
            answer = {"request_id": request["request_id"], "content": [{"type": "text", "text": "3 °C"}]}
            await client.post(f"{turn}/responses", json={"responses": [answer]})


def _user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


async def measure(
    name: str, client: httpx2.AsyncClient, act: Callable[[httpx2.AsyncClient, int], Awaitable[None]]
) -> None:
    times: list[float] = []
    for number in range(REPETITIONS):
        begun = time.perf_counter()
        await act(client, number)
        times.append(time.perf_counter() - begun)
    median, worst = statistics.median(times) * 1e3, statistics.quantiles(times, n=100)[-1] * 1e3
    print(f"{name:<42} p50 {median:.1f} ms, p99 {worst:.1f} ms")


async def main() -> None:
    token = local_token()
    settings = CompatibleSettings(quiet_seconds=QUIET_SECONDS)
    async with (
        LocalHarness(Registry({"fake": FakeConnector()}), default_connector="fake") as harness,
        serve(harness, tokens=[token], connectors=["fake"], compatible=settings) as server,
        httpx2.AsyncClient(
            base_url=server.url, headers={"Authorization": f"Bearer {token.secret}"}, trust_env=False, timeout=30
        ) as client,
    ):
        await measure("chat/completions, an answer", client, chat_answer)
        await measure("chat/completions, a loop of one call", client, chat_loop)
        await measure("messages, a loop of one call", client, messages_loop)
        await measure("native, a conversation with one call", client, native_loop)


if __name__ == "__main__":
    anyio.run(main)
