"""A conversation with a connector for a bare model, whose provider is the scripted model on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from contract_tests.core.scripted_chat_model import Talk
from harness.connector import Connector
from harness.contract import ConversationOptions, Message, ToolDescriptor, TurnState, text_of
from harness.local import LocalHarness
from harness.registry import Registry
from harness.scripted_model import ScriptedModel, open_scripted_model

WEATHER = ToolDescriptor(
    name="weather",
    description="The weather of a city",
    input_schema_json='{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
)
CLOCK = ToolDescriptor(name="clock")
OSLO = {"name": "weather", "arguments_json": '{"city": "Oslo", "at": 1.10}', "id": "call_oslo"}
ROME = {"name": "weather", "arguments_json": '{"city":"Rome"}', "id": "call_rome"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@asynccontextmanager
async def model_talk(
    connector: Connector,
    *script: Mapping[str, Any],
    url_option: str = "base_url",
    path: str = "",
    connector_options: Mapping[str, Any] | None = None,
    tools: Sequence[ToolDescriptor] = (WEATHER, CLOCK),
    **options: Any,
) -> AsyncGenerator[tuple[Talk, ScriptedModel]]:
    async with open_scripted_model(list(script)) as model:
        asked = {url_option: f"{model.url}{path}", **(connector_options or {})}
        async with LocalHarness(Registry({connector.name: connector})) as house:
            wanted = ConversationOptions.model_validate(
                {
                    "connector": connector.name,
                    "model": "m",
                    "tools": list(tools),
                    "connector_options_json": json.dumps(asked),
                    **options,
                }
            )
            yield Talk(house, await house.begin_conversation(wanted)), model


def final_text(state: TurnState) -> str:
    """The text of a turn."""
    messages = [item for item in state.new_output_items if isinstance(item, Message) and item.phase == "final"]
    return "\n".join(text_of(item.content) for item in messages)
