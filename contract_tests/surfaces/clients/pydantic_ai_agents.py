"""Agents of `pydantic-ai`, over its chat model or its Responses model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import Agent, AgentRunResultEvent, PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from contract_tests.surfaces.clients.lines import INSTRUCTIONS, Line, Said


class PydanticAi:
    def __init__(self, line: Line) -> None:
        self._client = line.openai_client()
        model = self._model(line.model, OpenAIProvider(openai_client=self._client))
        tools = [line.weather.tool()]
        self._agent = Agent(model, instructions=INSTRUCTIONS, tools=tools, model_settings=self._settings())

    def _model(self, name: str, provider: OpenAIProvider) -> Model:
        return OpenAIChatModel(name, provider=provider)

    def _settings(self) -> ModelSettings | None:
        return None

    async def ask(self, prompt: str, history: Sequence[Any] = (), *, streams: bool = False) -> Said:
        if not streams:
            done = await self._agent.run(prompt, message_history=history or None)
            return Said(done.output, done.all_messages())
        # `run_stream` takes the first text for the answer, also one that stands before calls
        pieces: list[str] = []
        result: Any = None
        async with self._agent.run_stream_events(prompt, message_history=history or None) as events:
            async for event in events:
                match event:
                    case PartStartEvent(part=TextPart(content=text)):
                        pieces.append(text)
                    case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                        pieces.append(text)
                    case AgentRunResultEvent():
                        result = event.result
                    case _:
                        pass
        return Said(result.output, result.all_messages(), pieces)

    async def leave(self, prompt: str) -> None:
        async with self._agent.run_stream(prompt) as result:
            async for _ in result.stream_text(delta=True, debounce_by=None):
                await result.cancel()
                return

    async def close(self) -> None:
        await self._client.close()


class PydanticAiResponses(PydanticAi):
    def _model(self, name: str, provider: OpenAIProvider) -> Model:
        return OpenAIResponsesModel(name, provider=provider)


class PydanticAiById(PydanticAiResponses):
    """It sends what is new and names the response before."""

    def _settings(self) -> ModelSettings:
        return OpenAIResponsesModelSettings(openai_previous_response_id="auto")
