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
from harness.cli.verify import VerifyArguments, VerifyOutput
from harness.errors import ConnectorUnavailable, HarnessError, InvalidArgument
from harness.testing import matrix
from harness.testing.checks import Divergence
from harness.testing.rows import ROWS, Row
from harness.testing.running import Outcome, Verdict, run_scenario
from harness.testing.scenario import Scenario
from harness.testing.scenarios import all_scenarios

T = TypeVar("T")


def run_verify(arguments: VerifyArguments) -> None:
    set_up_logs(verbose=arguments.verbose)
    if arguments.canary:
        from harness.cli.canary import run_canaries

        raise typer.Exit(anyio.run(run_canaries, arguments, pairs(arguments.options)))
    raise typer.Exit(anyio.run(_verify, arguments, pairs(arguments.options)))


async def _verify(arguments: VerifyArguments, options: Mapping[str, Any]) -> int:
    rows = chosen(ROWS, arguments.connectors, "connector")
    scenarios = chosen(all_scenarios(), arguments.scenarios, "scenario")
    results: dict[str, dict[str, Outcome]] = {}
    failures: list[tuple[str, str, str]] = []
    for row in rows.values():
        results[row.name] = {}
        for scenario in scenarios.values():
            begun = time.monotonic()
            try:
                outcome = await _play(scenario, row, options)
            except ConnectorUnavailable:
                raise
            except (Divergence, HarnessError) as error:
                failures.append((row.name, scenario.name, str(error)))
                _tell(arguments, row, scenario, "FAILED", str(error), begun)
            else:
                results[row.name][scenario.name] = outcome
                _tell(arguments, row, scenario, outcome.verdict, outcome.because, begun)
    if arguments.output == VerifyOutput.TEXT:
        typer.echo(_summary(results, failures))
    if arguments.matrix is not None and not failures:
        arguments.matrix.write_text(matrix.render(scenarios, results), encoding="utf-8")
    return 1 if failures else 0


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


def _summary(results: Mapping[str, Mapping[str, Outcome]], failures: Sequence[tuple[str, str, str]]) -> str:
    lines: list[str] = []
    for row, outcomes in results.items():
        peer = next((outcome.peer for outcome in outcomes.values() if outcome.peer), "")
        broken = [scenario for name, scenario, _ in failures if name == row]
        kept = f"keeps the contract in {len(outcomes)} scenario(s)"
        lines.append(f"{row} ({peer}) {kept}" + (f", breaks it in {', '.join(broken)}" if broken else ""))
    return "\n".join(lines)
