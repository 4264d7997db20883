"""`output_type`: a validated object, asked for natively or in words, with one round of repair."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel, Field

from connectors.fake import FakeConnector
from connectors.fake.session import Seen
from contract_tests.requirements import requirement
from harness import run_to_completion
from harness.contract import ConversationOptions, TextBlock
from harness.errors import InvalidArgument, PeerProtocolError
from harness.local import LocalHarness
from harness.orchestrator.completion import Completion
from harness.orchestrator.structured import OutputShape
from harness.registry import Registry


class Weather(BaseModel):
    city: str
    celsius: float = Field(ge=-90, le=60)
    note: str | None = None


OSLO = {"city": "Oslo", "celsius": 7}
OSLO_TEXT = json.dumps(OSLO)


class Told:
    """What reached the peer as messages."""

    def __init__(self) -> None:
        self.messages: list[str] = []

    def note(self, seen: Seen) -> None:
        if seen.what == "message":
            content: Any = seen.value
            self.messages.append("\n".join(block.text for block in content if isinstance(block, TextBlock)))


async def ask(
    *turns: list[dict[str, Any]], told: Told | None = None, output_type: Any = Weather, **capabilities: Any
) -> Completion:
    told = told or Told()
    connector = FakeConnector({"turns": turns, "capabilities": capabilities}, on_seen=told.note)
    async with LocalHarness(Registry({"fake": connector}), default_connector="fake") as house:
        return await run_to_completion(house, "Weather in Oslo?", output_type=output_type)


@requirement("orchestrator:structured-output:native")
@pytest.mark.parametrize("kind", ["turn", "conversation", "none"])
async def test_type_is_asked_for_in_the_strictest_way_there_is(kind: str) -> None:
    told = Told()
    end = {"end": "end_turn", "structured_output": OSLO}
    done = await ask([{"text": "here"}, end], told=told, structured_output=kind)
    assert done.structured_output == Weather(city="Oslo", celsius=7)
    assert done.to_dict()["structured_output"] == {"city": "Oslo", "celsius": 7.0, "note": None}
    [message] = told.messages
    assert (OutputShape(Weather).schema_json in message) == (kind == "none")
    assert message.startswith("Weather in Oslo?")


@requirement("orchestrator:structured-output:native")
@pytest.mark.parametrize(
    "text",
    [OSLO_TEXT, f"```json\n{OSLO_TEXT}\n```", f"Here you are:\n\n```\n{OSLO_TEXT}\n```\nBye.", f"It is {OSLO_TEXT}."],
    ids=["bare", "fenced", "fenced in prose", "in prose"],
)
async def test_json_is_found_in_the_text(text: str) -> None:
    done = await ask([{"message": text}], structured_output="none")
    assert done.structured_output == Weather(city="Oslo", celsius=7)


@requirement("orchestrator:structured-output:native")
@pytest.mark.parametrize(("output_type", "value"), [(list[int], [1, 2]), (int, 7), (Weather | None, None)])
async def test_type_that_is_no_object_travels_in_one(output_type: Any, value: Any) -> None:
    schema = json.loads(OutputShape(output_type).schema_json)
    assert schema["type"] == "object"
    done = await ask([{"message": json.dumps({"value": value})}], output_type=output_type)
    assert done.structured_output == value


async def test_dataclass_is_an_output_type_too() -> None:
    @dataclass
    class Spot:
        x: int

    done = await ask([{"message": '{"x": 3}'}], output_type=Spot)
    assert done.structured_output == Spot(3)


@requirement("orchestrator:structured-output:repair")
@pytest.mark.parametrize("kind", ["turn", "none"])
async def test_answer_that_does_not_fit_is_repaired_once(kind: str) -> None:
    told = Told()
    wrong = {"city": "Oslo", "celsius": 700}
    first = [{"usage": {"input_tokens": 3}}, {"message": json.dumps(wrong)}, {"end": "end_turn"}]
    second = [{"usage": {"input_tokens": 4}}, {"message": OSLO_TEXT}]
    done = await ask(first, second, told=told, structured_output=kind)
    assert done.structured_output == Weather(city="Oslo", celsius=7)
    assert (done.status, done.turn_id, done.error) == ("completed", "t2", None)
    assert done.usage is not None
    assert done.usage.input_tokens == 7
    assert "celsius" in told.messages[1]
    assert "less than or equal to 60" in told.messages[1]


@requirement("orchestrator:structured-output:repair")
async def test_answer_that_still_does_not_fit_fails_the_run() -> None:
    done = await ask([{"message": "no JSON"}], [{"message": "{}"}])
    assert (done.status, done.structured_output, done.exit_code) == ("failed", None, 1)
    assert done.content == "{}"
    with pytest.raises(PeerProtocolError, match="after one repair"):
        done.raise_for_error()


@requirement("orchestrator:structured-output:repair")
@pytest.mark.parametrize("stop_reason", ["refusal", "max_tokens"])
async def test_turn_that_did_not_end_well_is_not_repaired(stop_reason: str) -> None:
    told = Told()
    done = await ask([{"message": "I will not"}, {"end": stop_reason}], told=told)
    assert len(told.messages) == 1
    assert (done.stop_reason, done.structured_output, done.error) == (stop_reason, None, None)


def test_type_that_cannot_be_described_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="'Nothing' cannot be described"):

        class Nothing: ...

        OutputShape(Nothing)


async def test_schema_of_the_callers_options_is_kept() -> None:
    connector = FakeConnector([[{"text": "x"}]])
    async with LocalHarness(Registry({"fake": connector}), default_connector="fake") as house:
        options = ConversationOptions(output_schema_json='{"type":"object"}')
        done = await run_to_completion(house, "go", options=options)
    assert done.structured_output is None
