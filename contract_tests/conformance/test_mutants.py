"""The suite's own test: what goes wrong in one place of a connector is noticed by a scenario or its trace."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from connectors.anthropic import AnthropicConnector
from connectors.claude import ClaudeConnector
from connectors.fake import FakeConnector
from contract_tests.requirements import requirement
from harness.connector import Connector
from harness.registry import Registry
from harness.testing.mutation import MutatedConnector, Passage, Play, Survivor, try_mutants
from harness.testing.recording import recordings_of, replayed
from harness.testing.row import Row
from harness.testing.rows import FAKE, ROWS
from harness.testing.running import run_scenario
from harness.testing.scenario import Scenario
from harness.testing.scenarios import all_scenarios

SCENARIOS = all_scenarios()
QUICK = ("no-tool", "one-call", "parallel-calls", "approval-denied", "question-answered", "unauthorized")
ALLOWED = {
    ("double", "RequestRaised"): "a request that is raised again while it is open is the same request",
    ("swap", "RequestRaised"): "requests of one round are sorted by their order",
    ("double", "RequestWithdrawn"): "what is withdrawn is withdrawn",
    ("double", "TurnEnded"): "after the end a turn hears nothing",
    ("delay", "TurnEnded"): "the end is the last event anyway",
    ("swap", "TurnEnded"): "the end is the last event anyway",
    ("double", "TurnFailed"): "after the end a turn hears nothing",
    ("delay", "TurnFailed"): "the end is the last event anyway",
    ("swap", "TurnFailed"): "the end is the last event anyway",
    ("swap", "internal_tool_started"): "only usage follows it",
    (
        "swap",
        "message",
    ): "only usage follows it, or what traces put behind it: a message may come later than its deltas",
    ("swap", "text_delta"): "traces join the deltas of an item and put its message behind them",
    ("swap", "internal_tool_finished"): "only usage follows it",
    ("swap", "notice"): "the next one is the same",
    ("drop", "UsageReported"): "usage is cumulative: the next report has it, and traces leave it out",
    ("double", "UsageReported"): "usage is cumulative",
    ("delay", "UsageReported"): "usage is cumulative, and traces leave it out",
    ("swap", "UsageReported"): "traces leave usage out",
    ("double", "answer"): "a session that has passed an answer on no longer knows the request",
    ("corrupt", "UsageReported"): "traces leave usage out; 'usage-once' looks at it",
}
"""Mutants nobody needs to notice, and why."""


ANSWER_UNREAD = {
    "image-in-result": "the model says what it sees; behind a real peer the model's own request is looked at",
    "longest-result": "too long to be said again; behind a real peer the model's own request is looked at",
    "max-turns": "the turn ends before the model reads it",
    "question-declined": "each peer says in its own words that nobody answered",
}
"""Scenarios whose scripted model does not repeat the answer."""
# after a cancel the harness ends the turn itself, and it is cancelled whatever its peer calls it
CANCELLED = ("cancel-approval", "cancel-blocked", "cancel-streaming")


def play_in(directory: Path) -> Play:
    async def play(scenario: Scenario, passage: Passage, seconds: float) -> Sequence[str]:
        row = mutated(FAKE, "fake", FakeConnector(), passage)
        return (await run_scenario(replace(scenario, seconds=seconds), row, directory)).trace

    return play


def replay_of(row: str, connector: Connector) -> Play:
    """Plays the recording that ships of this row, with a connector that is spoilt in one place."""
    files = recordings_of(row)

    async def play(scenario: Scenario, passage: Passage, seconds: float) -> Sequence[str]:
        spoilt = mutated(replayed(ROWS[row], files[scenario.name]), row, connector, passage)
        with TemporaryDirectory(prefix="harness-replay-") as directory:
            return (await run_scenario(replace(scenario, seconds=seconds), spoilt, Path(directory))).trace

    return play


def mutated(row: Row, name: str, connector: Connector, passage: Passage) -> Row:
    return replace(row, registry=lambda: Registry({name: MutatedConnector(connector, passage)}))


def unexplained(survivors: Sequence[Survivor]) -> list[str]:
    return sorted(str(one) for one in survivors if not is_explained(one))


def is_explained(one: Survivor) -> bool:
    if one.kind == "answer" and one.mutation.change == "corrupt":
        return one.scenario in ANSWER_UNREAD
    if one.kind == "TurnEnded" and one.mutation.change in ("drop", "corrupt"):
        return one.scenario in CANCELLED
    if one.kind == "RequestWithdrawn" and one.scenario in CANCELLED:
        return True  # the cancel has answered it already
    return (one.mutation.change, one.kind) in ALLOWED


@requirement("conformance:mutants")
async def test_mutants_of_a_connector_are_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    tally = await try_mutants([SCENARIOS[name] for name in QUICK], play_in(tmp_path), seconds=1.0)
    assert tally.by_scenario > 50
    assert unexplained(tally.survivors) == []


@requirement("conformance:mutants")
@pytest.mark.all_live
async def test_all_mutants_of_all_scenarios_are_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    tally = await try_mutants(SCENARIOS.values(), play_in(tmp_path), seconds=5.0)
    print(f"{tally.by_scenario} noticed by scenarios, {tally.by_trace} by traces, {len(tally.survivors)} not at all")
    assert unexplained(tally.survivors) == []


@requirement("conformance:mutants")
@pytest.mark.parametrize(
    ("row", "connector", "scenarios"),
    [
        ("anthropic", AnthropicConnector(), ("no-tool", "one-call", "unauthorized")),
        ("claude", ClaudeConnector(), ("one-call",)),
    ],
)
async def test_mutants_of_a_connector_before_a_recording_are_noticed(
    row: str, connector: Connector, scenarios: Sequence[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    played = [SCENARIOS[name] for name in scenarios]
    tally = await try_mutants(played, replay_of(row, connector), seconds=5.0, at_once=4)
    assert tally.by_scenario + tally.by_trace > 25
    assert unexplained(tally.survivors) == []


@requirement("conformance:mutants")
@pytest.mark.all_live
@pytest.mark.parametrize(("row", "connector"), [("anthropic", AnthropicConnector()), ("claude", ClaudeConnector())])
async def test_all_mutants_of_all_recordings_are_noticed(
    row: str, connector: Connector, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    played = [SCENARIOS[name] for name in recordings_of(row)]
    tally = await try_mutants(played, replay_of(row, connector), seconds=10.0, at_once=4)
    print(f"{row}: {tally.by_scenario} noticed by scenarios, {tally.by_trace} by traces, {len(tally.survivors)} not")
    assert unexplained(tally.survivors) == []
