"""The client libraries by name, and with which agents each is tried."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

import pytest

from contract_tests.connectors.claude.cli import has_cli
from contract_tests.peers_installed import needs_peer
from contract_tests.surfaces.clients.anthropic_sdk import AnthropicSdk
from contract_tests.surfaces.clients.langchain import LangChain, LangChainById, LangChainResponses
from contract_tests.surfaces.clients.lines import Library, Line
from contract_tests.surfaces.clients.openai_agents import OpenAiAgents, OpenAiAgentsById, OpenAiAgentsResponses
from contract_tests.surfaces.clients.openai_sdk import OpenAiSdk, OpenAiSdkResponses
from contract_tests.surfaces.clients.pydantic_ai_agents import PydanticAi, PydanticAiById, PydanticAiResponses

_QUICK: Mapping[str, Callable[[Line], Library]] = {
    "openai": OpenAiSdk,
    "anthropic": AnthropicSdk,
    "pydantic-ai": PydanticAi,
    "openai-agents": OpenAiAgents,
    "langchain": LangChain,
}
"""Each takes part in `make test` once; the rest is for `make test-live`."""
_RESPONSES: Mapping[str, Callable[[Line], Library]] = {
    "openai-responses": OpenAiSdkResponses,
    "pydantic-ai-responses": PydanticAiResponses,
    "openai-agents-responses": OpenAiAgentsResponses,
    "langchain-responses": LangChainResponses,
}
LIBRARIES = {**_QUICK, **_RESPONSES}
BY_ID: Mapping[str, Callable[[Line], Library]] = {
    "pydantic-ai-by-id": PydanticAiById,
    "openai-agents-by-id": OpenAiAgentsById,
    "langchain-by-id": LangChainById,
}
"""They send no history, so what was said before cannot be said in another way."""

_no_claude = pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'")


def _pairs(libraries: Iterable[str], quick: Container[str] = ()) -> pytest.MarkDecorator:
    pairs: list[Any] = []
    for name in libraries:
        live = pytest.mark.live if name in quick else pytest.mark.all_live
        pairs.append(pytest.param(name, "claude", marks=[live, _no_claude]))
        pairs.append(pytest.param(name, "copilot:sdk", marks=needs_peer("copilot")))
    return pytest.mark.parametrize(("library", "agent"), pairs)


_CLAUDE = pytest.param("claude", marks=[pytest.mark.all_live, _no_claude])
only_claude = pytest.mark.parametrize("agent", [_CLAUDE])
every_agent = pytest.mark.parametrize("agent", [_CLAUDE, pytest.param("copilot:sdk", marks=needs_peer("copilot"))])
every_pair = _pairs(LIBRARIES)
every_pair_some_always = _pairs(LIBRARIES, _QUICK)
every_pair_by_id = _pairs(BY_ID)
