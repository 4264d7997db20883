"""Decides call or text, then forces a call to fit its schema, or streams the text."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from uuid import uuid4

from connectors.local.choice import likely_tools
from connectors.local.config import LocalConfig
from connectors.local.engine import Engine, Engines
from connectors.local.protocol import (
    NO_TOOL,
    Spoken,
    answer_request,
    arguments_request,
    choice_request,
    last_words,
    rounds_so_far,
)
from harness.contract.options import Effort, ToolMode
from harness.contract.output import StopReason
from harness.contract.tools import ToolDescriptor
from harness.contract.usage import UsageInfo, add_usage
from harness.errors import NotSupported
from harness.model_loop import CallMade, Heard, ModelAnswer, ModelRequest, Said
from harness.turn.events import notice


class LocalModel:
    """A `ChatModel` over an embedded model. At most one call per round."""

    def __init__(self, engines: Engines, config: LocalConfig) -> None:
        self._engines = engines
        self._config = config
        self._has_said_who = False

    @property
    def origin(self) -> str:
        return "local"

    @property
    def context_window(self) -> int | None:
        return self._config.num_ctx

    async def answer(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        if request.effort not in (None, Effort.NONE):
            raise NotSupported(f"the embedded model does not think: 'effort' '{request.effort}' is not possible")
        begun = time.monotonic()
        engine = await self._engines.engine(self._config.model_file(), self._config.num_ctx, self._config.slots)
        self._say_who(engine, time.monotonic() - begun, heard)
        tool, usage = await self._choose(engine, request)
        if tool is None:
            return await self._speak(engine, request, heard, usage)
        spoken = await engine.generate(arguments_request(request, tool))
        usage = add_usage(usage, spoken.usage)
        if spoken.finish == "length":
            return ModelAnswer(stop=StopReason.MAX_TOKENS, usage=usage)
        return ModelAnswer(calls=(CallMade(f"call_{uuid4().hex[:12]}", tool.name, spoken.text),), usage=usage)

    async def _choose(self, engine: Engine, request: ModelRequest) -> tuple[ToolDescriptor | None, UsageInfo | None]:
        """The tool to call, or none."""
        must_call = request.tool_mode in (ToolMode.ANY, ToolMode.ONE)
        limit = self._config.max_rounds
        if request.tool_mode == ToolMode.NONE or (limit is not None and rounds_so_far(request) >= limit):
            return None, None
        tools: Sequence[ToolDescriptor] = request.tools
        may_decline = not must_call
        if self._config.decision == "words":
            likely = likely_tools(last_words(request), tools)
            tools = [tool for tool in tools if tool.name in likely] or (tools if must_call else ())
            may_decline = False
        if not tools or (len(tools) == 1 and not may_decline):
            return (tools[0] if tools else None), None
        spoken = await engine.generate(choice_request(request, tools, may_decline=may_decline))
        chosen = _chosen(spoken)
        return next((tool for tool in tools if tool.name == chosen), None), spoken.usage

    async def _speak(self, engine: Engine, request: ModelRequest, heard: Heard, usage: UsageInfo | None) -> ModelAnswer:
        spoken = await engine.generate(answer_request(request), heard.text)
        return ModelAnswer(
            said=(Said(spoken.text),) if spoken.text else (),
            stop=StopReason.MAX_TOKENS if spoken.finish == "length" else StopReason.END_TURN,
            usage=add_usage(usage, spoken.usage),
        )

    def _say_who(self, engine: Engine, seconds: float, heard: Heard) -> None:
        """Once per conversation: nobody shall take the tiny one for more than it is."""
        if self._has_said_who:
            return
        self._has_said_who = True
        size = engine.file.stat().st_size / 1_000_000
        warning = "; a demonstration: expect wrong answers" if self._config.is_demonstration else ""
        text = f"embedded model '{engine.file.name}', {size:.0f} MB, ready in {seconds:.1f} s{warning}"
        heard.show(notice("peer_started", text))


def _chosen(spoken: Spoken) -> str:
    try:
        value: object = json.loads(spoken.text)["tool"]
    except (ValueError, KeyError, TypeError):
        return NO_TOOL
    return str(value)
