"""The real CLI against a scripted model, driven through `ConversationalLLM`: what the live tests share."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from connectors.claude import ClaudeConnector, ClaudeOptions
from connectors.claude.installed import find_program
from harness.contract import (
    TERMINAL,
    ConversationOptions,
    HostRequest,
    HostResponse,
    Message,
    Notice,
    OutputItem,
    TextBlock,
    TextDelta,
    ToolDescriptor,
    TurnState,
    as_content,
    text_of,
)
from harness.errors import ConnectorUnavailable
from harness.local import LocalHarness
from harness.registry import Registry
from harness.scripted_model import ScriptedModel, open_scripted_model

MODEL = "claude-sonnet-4-6"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
newest_only = pytest.mark.skipif(
    "HARNESS_LIVE_CLAUDE" in os.environ, reason="what other versions do here is told by 'versions.py'"
)
WAIT_MS = 30_000
OTHER_CLI = os.environ.get("HARNESS_LIVE_CLAUDE")
"""Another CLI to run the live tests with, for example an older version."""
WEATHER = ToolDescriptor(
    name="get_weather",
    description="The weather in a city.",
    input_schema_json='{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
    read_only=True,
)
SAVE = ToolDescriptor(name="save", description="Keeps a note.")


def has_cli() -> bool:
    try:
        find_program(ClaudeOptions(), {})
    except ConnectorUnavailable:
        return False
    return True


needs_cli = [
    pytest.mark.live,
    pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'"),
]


both_routes = pytest.mark.parametrize("route", ["tunnel", "bridge"])
"""For tests whose outcome must not depend on how the host's tools reach the CLI."""


def result(request: HostRequest, text: str, *, is_error: bool = False) -> HostResponse:
    return HostResponse(request_id=request.request_id, content=[TextBlock(text=text)], is_error=is_error)


@dataclass
class Seen:
    """A finished turn."""

    state: TurnState
    items: list[OutputItem]
    requests: list[HostRequest]

    @property
    def text(self) -> str:
        """The answer: what was marked as final."""
        return "".join(text_of(i.content) for i in self.items if isinstance(i, Message) and i.phase == "final")

    @property
    def deltas(self) -> str:
        return "".join(item.text for item in self.items if isinstance(item, TextDelta))

    def notices(self, code: str) -> list[str]:
        return [item.text for item in self.items if isinstance(item, Notice) and item.code == code]


@dataclass
class Claude:
    """One conversation with the real CLI."""

    harness: LocalHarness
    model: ScriptedModel
    conversation_id: str

    async def start(self, message: str | Sequence[Any]) -> str:
        return await self.harness.submit_user_message(self.conversation_id, as_content(message))

    async def until(
        self, turn_id: str, reached: Callable[[TurnState, list[OutputItem]], object]
    ) -> tuple[TurnState, list[OutputItem]]:
        """Polls until the turn is so; gives that state and all items so far."""
        items: list[OutputItem] = []
        since = 0
        while True:
            state = await self.harness.poll_turn(self.conversation_id, turn_id, since, WAIT_MS)
            items += state.new_output_items
            since = state.sequence_no
            if reached(state, items) or (state.status in TERMINAL and not state.has_more):
                return state, items

    async def answer(self, turn_id: str, *responses: HostResponse) -> None:
        await self.harness.submit_responses(self.conversation_id, turn_id, responses)

    async def cancel(self, turn_id: str) -> None:
        await self.harness.cancel_turn(self.conversation_id, turn_id)

    async def finished(self, turn_id: str, answer: Callable[[HostRequest], HostResponse] | None = None) -> Seen:
        """Answers each request as it comes, until the turn is over."""
        requests: dict[str, HostRequest] = {}

        def not_seen(state: TurnState) -> list[HostRequest]:
            return [request for request in state.pending_requests if request.request_id not in requests]

        while True:
            state, items = await self.until(turn_id, lambda state, _: not_seen(state))
            new = not_seen(state)
            if not new:
                return Seen(state, items, list(requests.values()))
            requests |= {r.request_id: r for r in new}
            if answer is not None:
                await self.answer(turn_id, *(answer(request) for request in new))

    async def say(
        self, message: str | Sequence[Any] = "Go.", answer: Callable[[HostRequest], HostResponse] | None = None
    ) -> Seen:
        return await self.finished(await self.start(message), answer)

    def last_results(self, number: int) -> list[dict[str, Any]]:
        """The tool results at the end of the request with this number, from 1, as the model read them."""
        body: Any = self.model.requests[number - 1].body
        return [block for block in body["messages"][-1]["content"] if block["type"] == "tool_result"]


def claude_options(
    model: ScriptedModel,
    directory: Path,
    *,
    route: str = "tunnel",
    connector_options: dict[str, Any] | None = None,
    **options: Any,
) -> ConversationOptions:
    chosen = {
        "key": "sk-made-up",
        "base_url": model.url,
        "home": str(directory / "home"),
        "route": route,
        "env": {"CLAUDE_CODE_MAX_RETRIES": "2"},
        **(connector_options or {}),
    }
    if OTHER_CLI is not None:
        chosen.setdefault("command", OTHER_CLI)
    cwd = directory / "work"
    cwd.mkdir(exist_ok=True)
    return ConversationOptions(
        **{
            "connector": "claude",
            "model": MODEL,
            "tools": [WEATHER, SAVE],
            "cwd": str(cwd),
            "connector_options_json": json.dumps(chosen),
            **options,
        }
    )


@asynccontextmanager
async def open_claude(
    script: Sequence[dict[str, Any]],
    directory: Path,
    *,
    route: str = "tunnel",
    environ: dict[str, str] | None = None,
    connector_options: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncGenerator[Claude]:
    """A conversation whose model follows the script; the CLI gets a clean environment and a home of its own."""
    registry = Registry({"claude": ClaudeConnector(environ or ENVIRONMENT)})
    async with open_scripted_model(script) as model, LocalHarness(registry) as harness:
        chosen = claude_options(model, directory, route=route, connector_options=connector_options, **options)
        yield Claude(harness, model, await harness.begin_conversation(chosen))
