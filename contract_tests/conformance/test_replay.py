"""Recordings played back over real pipes and sockets, with no peer: connector and host say and see the same.

A snapshot of each trace stands beside, so that a diff of it reads well: `pytest --snapshot-update` writes it anew.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.testing.drift import changes
from harness.testing.matrix import read_matrix
from harness.testing.recording import RACES, TOO_LARGE, has_two_channels, read_recording, recordings_of, replay
from harness.testing.rows import ROWS
from harness.testing.running import Verdict
from harness.testing.scenarios import all_scenarios

SCENARIOS = all_scenarios()
RECORDINGS = {(row, scenario): file for row in ROWS for scenario, file in recordings_of(row).items()}
OTHER_VERSIONS = {
    (json.loads(file.read_text(encoding="utf-8").partition("\n")[0])["connector"], file.parent.name, file.stem): file
    for file in sorted((ROOT / "fixtures").glob("*/*/*.jsonl"))
}
"""Those of versions that do not ship with the package."""
RECORDED = sorted({row for row, _ in RECORDINGS})


@requirement("conformance:replay")
@pytest.mark.parametrize(("row", "scenario"), [*RECORDINGS])
async def test_a_recording_gives_the_trace_it_was_made_with(
    row: str, scenario: str, tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    file = RECORDINGS[row, scenario]
    outcome = await replay(SCENARIOS[scenario], ROWS[row], file, tmp_path)
    again = f"harness record --connector {row} --scenario {scenario} --to {file.parent}"
    assert changes(read_recording(file).trace, outcome.trace) == [], f"if this is meant, type: {again}"
    assert readable(outcome.trace) == snapshot


@requirement("conformance:replay")
@pytest.mark.parametrize(("row", "version", "scenario"), [*OTHER_VERSIONS])
async def test_other_versions_of_a_peer_are_played_too(row: str, version: str, scenario: str, tmp_path: Path) -> None:
    recording = read_recording(file := OTHER_VERSIONS[row, version, scenario])
    outcome = await replay(SCENARIOS[scenario], ROWS[row], file, tmp_path)
    assert (outcome.peer.rpartition(" ")[2], recording.scenario) == (version, scenario)
    assert changes(recording.trace, outcome.trace) == []


def readable(trace: Sequence[str]) -> str:
    """A line for each line of the trace: what it is, then what it says, without JSON's quotes in quotes."""
    return "\n".join(f"  {_told(json.loads(line))}" if line.startswith("{") else line for line in trace)


def _told(item: dict[str, Any]) -> str:
    what, asked = item.pop("kind"), item.pop("request", {})
    fields = {**item, **asked}
    return f"{what}: {', '.join(f'{name} {_plain(value)}' for name, value in fields.items() if value != [])}"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@requirement("conformance:replay")
@pytest.mark.parametrize("row", RECORDED)
def test_what_is_not_recorded_has_a_reason(row: str) -> None:
    matrix = read_matrix(ROOT / "docs" / "conformance.md")
    cells = {name: matrix.cell(row, name) for name in SCENARIOS}
    plays = {name for name, cell in cells.items() if cell is not None and cell.verdict == Verdict.SUPPORTED}
    files = recordings_of(row)
    said = [json.loads(line) for line in read_recording(files["no-tool"]).lines[1:]]
    reasons = {*TOO_LARGE, *(RACES if has_two_channels(said) else ())}
    assert plays - set(files) == reasons & plays


@requirement("conformance:replay")
def test_recordings_are_small_and_tell_nothing_of_the_machine_they_were_made_on() -> None:
    assert sum(file.stat().st_size for file in RECORDINGS.values()) < 7_500_000
    files = [*RECORDINGS.values(), *OTHER_VERSIONS.values()]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    for file, text in texts.items():
        assert re.findall(r"(?<![\w>])/(?:root|home|work)/|sk-made-up|Bearer (?!<)", text) == [], file
