"""Records what a CLI and its connector say to each other, and plays it back without the CLI.

A recording is a file of JSON lines: a header with the peer's version and the canonical trace, then for each process its
start, every line of either side with its time, and its end.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from harness.contract.options import ConversationOptions
from harness.errors import NotSupported
from harness.testing import canary
from harness.testing.peers import replay_cli, tee_cli
from harness.testing.row import Prepared, Row
from harness.testing.running import Outcome, run_scenario
from harness.testing.scenario import Scenario
from harness.testing.scrubbing import Scrubber

MAX_BYTES = 400_000
"""A recording that is longer is not worth its place in the wheel."""

RACES = {
    "cut-stream": "whether the CLI passes on half an answer before it notices the cut is chance",
    "identical-calls": "whether the first call is answered before the second one is opened is chance",
    "parallel-calls": "whether the first call is answered before the second one is opened is chance",
}
"""Scenarios whose trace differs between two runs of the same CLI: compared in replays only."""


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
    """Plays the scenario on the real peer, with a tee in its pipes.

    Raises:
        NotSupported: the row has no program whose pipes could be watched.
        Divergence: the peer does not keep the contract: nothing to learn from.
    """
    connector, _ = row.registry().resolve(ConversationOptions(connector=row.name))
    subject = await canary.subject_of(row, connector, connector_options)
    if subject is None:
        raise NotSupported(f"'{row.name}' starts no program: there is nothing to record")
    log = directory / "traffic.jsonl"
    tee = _script(directory / "tee", [sys.executable, "-I", tee_cli.__file__, str(log), subject.program])
    outcome = await run_scenario(scenario, row, directory, {**connector_options, "command": str(tee)})
    scrubber = Scrubber(known_values(directory))
    raw = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    traffic = [_scrubbed(json.loads(line), scrubber) for line in raw]
    version = outcome.peer.rpartition(" ")[2]
    header = {"connector": row.name, "scenario": scenario.name, "peer": outcome.peer, "version": version}
    lines = [json.dumps({**header, "trace": list(outcome.trace)}, ensure_ascii=False), *traffic]
    return Recording(scenario.name, outcome.peer, list(outcome.trace), lines)


def _scrubbed(entry: dict[str, Any], scrubber: Scrubber) -> str:
    """A record with its texts scrubbed; inside them JSON stays JSON."""
    if "line" in entry:
        entry["line"] = scrubber.scrub(entry["line"])
    if "file" in entry:
        entry |= {"file": scrubber.scrub(entry["file"]), "text": scrubber.scrub(entry["text"])}
    if "start" in entry:
        entry["start"] = [scrubber.scrub(argument) for argument in entry["start"]]
    return json.dumps(entry, ensure_ascii=False)


def known_values(directory: Path) -> dict[str, str]:
    """Paths of this machine and of this run, by their names."""
    package = str(Path(tee_cli.__file__).parent)
    as_name = re.sub(r"[^A-Za-z0-9]", "-", str(directory))
    return {
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


async def replay(scenario: Scenario, row: Row, file: Path, directory: Path) -> Outcome:
    """Plays the scenario against the recording: real pipes, no CLI, no model.

    Raises:
        Divergence: the connector said something else than when this was recorded, or made something else of it.
    """
    return await run_scenario(scenario, replayed(row, file), directory)


def replayed(row: Row, file: Path) -> Row:
    """The row with the recording in the place of its program."""

    @asynccontextmanager
    async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
        state = directory / "processes"
        stand_in = _script(directory / "stand-in", [sys.executable, "-I", replay_cli.__file__, str(file), str(state)])
        async with row.prepare(scenario, directory) as prepared:
            options = json.loads(prepared.options.connector_options_json or "{}")
            changed = {"connector_options_json": json.dumps({**options, "command": str(stand_in)})}
            # the model is there for the options only: nobody asks it
            yield Prepared(prepared.options.model_copy(update=changed))

    return replace(row, prepare=prepare)


def _script(path: Path, command: list[str]) -> Path:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    path.chmod(0o700)
    return path
