"""Answers in a schema, each library's own way: its object comes out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import Agent as OpenAiAgent
from agents import Model, OpenAIChatCompletionsModel, OpenAIProvider, Runner
from langchain_openai import ChatOpenAI
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, PromptedOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider as PydanticAiProvider

from contract_tests.requirements import requirement
from contract_tests.surfaces.clients.libraries import every_agent, only_claude
from contract_tests.surfaces.clients.lines import Line, Place, open_place
from contract_tests.surfaces.clients.openai_agents import QUIET
from contract_tests.surfaces.clients.openai_sdk import OpenAiSdk
from harness.testing.scenario import call

QUESTION = "How is the weather?"
ASKED: Any = [{"role": "user", "content": QUESTION}]


class Weather(BaseModel):
    city: str
    sky: str


OSLO = Weather(city="Oslo", sky="rain")
FORCES_NOTHING = OpenAIModelProfile(supports_forced_tool_choice=False, supports_json_object_output=False)
"""What an agent cannot: be made to call a tool, and be made to answer with JSON."""


async def with_openai(line: Line, client: openai.AsyncOpenAI) -> object:
    done = await client.chat.completions.parse(model=line.model, messages=ASKED, response_format=Weather)
    return done.choices[0].message.parsed


async def with_openai_responses(line: Line, client: openai.AsyncOpenAI) -> object:
    return (await client.responses.parse(model=line.model, input=QUESTION, text_format=Weather)).output_parsed


async def with_anthropic(line: Line, _: openai.AsyncOpenAI) -> object:
    async with line.anthropic_client() as client:
        done = await client.messages.parse(model=line.model, max_tokens=1000, messages=ASKED, output_format=Weather)
        return done.parsed_output


async def with_pydantic_ai(line: Line, client: openai.AsyncOpenAI) -> object:
    model = OpenAIChatModel(line.model, provider=PydanticAiProvider(openai_client=client))
    return (await Agent(model, output_type=NativeOutput(Weather)).run(QUESTION)).output


async def _with_openai_agents(model: Model) -> object:
    agent = OpenAiAgent[Any](name="Weather", model=model, output_type=Weather)
    return (await Runner.run(agent, QUESTION, run_config=QUIET)).final_output


async def with_openai_agents(line: Line, client: openai.AsyncOpenAI) -> object:
    return await _with_openai_agents(OpenAIChatCompletionsModel(line.model, client))


async def with_openai_agents_responses(line: Line, client: openai.AsyncOpenAI) -> object:
    return await _with_openai_agents(OpenAIProvider(openai_client=client).get_model(line.model))


async def with_langchain(line: Line, client: openai.AsyncOpenAI) -> object:
    chat = ChatOpenAI(
        model=line.model,
        async_client=client.chat.completions,
        root_async_client=client,
        api_key=line.key,  # type: ignore[arg-type]
        base_url=f"{line.url}/openai/v1",
    )
    return await chat.with_structured_output(Weather).ainvoke(QUESTION)


WAYS: Mapping[str, Callable[[Line, openai.AsyncOpenAI], Awaitable[object]]] = {
    "openai": with_openai,
    "openai-responses": with_openai_responses,
    "anthropic": with_anthropic,
    "pydantic-ai": with_pydantic_ai,
    "openai-agents": with_openai_agents,
    "openai-agents-responses": with_openai_agents_responses,
    "langchain": with_langchain,
}


@asynccontextmanager
async def open_line(
    agent: str, script: list[Any], directory: Path
) -> AsyncGenerator[tuple[Place, Line, openai.AsyncOpenAI]]:
    async with open_place(OpenAiSdk, agent, script, directory) as place:
        _, line = place.user()
        async with line.openai_client() as client:
            yield place, line, client


@requirement("clients:structured")
@pytest.mark.parametrize("library", WAYS)
@only_claude
async def test_an_answer_in_a_schema_is_the_librarys_object(agent: str, library: str, tmp_path: Path) -> None:
    """The CLI has its model call a tool of its own for that; what the model says besides is no part of the answer."""
    own = call("StructuredOutput", "s1", **OSLO.model_dump())
    script = [{"text": "Let me see.", "calls": [own]}, {"text": "There it is."}]
    async with open_line(agent, script, tmp_path) as (_, line, client):
        assert await WAYS[library](line, client) == OSLO


@requirement("clients:structured")
@every_agent
async def test_an_output_tool_of_pydantic_ai_is_called_where_none_can_be_forced(agent: str, tmp_path: Path) -> None:
    script = [
        {"calls": [call("final_result", "f1", **OSLO.model_dump())]},
        {"calls": [call("final_result", "f2", city="Rome", sky="sun")]},
    ]
    async with open_line(agent, script, tmp_path) as (place, line, client):
        provider = PydanticAiProvider(openai_client=client)
        weather = Agent(OpenAIChatModel(line.model, provider=provider, profile=FORCES_NOTHING), output_type=Weather)
        first = await weather.run(QUESTION)
        second = await weather.run("And in Rome?", message_history=first.all_messages())
        conversations = await place.agent.conversations()

    assert (first.output, second.output) == (OSLO, Weather(city="Rome", sky="sun"))
    assert len(conversations) == 1


@requirement("clients:structured")
@every_agent
async def test_pydantic_ai_can_ask_for_json_in_words(agent: str, tmp_path: Path) -> None:
    async with open_line(agent, [{"text": OSLO.model_dump_json()}], tmp_path) as (_, line, client):
        model = OpenAIChatModel(line.model, provider=PydanticAiProvider(openai_client=client), profile=FORCES_NOTHING)
        assert (await Agent(model, output_type=PromptedOutput(Weather)).run(QUESTION)).output == OSLO
