"""The client libraries by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from contract_tests.surfaces.clients.anthropic_sdk import AnthropicSdk
from contract_tests.surfaces.clients.langchain import LangChain
from contract_tests.surfaces.clients.lines import Library, Line
from contract_tests.surfaces.clients.openai_agents import OpenAiAgents
from contract_tests.surfaces.clients.openai_sdk import OpenAiSdk
from contract_tests.surfaces.clients.pydantic_ai_agents import PydanticAi

LIBRARIES: Mapping[str, Callable[[Line], Library]] = {
    "openai": OpenAiSdk,
    "anthropic": AnthropicSdk,
    "pydantic-ai": PydanticAi,
    "openai-agents": OpenAiAgents,
    "langchain": LangChain,
}
