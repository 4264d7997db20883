"""Our connector `openai` before our own surface: the conformance scenarios through a foreign wire.

Host -> connector `openai` -> Responses API -> our surface -> connector `anthropic` or `fake`, and back.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from connectors.openai import OpenAiConnector
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from contract_tests.surfaces.openai_api.chat import open_place
from harness.contract import ConversationOptions, TextDelta, text_of
from harness.local import LocalHarness
from harness.registry import Registry
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.server import Server, serve
from harness.testing.matrix import Cell, read_matrix
from harness.testing.row import Prepared, Row
from harness.testing.rows import ROWS
from harness.testing.running import run_scenario
from harness.testing.scenario import WEATHER, Scenario
from harness.testing.scenarios import all_scenarios
from harness.testing.talk import Talk, result

SCENARIOS = all_scenarios()
MATRIX = read_matrix(ROOT / "docs" / "conformance.md")


def chosen_for(server: Server) -> dict[str, Any]:
    return {
        "base_url": f"{server.url}/openai/v1",
        "extra_headers": {"Authorization": f"Bearer {server.tokens[0].secret}"},
    }


@asynccontextmanager
async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
    """The peer is the surface; where its own model is, the variant says, as no remote caller may."""
    inner = ROWS["anthropic"]
    registry = inner.registry()
    connector: Any = registry.connector("anthropic")
    settings = CompatibleSettings(stream_grace_seconds=0)
    async with inner.prepare(scenario, directory) as prepared, LocalHarness(registry) as house:
        connector.variants = {"lab": json.loads(prepared.options.connector_options_json or "{}")}
        async with serve(house, connectors=["anthropic"], compatible=settings) as server:
            chosen = json.dumps({**chosen_for(server), "max_retries": 2})
            options = ConversationOptions(connector="openai", model="anthropic:lab/m", connector_options_json=chosen)
            yield Prepared(options, prepared.model)


ROW = Row(
    "openai on our surface",
    prepare,
    exempt={
        "request-withdrawn": "the loop is ours and takes no request back",
        "peer-killed": "there is no process to kill",
        "turn-model": "a model's name begins with a connector here",
        "rate-limited": "the inner loop waits and repeats, and this wire has no notices",
        "provider-down": "two loops repeat, and the script is for one",
        "cut-stream": "that the inner provider's line broke is an error of the server here",
        "unauthorized": "that the inner provider wants another key is an error of the server here",
    },
)
"""The connector at the bottom has one script for all conversations, so what is begun anew goes on with it."""


@requirement("responses:stacking")
@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name not in ROW.exempt])
async def test_the_scenarios_hold_through_the_responses_api(scenario: str, tmp_path: Path) -> None:
    outcome = await run_scenario(SCENARIOS[scenario], ROW, tmp_path)
    # as the published matrix has it for this connector before a model
    assert Cell(verdict=outcome.verdict, because=outcome.because) == MATRIX.cell("openai", scenario)


@requirement("responses:stacking")
async def test_calls_keep_their_ids_and_a_cancel_reaches_the_bottom() -> None:
    calls = [{"name": "get_weather", "id": one, "arguments": {"city": one}} for one in ("oslo", "rome")]
    turns = [
        [{"text": "I look."}, {"calls": calls}, {"text": "{{results.oslo}}, {{results.rome}}"}],
        [{"text": "one"}, {"hang": True}],
    ]
    async with (
        open_place(turns, compatible=CompatibleSettings(stream_grace_seconds=0)) as place,
        LocalHarness(Registry({"openai": OpenAiConnector()})) as upper,
    ):
        options = ConversationOptions(
            connector="openai",
            model="fake",
            tools=[WEATHER],
            connector_options_json=json.dumps(chosen_for(place.server)),
        )
        talk = Talk(upper, await upper.begin_conversation(options))
        turn_id = await talk.start("How is the weather?")
        requests = await talk.pending(turn_id, 2)
        untouched = place.count("answer")
        await talk.answer(turn_id, *(result(request, f"rain in {request.call_id}") for request in requests))
        done = await talk.finished(turn_id)
        hanging = await talk.start("And now?")
        await talk.until(hanging, lambda state, items: any(isinstance(item, TextDelta) for item in items))
        await upper.cancel_turn(talk.conversation_id, hanging)
        await place.peer.has_seen("interrupt")

    assert [request.call_id for request in requests] == ["oslo", "rome"]
    assert untouched == 0
    assert done.text.split("\n")[-1] == "rain in oslo, rain in rome"
    assert [text_of(answer.content) for answer in place.peer.answers] == ["rain in oslo", "rain in rome"]
    assert place.count("opened") == 1
