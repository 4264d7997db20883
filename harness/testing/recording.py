"""Records what a peer and its connector say to each other, and plays it back without the peer.

A recording is a file of JSON lines: a header with the peer's version and the canonical trace, then what was said, each
with its time. Of a CLI: for each process its start, every line of either side, and its end. Of a provider: for each
exchange our request, status and headers of the answer, every chunk of it as it was cut, and how it ended.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness.errors import NotSupported
from harness.testing import channel_http, channel_stdio
from harness.testing.checks import Divergence
from harness.testing.drift import changes
from harness.testing.peers import tee_cli
from harness.testing.peers.exchanges import KEY
from harness.testing.row import MADE_UP_KEY, Row
from harness.testing.running import Outcome, Verdict, run_scenario
from harness.testing.scenario import Scenario
from harness.testing.scrubbing import Scrubber

MAX_BYTES = 400_000
"""A recording that is longer is not worth its place in the wheel."""
TOO_LARGE = {
    "large-arguments": "a megabyte of arguments is played live only",
    "longest-result": "the longest results are played live only",
}
"""Scenarios that are not recorded, and why."""

RACES = {
    "budget": "whether the host answers or the limit is noticed first is chance",
    "max-turns": "that a limit is near is told only where the figures come in a read before the end",
    "cut-stream": "whether the CLI passes on half an answer before it notices the cut is chance",
    "identical-calls": "whether the first call is answered before the second one is opened is chance",
    "parallel-calls": "whether the first call is answered before the second one is opened is chance",
}
"""Scenarios whose trace differs between two runs of the same CLI: compared in replays only."""


_KEYS = re.compile("KEY|TOKEN|SECRET")
_HALF = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Recording:
    """One scenario as one version of a peer played it; `lines` are those of the file."""

    scenario: str
    peer: str
    trace: list[str]
    lines: list[str]

    @property
    def size(self) -> int:
        return sum(len(line) + 1 for line in self.lines)


async def record(scenario: Scenario, row: Row, directory: Path, connector_options: Mapping[str, Any]) -> Recording:
    """Plays the scenario on the real peer, with a tee between.

    Raises:
        NotSupported: nothing could be watched: the row has neither program nor provider, or refuses the scenario.
        Divergence: the peer does not keep the contract: nothing to learn from.
    """
    if scenario.name in TOO_LARGE:
        raise NotSupported(f"'{scenario.name}' is not recorded: {TOO_LARGE[scenario.name]}")
    channel = channel_stdio if row.is_live else channel_http
    outcome, said, values = await channel.watch(scenario, row, directory, connector_options)
    if outcome.verdict != Verdict.SUPPORTED:
        raise NotSupported(f"'{scenario.name}' is not recorded: {outcome.verdict}: {outcome.because}")
    if scenario.name in RACES and has_two_channels(said):
        raise NotSupported(
            f"'{scenario.name}' is not recorded: {RACES[scenario.name]}, and of two channels even replayed"
        )
    scrubber = Scrubber(known_values(directory) | values)
    traffic = [_scrubbed(one, scrubber) for one in said]
    version = outcome.peer.rpartition(" ")[2]
    header = {"connector": row.name, "scenario": scenario.name, "peer": outcome.peer, "version": version}
    lines = [_as_line({**header, "trace": list(outcome.trace)}), *traffic]
    return Recording(scenario.name, outcome.peer, list(outcome.trace), lines)


def has_two_channels(said: Iterable[Mapping[str, Any]]) -> bool:
    """Then what comes first is chance in a replay too."""
    return any("channel" in one for one in said)


async def check(recording: Recording, scenario: Scenario, row: Row, directory: Path) -> None:
    """Plays a recording that was just made.

    Raises:
        Divergence: something in it is chance: it does not give its own trace.
    """
    file = directory / "recording.jsonl"
    file.write_text("\n".join(recording.lines) + "\n", encoding="utf-8")
    found = (await replay(scenario, row, file, directory)).trace
    told = changes(recording.trace, found)
    if told:
        raise Divergence(f"'{scenario.name}' does not repeat itself, record it again: {told[0]}")


def _scrubbed(entry: dict[str, Any], scrubber: Scrubber) -> str:
    """A record with its texts scrubbed; inside them JSON stays JSON."""
    for name in ("line", "file", "text", "chunk", "config"):
        if name in entry:
            entry[name] = scrubber.scrub(entry[name])
    if "start" in entry:
        entry["start"] = [scrubber.scrub(argument) for argument in entry["start"]]
    if "headers" in entry:
        entry["headers"] = {name: scrubber.scrub(value) for name, value in entry["headers"].items()}
    return _as_line(entry)


def _as_line(value: Mapping[str, Any]) -> str:
    """Readable, but for half characters, which no file can hold."""
    line = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if _HALF.search(line) else line


def known_values(directory: Path) -> dict[str, str]:
    """Paths of this machine and of this run, and the keys of its environment, by their names."""
    package = str(Path(tee_cli.__file__).parent)
    as_name = re.sub(r"[^A-Za-z0-9]", "-", str(directory))
    keys = [value for name, value in os.environ.items() if _KEYS.search(name) and len(value) > 7]
    return {
        **dict.fromkeys([*keys, MADE_UP_KEY], KEY),
        f"{Path.home()}/": "<home>/",
        str(directory): "<directory>",
        as_name: "<directory-name>",
        sys.executable: "<python>",
        package: "<harness>",
    }


def recordings_of(row: str) -> dict[str, Path]:
    """Scenario -> the recording that ships with this package."""
    directory = Path(str(files("harness.testing"))) / "recordings" / row.replace(":", "-")
    return {file.stem: file for file in sorted(directory.glob("*.jsonl"))}


def read_recording(file: Path) -> Recording:
    lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    header = json.loads(lines[0])
    return Recording(header["scenario"], header["peer"], header["trace"], lines)


async def replay(scenario: Scenario, row: Row, file: Path, directory: Path, cuts: Sequence[int] = ()) -> Outcome:
    """Plays the scenario against the recording: real pipes or sockets, no peer, no model.

    Raises:
        Divergence: the connector said something else than when this was recorded, or made something else of it.
    """
    return await run_scenario(scenario, replayed(row, file, cuts), directory)


def replayed(row: Row, file: Path, cuts: Sequence[int] = ()) -> Row:
    """The row with the recording in the place of its peer; `cuts` are the sizes of the pieces in which it speaks."""
    lines = read_recording(file).lines
    if "start" not in json.loads(lines[1]):
        return channel_http.stood_in(row, lines, cuts)
    return channel_stdio.stood_in(row, file, cuts)
