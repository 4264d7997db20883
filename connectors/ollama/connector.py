"""The connector `ollama`: models of a local Ollama server, by its native API."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from connectors._provider_http import open_provider
from connectors.ollama.config import DEFAULT_MODEL, RESTRICTED, OllamaConfig
from connectors.ollama.model import OllamaModel, listed, pull, show, version
from harness.connector import ModelInfo, PullProgress, Session, SessionLog
from harness.contract.capabilities import (
    CallIds,
    Denial,
    InnerVersion,
    LlmCapabilities,
    Parallel,
    ResultOrder,
    Resume,
    SeedHistory,
    Streaming,
    StructuredOutput,
    ToolErrorFlag,
)
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.requests import RequestKind
from harness.contract.value import JsonValue
from harness.model_loop import TURN_OPTIONS, ModelSession, check_seeded, config_of

TESTED_VERSIONS = ("0.33.",)


class OllamaConnector:
    """One HTTP client per conversation; the server keeps the model loaded between turns."""

    name = "ollama"
    variants: Mapping[str, Mapping[str, JsonValue]] = {}
    restricted_options = RESTRICTED

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        config = config_of(OllamaConfig, options, self.name)
        check_seeded(options.history)
        model = options.model or DEFAULT_MODEL
        config.check_model(model)
        async with open_provider(config.url(), "Ollama") as client:
            running = await version(client)
            facts = await show(client, model)
        return LlmCapabilities(
            supports_tools=facts.calls_tools,
            supports_parallel_tool_calls=facts.calls_tools,
            routable_request_kinds=[RequestKind.TOOL_CALL] if facts.calls_tools else [],
            parallel=Parallel.ALL,
            resume=Resume.EXACT,
            seed_history=SeedHistory.EXACT,
            denial=Denial.CONTINUES,
            result_order=ResultOrder.CALL,
            call_ids=CallIds.EXACT,
            tool_error_flag=ToolErrorFlag.TEXT_ONLY,
            images_in_prompt=facts.sees,
            images_in_tool_results=facts.sees,
            structured_output=StructuredOutput.TURN,
            streaming=Streaming.TOKEN,
            turn_options=list(TURN_OPTIONS),
            reports_usage=True,
            inner=InnerVersion(name="ollama", version=running, tested=running.startswith(TESTED_VERSIONS)),
        )

    async def list_models(self, options: ConversationOptions) -> Sequence[ModelInfo]:
        config = config_of(OllamaConfig, options, self.name)
        async with open_provider(config.url(), "Ollama") as client:
            await version(client)
            return await listed(client)

    async def pull_model(self, options: ConversationOptions, name: str, progress: PullProgress) -> None:
        config = config_of(OllamaConfig, options, self.name)
        config.check_model(name)
        async with open_provider(config.url(), "Ollama") as client:
            await version(client)
            await pull(client, name, progress)

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        config = config_of(OllamaConfig, options, self.name)
        async with open_provider(config.url(), "Ollama") as client:
            yield ModelSession(OllamaModel(client, config), config, options, log)
