"""What the wire tests of the scripted model share: a client, a request body, and events read back."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from harness.scripted_model import ScriptedModel, open_scripted_model

TOOLS = ("mcp__host__get_weather", "mcp__host__get_time")


@asynccontextmanager
async def model_and_client(
    *script: dict[str, Any], log: Path | None = None
) -> AsyncGenerator[tuple[ScriptedModel, httpx2.AsyncClient]]:
    """A scripted model and a client of it that ignores the proxies of the machine."""
    async with (
        open_scripted_model(script, log=log) as model,
        httpx2.AsyncClient(base_url=model.url, trust_env=False) as client,
    ):
        yield model, client


def body(
    *messages: dict[str, Any], tools: tuple[str, ...] = TOOLS, stream: bool = False, max_tokens: int = 1000
) -> dict[str, Any]:
    """A request for an answer."""
    return {
        "model": "claude-test",
        "max_tokens": max_tokens,
        "stream": stream,
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in tools],
        "messages": [{"role": "user", "content": "Hello"}, *messages],
    }


def called(call_id: str, name: str, result: Any, *, is_error: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """The two messages of the history in which a tool was called and answered."""
    answer = {"type": "tool_result", "tool_use_id": call_id, "content": result, "is_error": is_error}
    return (
        {"role": "assistant", "content": [{"type": "tool_use", "id": call_id, "name": name, "input": {}}]},
        {"role": "user", "content": [answer]},
    )


def events_in(text: str) -> list[dict[str, Any]]:
    """The data of server-sent events; each event's name must be its data's type."""
    events: list[dict[str, Any]] = []
    for block in text.split("\n\n"):
        if block:
            name, data = block.split("\n")
            events.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {events[-1]['type']}"
    return events
