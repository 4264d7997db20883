"""Agents of `openai-agents`, over its chat model or its Responses model; its tracing goes nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import openai
from agents import Agent, Model, OpenAIChatCompletionsModel, OpenAIProvider, RunConfig, Runner, function_tool

from contract_tests.surfaces.clients.lines import INSTRUCTIONS, Line, Said

QUIET = RunConfig(tracing_disabled=True)


class OpenAiAgents:
    def __init__(self, line: Line) -> None:
        self._client = line.openai_client()
        self._agent = Agent[Any](
            name="Weather",
            instructions=INSTRUCTIONS,
            model=self._model(line.model, self._client),
            tools=[function_tool(line.weather.tool())],
        )

    def _model(self, name: str, client: openai.AsyncOpenAI) -> Model:
        return OpenAIChatCompletionsModel(name, client)

    async def ask(self, prompt: str, history: Sequence[Any] = (), *, streams: bool = False) -> Said:
        asked: Any = [*history, {"role": "user", "content": prompt}]
        if not streams:
            done = await Runner.run(self._agent, asked, run_config=QUIET)
            return Said(done.final_output, done.to_input_list())
        running = Runner.run_streamed(self._agent, asked, run_config=QUIET)
        pieces = [text async for event in running.stream_events() if (text := text_in(event))]
        return Said(running.final_output, running.to_input_list(), pieces)

    async def leave(self, prompt: str) -> None:
        running = Runner.run_streamed(self._agent, prompt, run_config=QUIET)
        async for event in running.stream_events():
            if text_in(event):
                running.cancel()

    async def close(self) -> None:
        await self._client.close()


class OpenAiAgentsResponses(OpenAiAgents):
    """As it is by default."""

    def _model(self, name: str, client: openai.AsyncOpenAI) -> Model:
        return OpenAIProvider(openai_client=client).get_model(name)


class OpenAiAgentsById(OpenAiAgentsResponses):
    """It sends what is new and names the response before; that id is all of the history."""

    async def ask(self, prompt: str, history: Sequence[Any] = (), *, streams: bool = False) -> Said:
        kept: dict[str, Any] = {
            "previous_response_id": history[0] if history else None,
            "auto_previous_response_id": True,
            "run_config": QUIET,
        }
        if not streams:
            done = await Runner.run(self._agent, prompt, **kept)
            return Said(done.final_output, [done.last_response_id])
        running = Runner.run_streamed(self._agent, prompt, **kept)
        pieces = [text async for event in running.stream_events() if (text := text_in(event))]
        return Said(running.final_output, [running.last_response_id], pieces)


def text_in(event: Any) -> str:
    is_text = event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
    return event.data.delta if is_text else ""
