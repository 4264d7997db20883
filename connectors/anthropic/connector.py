"""The connector `anthropic`: the Messages API over plain HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from connectors._json import object_in, objects_in, plain_text_in
from connectors._provider_http import open_provider
from connectors.anthropic.config import OFFICIAL_WINDOW, RESTRICTED, AnthropicConfig, is_anthropics_own
from connectors.anthropic.model import AnthropicModel
from connectors.anthropic.protocol import WEB_SEARCH, check_tools
from harness.connector import ModelInfo, Session, SessionLog
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


class AnthropicConnector:
    """One HTTP client per conversation; nothing runs between turns."""

    name = "anthropic"
    variants: Mapping[str, Mapping[str, JsonValue]] = {}
    restricted_options = RESTRICTED

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        config = config_of(AnthropicConfig, options, self.name)
        url, _ = config.target()
        check_seeded(options.history)
        check_tools(options.tools)
        is_official = is_anthropics_own(url)
        return LlmCapabilities(
            supports_tools=True,
            supports_parallel_tool_calls=True,
            routable_request_kinds=[RequestKind.TOOL_CALL],
            parallel=Parallel.ALL,
            resume=Resume.EXACT,
            seed_history=SeedHistory.EXACT,
            denial=Denial.CONTINUES,
            result_order=ResultOrder.CALL,
            call_ids=CallIds.EXACT,
            tool_error_flag=ToolErrorFlag.KEPT,
            images_in_prompt=True,
            images_in_tool_results=True,
            structured_output=StructuredOutput.TURN,
            internal_tools=[WEB_SEARCH] if is_official else [],
            web_search=is_official and WEB_SEARCH in options.internal_tools,
            streaming=Streaming.TOKEN,
            turn_options=list(TURN_OPTIONS),
            reports_usage=True,
            inner=InnerVersion(name="Messages API" if is_official else url, tested=is_official),
        )

    async def list_models(self, options: ConversationOptions) -> Sequence[ModelInfo]:
        url, headers = config_of(AnthropicConfig, options, self.name).target()
        async with open_provider(url, "Anthropic", headers) as client:
            told = object_in(await client.lookup("GET", "/v1/models"))
        return [
            ModelInfo(plain_text_in(one.get("id")), about=plain_text_in(one.get("display_name")))
            for one in objects_in(told.get("data"))
        ]

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        config = config_of(AnthropicConfig, options, self.name)
        url, headers = config.target()
        is_official = is_anthropics_own(url)
        provider = "Anthropic" if is_official else f"the server at '{url}'"
        async with open_provider(url, provider, headers) as client:
            model = AnthropicModel(
                client,
                config,
                window=OFFICIAL_WINDOW if is_official else None,
                internal_tools=options.internal_tools,
            )
            yield ModelSession(model, config, options, log)
