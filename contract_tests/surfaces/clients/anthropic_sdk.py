"""The `anthropic` package with its own tool loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anthropic import beta_async_tool

from contract_tests.surfaces.clients.lines import INSTRUCTIONS, Line, Said


class AnthropicSdk:
    def __init__(self, line: Line) -> None:
        self._line = line
        self._client = line.anthropic_client()
        self._tool: Any = beta_async_tool(line.weather.tool())

    async def ask(self, prompt: str, history: Sequence[Any] = (), *, streams: bool = False) -> Said:
        messages: list[Any] = [*history, {"role": "user", "content": prompt}]
        runner: Any = self._client.beta.messages.tool_runner(**self._arguments(messages), stream=streams)
        pieces: list[str] = []
        message: Any = None
        async for one in runner:
            if streams:
                pieces = [event.text async for event in one if event.type == "text"]
            message = await one.get_final_message() if streams else one
            messages.append({"role": "assistant", "content": message.content})
            answer = await runner.generate_tool_call_response()
            if answer is not None:
                messages.append(answer)
        return Said("".join(block.text for block in message.content if block.type == "text"), messages, pieces)

    async def leave(self, prompt: str) -> None:
        messages = [{"role": "user", "content": prompt}]
        async with self._client.beta.messages.stream(**self._arguments(messages)) as stream:
            async for event in stream:
                if event.type == "text":
                    return

    async def close(self) -> None:
        await self._client.close()

    def _arguments(self, messages: Sequence[Any]) -> Any:
        return {
            "model": self._line.model,
            "max_tokens": 4096,
            "system": INSTRUCTIONS,
            "messages": messages,
            "tools": [self._tool],
        }
