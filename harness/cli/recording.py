"""What `harness record` does: plays scenarios with a tee in the pipes and keeps what went through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import typer

from harness.cli.failures import complain
from harness.cli.logs import set_up_logs
from harness.cli.values import pairs
from harness.cli.verifying import chosen
from harness.errors import InvalidArgument, NotSupported
from harness.testing.checks import Divergence
from harness.testing.recording import MAX_BYTES, Recording, check, record
from harness.testing.row import Row
from harness.testing.rows import ROWS
from harness.testing.scenario import Scenario
from harness.testing.scenarios import all_scenarios


def run_record(
    connector: str,
    scenarios: Sequence[str],
    options: Sequence[str],
    to: Path | None,
    *,
    everything: bool,
    verbose: bool,
) -> None:
    set_up_logs(verbose=verbose)
    if bool(scenarios) == everything:
        raise InvalidArgument("say either --scenario NAME or --all")
    [row] = chosen(ROWS, [connector], "connector").values()
    anyio.run(_record_all, row, chosen(all_scenarios(), scenarios, "scenario"), pairs(options), to)


async def _record_all(row: Row, scenarios: Mapping[str, Scenario], options: Mapping[str, Any], to: Path | None) -> None:
    is_whole = True
    for scenario in scenarios.values():
        if scenario.name in row.exempt:
            continue
        try:
            recording = await _record(scenario, row, options)
        except NotSupported as refusal:
            if len(scenarios) == 1:
                raise
            complain(refusal.message)
            continue
        except Divergence as divergence:
            complain(f"{scenario.name}: {divergence}")
            is_whole = False
            continue
        if recording.size > MAX_BYTES:
            complain(f"{scenario.name}: {recording.size} bytes are too many for a recording")
        else:
            typer.echo(str(_keep(recording, row, to)))
    if not is_whole:
        raise typer.Exit(1)


async def _record(scenario: Scenario, row: Row, options: Mapping[str, Any]) -> Recording:
    with TemporaryDirectory(prefix="harness-record-") as directory:
        recording = await record(scenario, row, Path(directory), options)
    with TemporaryDirectory(prefix="harness-record-") as directory:
        await check(recording, scenario, row, Path(directory))
    return recording


def _keep(recording: Recording, row: Row, to: Path | None) -> Path:
    version = recording.peer.rpartition(" ")[2] or "unknown"
    directory = to or Path("fixtures") / row.name.replace(":", "-") / version
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"{recording.scenario}.jsonl"
    file.write_text("\n".join(recording.lines) + "\n", encoding="utf-8")
    return file
