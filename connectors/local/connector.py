"""The connector `local`: an embedded model that needs no key, no server and no network."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager

from connectors.local.config import RESTRICTED, LocalConfig
from connectors.local.engine import Engines
from connectors.local.model import LocalModel
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
from harness.errors import InvalidArgument
from harness.model_loop import TURN_OPTIONS, ModelSession, check_seeded, config_of


class LocalConnector:
    """Loads each model file once and shares it between conversations."""

    name = "local"
    variants: Mapping[str, Mapping[str, JsonValue]] = {}
    restricted_options = RESTRICTED

    def __init__(self) -> None:
        self._engines = Engines()

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        config = config_of(LocalConfig, options, self.name)
        check_seeded(options.history)
        file = config.model_file()
        if options.model is not None and options.model not in (file.name, file.stem):
            raise InvalidArgument(
                f"the model '{options.model}' is not loaded here; name its file with the connector option 'gguf'"
            )
        return LlmCapabilities(
            supports_tools=True,
            routable_request_kinds=[RequestKind.TOOL_CALL],
            parallel=Parallel.NONE,
            resume=Resume.EXACT,
            seed_history=SeedHistory.EXACT,
            denial=Denial.CONTINUES,
            result_order=ResultOrder.CALL,
            call_ids=CallIds.EXACT,
            tool_error_flag=ToolErrorFlag.TEXT_ONLY,
            structured_output=StructuredOutput.TURN,
            streaming=Streaming.TOKEN,
            turn_options=[name for name in TURN_OPTIONS if name not in ("model", "effort")],
            reports_usage=True,
            inner=InnerVersion(name=file.name, tested=config.is_demonstration),
        )

    async def list_models(self, options: ConversationOptions) -> Sequence[ModelInfo]:
        config = config_of(LocalConfig, options, self.name)
        file = config.model_file()
        about = "the demonstration model" if config.is_demonstration else str(file)
        return [ModelInfo(file.stem, file.stat().st_size, config.num_ctx, ("tools",), about)]

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Session]:
        config = config_of(LocalConfig, options, self.name)
        yield ModelSession(LocalModel(self._engines, config), config, options, log)
