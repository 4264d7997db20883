"""The connector `openai`: OpenAI's APIs, and every server that speaks one of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from urllib.parse import urlsplit

import anyio

from connectors._json import object_in, objects_in, plain_text_in
from connectors._provider_http import open_provider
from connectors.openai.config import RESTRICTED, OpenAiConfig, Target
from connectors.openai.model import OpenAiModel
from connectors.openai.responses_protocol import WEB_SEARCH
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
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, NotSupported
from harness.model_loop import TURN_OPTIONS, ModelSession, check_seeded, config_of

CONNECT_SECONDS = 10.0


class OpenAiConnector:
    """One HTTP client per conversation; nothing runs between turns."""

    name = "openai"
    variants: Mapping[str, Mapping[str, JsonValue]] = {"responses": {"api": "responses"}, "chat": {"api": "chat"}}
    restricted_options = RESTRICTED

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        config, target = self._settings(options)
        check_seeded(options.history)
        is_full = config.api == "responses" and target.quirks == "openai"
        kinds = [RequestKind.TOOL_CALL, *([RequestKind.APPROVAL] if is_full else [])]
        return LlmCapabilities(
            supports_tools=True,
            supports_parallel_tool_calls=True,
            routable_request_kinds=list(kinds),
            delegatable_tool_sources=[ToolSourceKind.MCP_HTTP, ToolSourceKind.PROVIDER_MCP] if is_full else [],
            reports_delegated_calls=is_full,
            parallel=Parallel.ALL,
            resume=Resume.EXACT,
            seed_history=SeedHistory.EXACT,
            denial=Denial.CONTINUES,
            result_order=ResultOrder.CALL,
            call_ids=CallIds.EXACT,
            tool_error_flag=ToolErrorFlag.TEXT_ONLY,
            images_in_prompt=config.images,
            images_in_tool_results=config.images,
            structured_output=StructuredOutput.TURN,
            internal_tools=[WEB_SEARCH] if is_full else [],
            web_search=is_full and WEB_SEARCH in options.internal_tools,
            streaming=Streaming.TOKEN,
            turn_options=list(TURN_OPTIONS),
            reports_usage=True,
            inner=InnerVersion(name=f"{target.quirks} {config.api}", tested=True),
        )

    async def list_models(self, options: ConversationOptions) -> Sequence[ModelInfo]:
        _, target = self._settings(options)
        headers = {"authorization": f"Bearer {target.key}"}
        async with open_provider(target.url, f"the server at '{target.url}'", headers) as client:
            told = object_in(await client.lookup("GET", "/models"))
        return [
            ModelInfo(plain_text_in(one.get("id")), about=plain_text_in(one.get("owned_by")))
            for one in objects_in(told.get("data"))
        ]

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        config, target = self._settings(options)
        for source in delegation.tool_sources:
            _check_reachable(source)
        # over a second of imports, the first time: not on the loop
        openai = await anyio.to_thread.run_sync(import_module, "openai")
        httpx2 = import_module("httpx2")
        timeout = httpx2.Timeout(None, connect=CONNECT_SECONDS)  # silence is the turn's affair
        async with httpx2.AsyncClient(timeout=timeout, trust_env=not target.is_loopback) as http:
            client = openai.AsyncOpenAI(
                base_url=target.url,
                api_key=target.key,
                http_client=http,
                max_retries=0,
                timeout=timeout,
                default_headers=config.extra_headers,
            )
            model = OpenAiModel(client, config, target, internal_tools=options.internal_tools, delegation=delegation)
            yield ModelSession(model, config, options, log)

    def _settings(self, options: ConversationOptions) -> tuple[OpenAiConfig, Target]:
        if find_spec("openai") is None:
            raise ConnectorUnavailable(
                "the package 'openai' is not installed; type: pip install 'level2-harness[openai]'"
            )
        config = config_of(OpenAiConfig, options, self.name)
        return config, config.target()


def _check_reachable(source: ToolSourceDescriptor) -> None:
    """The provider connects from its own machines: what only this network reaches cannot be delegated."""
    host = urlsplit(source.url or "").hostname or ""
    try:
        is_private = not ip_address(host).is_global
    except ValueError:
        is_private = host == "localhost" or host.endswith(".local") or "." not in host
    if is_private:
        raise NotSupported(f"the tool source '{source.name}' at '{source.url}' cannot be reached from OpenAI")
