"""The JSON Schemas of `--output json` and `jsonl`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from connectors.fake import FakeConnector
from contract_tests.requirements import requirement
from harness import LocalHarness, Registry, run_to_completion
from harness.errors import PeerLost
from harness.orchestrator.broken_run import RunSoFar
from harness.orchestrator.lines import Line, last_line
from harness.orchestrator.schemas import DIRECTORY, current

SCRIPT = [
    [
        {"thinking": "hm"},
        {"calls": [{"name": "add", "arguments": {"a": 1}}, {"name": "add", "arguments": {"a": "x"}}]},
        {"approval": {"tool": "Bash", "arguments": {"command": "ls"}}},
        {"usage": {"input_tokens": 5}},
        {"message": "done"},
    ],
    [{"error": {"code": "provider_error", "detail": {"status": 529}}}],
]


def add(a: int) -> int:
    return a + 1


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((DIRECTORY / name).read_text(encoding="utf-8")))


@requirement("orchestrator:schemas:in-step")
@pytest.mark.parametrize("name", ["completion.json", "line.json"])
def test_checked_in_schema_is_that_of_the_models(name: str) -> None:
    checked_in = (DIRECTORY / name).read_text(encoding="utf-8")
    assert checked_in == current()[name], "run: python -m harness.orchestrator.schemas"
    Draft202012Validator.check_schema(json.loads(checked_in))


@requirement("orchestrator:schemas:in-step")
async def test_real_output_fits_the_schemas() -> None:
    lines: list[Line] = []
    async with LocalHarness(Registry({"fake": FakeConnector(SCRIPT)}), default_connector="fake") as house:
        done = await run_to_completion(house, "go", tools=[add], on_line=lines.append)
        await house.list_conversations()
    async with LocalHarness(Registry({"fake": FakeConnector(SCRIPT[1:])}), default_connector="fake") as house:
        failed = await run_to_completion(house, "go", tools=[add])
    completions, every_line = validator("completion.json"), validator("line.json")
    for completion in (done, failed):
        for full in (True, False):
            completions.validate(json.loads(completion.to_json(full=full)))
        lines.append(last_line(completion))
    written: list[dict[str, Any]] = [json.loads(line.to_json()) for line in lines]
    for line in written:
        every_line.validate(line)
    types = [line["type"] for line in written]
    assert types[0] == "started"
    assert set(types) == {"started", "item", "request", "response", "finished", "failed"}
    assert written[-1]["exit_code"] == 1


@requirement("orchestrator:schemas:in-step")
async def test_broken_run_tells_what_it_had_seen() -> None:
    run = RunSoFar()
    async with LocalHarness(Registry({"fake": FakeConnector(SCRIPT)}), default_connector="fake") as house:
        await run_to_completion(house, "go", tools=[add], on_line=run.see)
    broken = run.failed(PeerLost("the server is gone"))
    validator("completion.json").validate(json.loads(broken.to_json()))
    assert (broken.status, broken.exit_code, broken.turn_id) == ("failed", 1, "t1")
    assert broken.content == "done"
    assert [call.outcome for call in broken.calls] == ["ok", "failed", "refused"]
