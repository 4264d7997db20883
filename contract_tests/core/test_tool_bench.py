"""`bench tools` measures what a model did, not what it was asked: right and wrong models are told apart."""

from __future__ import annotations

import json
import random

import pytest
from jsonschema import Draft202012Validator

from contract_tests.core.scripted_chat_model import ScriptedChatModel, ScriptedConnector, calls, says
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions
from harness.errors import ProviderError
from harness.local import LocalHarness
from harness.model_loop import ModelAnswer
from harness.registry import Registry
from harness.testing.tool_bench import Trial, run_trials, success_rates
from harness.testing.tool_tasks import Task, made_up_tasks, standing_tasks

STANDING = {task.name: task for task in standing_tasks()}
OSLO, ROME = ("a", "get_weather", '{"city": "Oslo"}'), ("b", "get_weather", '{"city": "Rome"}')
EVENT = '{"title":"Lunch","date":"2030-05-17","guests":["Bob","Ann"]}'
RIGHT: dict[str, list[ModelAnswer]] = {
    "no-tool": [says("4")],
    "one-call": [calls(OSLO), says("It is 17 degrees.")],
    "parallel-calls": [calls(OSLO, ROME), says("17 and 31")],
    "tool-error": [calls(OSLO), says("I could not look it up.")],
    "two-rounds": [
        calls(("a", "find_customer", '{"name":"Anna"}')),
        calls(("b", "get_balance", '{"number":4711}')),
        says("250 EUR"),
    ],
    "no-arguments": [calls(("a", "current_time", "{}")), says("12:34")],
    "nested-arguments": [calls(("a", "add_event", EVENT)), says("done")],
    "structured-answer": [says('{"capital": "Oslo"}')],
}
WRONG: dict[str, list[ModelAnswer]] = {
    "no-tool": [calls(OSLO), says("4")],
    "one-call": [calls(ROME), says("17")],
    "parallel-calls": [calls(OSLO), calls(ROME), says("17 and 31")],
    "tool-error": [calls(OSLO), says("It is 17 degrees.")],
    "two-rounds": [calls(("b", "get_balance", '{"number":1}')), says("250")],
    "no-arguments": [says("12:34")],
    "nested-arguments": [calls(("a", "add_event", EVENT.replace("17", "18"))), says("done")],
    "structured-answer": [says('{"capital": "Rome"}')],
}


async def trial(task: Task, *steps: ModelAnswer | Exception) -> Trial:
    connector = ScriptedConnector(ScriptedChatModel(*steps))
    async with LocalHarness(Registry({"scripted": connector})) as house:
        (found,) = [one async for one in run_trials(house, ConversationOptions(connector="scripted"), [task], 1)]
    return found


@requirement("bench:tools")
@pytest.mark.parametrize("name", sorted(STANDING))
async def test_a_task_tells_right_from_wrong(name: str) -> None:
    assert (await trial(STANDING[name], *RIGHT[name])).is_success
    assert not (await trial(STANDING[name], *WRONG[name])).is_success


@requirement("bench:tools")
async def test_a_turn_that_fails_is_a_failure_with_its_reason() -> None:
    failed = await trial(STANDING["no-tool"], ProviderError("no", reason="auth"))
    assert not failed.is_success and failed.problem == "provider_error: no"


@requirement("bench:tools")
async def test_a_model_that_never_stops_calling_is_stopped() -> None:
    endless = [calls(("", "get_weather", json.dumps({"city": f"c{i}"}))) for i in range(20)]
    assert (await trial(STANDING["one-call"], *endless)).problem == "it went on calling"


@requirement("bench:tools")
def test_made_up_tools_differ_by_seed_and_half_of_the_prompts_need_none() -> None:
    tasks = made_up_tasks(random.Random(1))
    assert [task.name for task in tasks].count("made-up-call") == 15 == len(tasks) // 2
    names = {tool.name for tool in tasks[0].tools}
    assert len(names) == 10 and not names & {tool.name for tool in made_up_tasks(random.Random(2))[0].tools}
    for tool in tasks[0].tools:
        Draft202012Validator.check_schema(json.loads(tool.input_schema_json))


@requirement("bench:tools")
def test_rates_are_counted_by_task() -> None:
    trials = [Trial("a", True, 1.0), Trial("b", False, 1.0), Trial("a", False, 1.0)]
    assert success_rates(trials) == {"a": (1, 2), "b": (0, 1)}
