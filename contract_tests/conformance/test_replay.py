"""Recordings played back over real pipes, with no CLI: the connector says the same and the host sees the same."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract_tests.connectors.claude.cli import has_cli
from contract_tests.requirements import requirement
from harness.testing.checks import Divergence
from harness.testing.drift import changes
from harness.testing.peers.replay_cli import Difference, Names
from harness.testing.recording import Recording, read_recording, record, recordings_of, replay
from harness.testing.rows import ROWS
from harness.testing.scenarios import all_scenarios

SCENARIOS = all_scenarios()
RECORDINGS = {(row, scenario): file for row in ROWS for scenario, file in recordings_of(row).items()}
NAME = "<"
"""An id stands as `<id 7>`: it is bound to whatever comes, and so are paths."""


@requirement("conformance:replay")
@pytest.mark.parametrize(("row", "scenario"), [*RECORDINGS])
async def test_a_recording_gives_the_trace_it_was_made_with(row: str, scenario: str, tmp_path: Path) -> None:
    file = RECORDINGS[row, scenario]
    outcome = await replay(SCENARIOS[scenario], ROWS[row], file, tmp_path)
    again = f"harness record --connector {row} --scenario {scenario} --to {file.parent}"
    assert changes(read_recording(file).trace, outcome.trace) == [], f"if this is meant, type: {again}"


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field of a message, those of objects and lists too."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from leaves(one, (*path, key))


def holder(message: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        message = message[key]
    return message


def mutants(message: Any) -> Iterator[tuple[str, Any]]:
    """The message with each field changed, dropped and, where it may be, duplicated once."""
    for path in leaves(message):
        value = holder(message, path)[path[-1]]
        is_bound = isinstance(value, str) and NAME in value
        if not is_bound and not isinstance(value, dict | list):
            changed = copy.deepcopy(message)
            holder(changed, path)[path[-1]] = [value]
            yield f"{path} changed", changed
        dropped = copy.deepcopy(message)
        del holder(dropped, path)[path[-1]]
        yield f"{path} dropped", dropped
        doubled = copy.deepcopy(message)
        place = holder(doubled, path)
        if isinstance(place, list):
            place.append(copy.deepcopy(value))
        else:
            place[f"{path[-1]} again"] = value
        yield f"{path} duplicated", doubled


@requirement("conformance:replay:strict")
def test_every_field_of_ours_that_changes_is_noticed(record_property: Any) -> None:
    count = 0
    survivors: list[str] = []
    for (_, scenario), file in RECORDINGS.items():
        for line in read_recording(file).lines[1:]:
            entry = json.loads(line)
            if entry.get("from") != "host":
                continue
            message = json.loads(entry["line"])
            assert Names({}).match(message, message) is not None
            for what, mutant in mutants(message):
                count += 1
                try:
                    Names({}).match(message, mutant)
                except Difference:
                    continue
                survivors.append(f"{scenario}: {what}")
    record_property("mutants", count)
    assert count > 1000
    assert survivors == []


@requirement("conformance:replay:strict")
async def test_a_connector_that_says_something_else_diverges_at_that_place(tmp_path: Path) -> None:
    recorded = RECORDINGS["claude", "one-call"].read_text(encoding="utf-8")
    changed = tmp_path / "changed.jsonl"
    changed.write_text(recorded.replace('12 °C\\"}]}}}', '13 °C\\"}]}}}'), encoding="utf-8")
    assert changed.read_text(encoding="utf-8") != recorded
    with pytest.raises(Divergence):
        await replay(SCENARIOS["one-call"], ROWS["claude"], changed, tmp_path)


@requirement("conformance:record:same")
@pytest.mark.all_live
@pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'")
async def test_recording_twice_gives_the_same_trace_and_kinds_of_lines(tmp_path: Path) -> None:
    recordings: list[Recording] = []
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        recordings.append(await record(SCENARIOS["one-call"], ROWS["claude"], tmp_path / number, {}))
    first, second = recordings
    assert changes(first.trace, second.trace) == []
    assert kinds_of(first) == kinds_of(second)


def kinds_of(recording: Recording) -> list[str]:
    """What was said, by sender and type; chunks of deltas may be cut elsewhere."""
    kinds: list[str] = []
    for line in recording.lines[1:]:
        entry = json.loads(line)
        message = json.loads(entry["line"]) if "line" in entry else {}
        kind = f"{entry.get('from', 'process')} {message.get('type', '')}"
        if message.get("type") != "stream_event":
            kinds.append(kind)
    return sorted(kinds)


@requirement("conformance:drift")
def test_what_changed_is_told_in_words() -> None:
    usual = ['{"kind": "notice", "code": "a", "text": "x"}', '{"kind": "turn_ended", "status": "completed"}']
    assert changes(usual, usual) == []
    assert changes(usual, usual[1:]) == ['no longer sends notice {"code": "a", "text": "x"}']
    assert changes(usual[1:], usual) == ['now sends notice {"code": "a", "text": "x"}']
    failed = [usual[0], '{"kind": "turn_ended", "status": "failed"}']
    assert changes(usual, failed) == ['turn ended: status was "completed", is "failed"']
