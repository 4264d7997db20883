"""The `openai` package with a loop around it, as its manual shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from contract_tests.surfaces.clients.lines import DESCRIPTION, INSTRUCTIONS, Line, Said

TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": DESCRIPTION,
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


class OpenAiSdk:
    def __init__(self, line: Line) -> None:
        self._line = line
        self._client = line.openai_client()
        self._tool = line.weather.tool()

    async def ask(self, prompt: str, history: Sequence[Any] = (), *, streams: bool = False) -> Said:
        messages: list[Any] = [*(history or [{"role": "system", "content": INSTRUCTIONS}])]
        messages.append({"role": "user", "content": prompt})
        while True:
            pieces: list[str] = []
            message = await (self._streamed(messages, pieces) if streams else self._whole(messages))
            messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
            if not message.tool_calls:
                return Said(message.content or "", messages, pieces)
            for call in message.tool_calls:
                result = await self._tool(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})

    async def leave(self, prompt: str) -> None:
        messages = [{"role": "user", "content": prompt}]
        async with self._client.chat.completions.stream(**self._arguments(messages)) as stream:
            async for event in stream:
                if event.type == "content.delta" and event.delta:
                    return

    async def close(self) -> None:
        await self._client.close()

    def _arguments(self, messages: Sequence[Any]) -> Any:
        return {"model": self._line.model, "messages": messages, "tools": [TOOL]}

    async def _whole(self, messages: Sequence[Any]) -> Any:
        return (await self._client.chat.completions.create(**self._arguments(messages))).choices[0].message

    async def _streamed(self, messages: Sequence[Any], pieces: list[str]) -> Any:
        async with self._client.chat.completions.stream(**self._arguments(messages)) as stream:
            async for event in stream:
                if event.type == "content.delta" and event.delta:
                    pieces.append(event.delta)
            return (await stream.get_final_completion()).choices[0].message
