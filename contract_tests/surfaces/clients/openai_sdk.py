"""The `openai` package with a loop around it, as its manual shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from contract_tests.surfaces.clients.lines import DESCRIPTION, INSTRUCTIONS, Line, Said

TOOL: Any = {
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


class OpenAiSdkResponses:
    """Its Responses API; what came out goes in again, as the server keeps nothing."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._client = line.openai_client()
        self._tool = line.weather.tool()

    async def ask(self, prompt: str, history: Sequence[Any] = (), *, streams: bool = False) -> Said:
        items: list[Any] = [*history, {"role": "user", "content": prompt}]
        while True:
            pieces: list[str] = []
            response = await (self._streamed(items, pieces) if streams else self._whole(items))
            items += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
            calls = [item for item in response.output if item.type == "function_call"]
            if not calls:
                return Said(response.output_text, items, pieces)
            for call in calls:
                result = await self._tool(**json.loads(call.arguments))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": result})

    async def leave(self, prompt: str) -> None:
        async with self._client.responses.stream(**self._arguments([{"role": "user", "content": prompt}])) as stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    return

    async def close(self) -> None:
        await self._client.close()

    def _arguments(self, items: Sequence[Any]) -> Any:
        tool = {"type": "function", **TOOL["function"], "strict": False}
        return {"model": self._line.model, "instructions": INSTRUCTIONS, "input": items, "tools": [tool]}

    async def _whole(self, items: Sequence[Any]) -> Any:
        return await self._client.responses.create(**self._arguments(items))

    async def _streamed(self, items: Sequence[Any], pieces: list[str]) -> Any:
        async with self._client.responses.stream(**self._arguments(items)) as stream:
            async for event in stream:
                if event.type == "response.output_text.delta":
                    pieces.append(event.delta)
            return await stream.get_final_response()
