"""What `harness verify` does: plays scenarios on installed connectors and tells how it went."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import anyio
import typer

from harness.cli.failures import complain
from harness.cli.logs import set_up_logs
from harness.cli.values import pairs
from harness.cli.verify import DRIFTED, VerifyArguments, VerifyOutput
from harness.errors import ConnectorUnavailable, HarnessError, InvalidArgument
from harness.testing import matrix
from harness.testing.checks import Divergence
from harness.testing.drift import changes
from harness.testing.recording import RACES, read_recording, recordings_of, replayed
from harness.testing.rows import ROWS, Row
from harness.testing.running import Outcome, Verdict, run_scenario
from harness.testing.scenario import Scenario
from harness.testing.scenarios import all_scenarios

T = TypeVar("T")


def run_verify(arguments: VerifyArguments) -> None:
    set_up_logs(verbose=arguments.verbose)
    if arguments.report is not None and not arguments.policy_probes:
        raise InvalidArgument("--report: only --policy-probes writes one; the other table is --matrix")
    if arguments.matrix is not None and arguments.replay:
        raise InvalidArgument("--matrix: it says what was seen live, leave out --replay")
    if arguments.policy_probes:
        from harness.cli.probes import run_probes

        raise typer.Exit(anyio.run(run_probes, arguments, pairs(arguments.options)))
    if arguments.canary:
        from harness.cli.canary import run_canaries

        raise typer.Exit(anyio.run(run_canaries, arguments, pairs(arguments.options)))
    raise typer.Exit(anyio.run(_verify, arguments, pairs(arguments.options)))


async def _verify(arguments: VerifyArguments, options: Mapping[str, Any]) -> int:
    rows = chosen(ROWS, arguments.connectors, "connector")
    scenarios = chosen(all_scenarios(), arguments.scenarios, "scenario")
    if arguments.replay:
        rows = _recorded(rows, scenarios, arguments)
    found: dict[str, dict[str, Outcome]] = {}
    drifted: list[str] = []
    failures: list[tuple[str, str]] = []
    for row in rows.values():
        try:
            outcomes, broken = await _try(row, scenarios, options, arguments)
            drifted += _drift(row, outcomes, arguments)
        except ConnectorUnavailable as error:
            if arguments.connectors:
                raise
            complain(f"not tried: {row.name}: {error.message}")
            continue
        peer = next((outcome.peer for outcome in outcomes.values() if outcome.peer), "")
        # options choose another version than the installed one
        found[f"{row.name} {peer.rpartition(' ')[2]}" if options else row.name] = outcomes
        failures += [(row.name, name) for name in broken]
        if arguments.output == VerifyOutput.TEXT:
            typer.echo(_summary(row.name, peer, len(outcomes), broken))
    if arguments.matrix is not None and not failures:
        known = matrix.read_matrix(arguments.matrix)
        matrix.write_matrix(arguments.matrix, known.with_results(found, ROWS), all_scenarios())
    return 1 if failures else DRIFTED if drifted else 0


def _recorded(rows: Mapping[str, Row], scenarios: Mapping[str, Scenario], arguments: VerifyArguments) -> dict[str, Row]:
    """Those with a recording of one of these scenarios.

    Raises:
        InvalidArgument: a connector was named and has none, so that nothing would be tried.
    """
    found = {name: row for name, row in rows.items() if recordings_of(name).keys() & scenarios.keys()}
    silent = next((name for name in arguments.connectors if name not in found), None)
    if silent is not None:
        of = " in that scenario" if recordings_of(silent) else ""
        raise InvalidArgument(
            f"--replay: no recording of '{silent}'{of}; without --replay the connector itself is tried"
        )
    return found


def _drift(row: Row, outcomes: Mapping[str, Outcome], arguments: VerifyArguments) -> list[str]:
    """Tells what is otherwise than recorded; the names of those scenarios."""
    drifted: list[str] = []
    for name, file in recordings_of(row.name).items():
        if name in RACES and not arguments.replay:
            continue
        recorded = read_recording(file)
        told = changes(recorded.trace, outcomes[name].trace) if name in outcomes and outcomes[name].trace else []
        if told:
            drifted.append(name)
            _tell_drift(arguments, row, name, recorded.peer, told)
    return drifted


def _tell_drift(arguments: VerifyArguments, row: Row, scenario: str, peer: str, told: Sequence[str]) -> None:
    if arguments.output == VerifyOutput.JSON:
        typer.echo(json.dumps({"connector": row.name, "scenario": scenario, "recorded": peer, "changes": [*told]}))
        return
    for change in told:
        typer.echo(f"{row.name:14} {scenario:22} otherwise than {peer}: {change}")


async def _try(
    row: Row, scenarios: Mapping[str, Scenario], options: Mapping[str, Any], arguments: VerifyArguments
) -> tuple[dict[str, Outcome], list[str]]:
    """The outcomes, and the scenarios in which the contract was broken."""
    outcomes: dict[str, Outcome] = {}
    broken: list[str] = []
    recorded = recordings_of(row.name) if arguments.replay else {}
    for scenario in scenarios.values():
        begun = time.monotonic()
        if arguments.replay and scenario.name not in recorded:
            continue
        played = replayed(row, recorded[scenario.name]) if arguments.replay else row
        try:
            outcomes[scenario.name] = outcome = await _play(scenario, played, options)
        except ConnectorUnavailable:
            raise
        except (Divergence, HarnessError) as error:
            broken.append(scenario.name)
            _tell(arguments, row, scenario, "FAILED", str(error), begun)
        else:
            _tell(arguments, row, scenario, outcome.verdict, outcome.because or outcome.note, begun)
    return outcomes, broken


async def _play(scenario: Scenario, row: Row, options: Mapping[str, Any]) -> Outcome:
    with TemporaryDirectory(prefix="harness-verify-") as directory:
        return await run_scenario(scenario, row, Path(directory), options)


def chosen(known: Mapping[str, T], names: Sequence[str], kind: str) -> dict[str, T]:
    """Those that are named, or all.

    Raises:
        InvalidArgument: a name nobody knows.
    """
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidArgument(f"no {kind} '{unknown[0]}' to verify; known: {', '.join(known)}")
    return {name: known[name] for name in names or known}


def _tell(
    arguments: VerifyArguments, row: Row, scenario: Scenario, verdict: Verdict | str, because: str, begun: float
) -> None:
    milliseconds = round((time.monotonic() - begun) * 1000)
    if arguments.output == VerifyOutput.JSON:
        told = {"connector": row.name, "scenario": scenario.name, "verdict": str(verdict).lower(), "because": because}
        typer.echo(json.dumps({**told, "duration_ms": milliseconds}, ensure_ascii=False))
    elif verdict == "FAILED":
        complain(f"{row.name}, {scenario.name}: {because}")
    else:
        typer.echo(f"{row.name:14} {scenario.name:22} {verdict:10} {because}".rstrip())


def _summary(row: str, peer: str, kept: int, broken: Sequence[str]) -> str:
    told = f"{row} ({peer}) keeps the contract in {kept} scenario(s)"
    return f"{told}, breaks it in {', '.join(broken)}" if broken else told
