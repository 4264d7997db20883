"""The policy probes as a command: `harness verify --policy-probes`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import typer

from harness.cli.failures import complain
from harness.cli.verify import DRIFTED, VerifyArguments, VerifyOutput
from harness.errors import ConnectorUnavailable, InvalidArgument
from harness.testing.checks import Divergence
from harness.testing.policy_probes import PROBES
from harness.testing.probe_report import read_report, write_report
from harness.testing.probing import Finding, Probed, by_policy, probed_rows, try_probes
from harness.testing.rows import Row


async def run_probes(arguments: VerifyArguments, options: Mapping[str, Any]) -> int:
    """Tries the table on each named connector, by default on every one that has its tools."""
    findings: set[Finding] = set()
    for row in _rows(arguments.connectors):
        try:
            found = await _try(row, options)
        except ConnectorUnavailable as error:
            if arguments.connectors:
                raise
            complain(f"not tried: {row.name}: {error.message}")
            continue
        except Divergence as divergence:
            complain(f"{row.name}, policy probes: {divergence}")
            findings.add(Finding.WIDER)
            continue
        for one in found:
            _tell(row, one, arguments.output)
        if arguments.output == VerifyOutput.TEXT:
            kept = sum(one.finding == Finding.KEPT for one in found)
            typer.echo(f"{row.name} ({found[0].peer}) keeps the policy in {kept} of {len(found)} probe(s)")
        findings |= {one.finding for one in found}
        if arguments.report is not None:
            write_report(arguments.report, read_report(arguments.report).with_results(row.name, found))
    return 1 if Finding.WIDER in findings else DRIFTED if Finding.NARROWER in findings else 0


async def _try(row: Row, options: Mapping[str, Any]) -> list[Probed]:
    found: list[Probed] = []
    for probes in by_policy():
        with TemporaryDirectory(prefix="harness-probes-") as directory:
            found += await try_probes(row, probes, Path(directory), options)
        complain(f"policy probes for '{row.name}': {len(found)} of {len(PROBES)}")
    return found


def _rows(names: tuple[str, ...]) -> list[Row]:
    known = probed_rows()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidArgument(f"no policy probes for '{unknown[0]}'; there are some for: {', '.join(known)}")
    return [known[name] for name in names or known]


def _tell(row: Row, one: Probed, output: VerifyOutput) -> None:
    whole, part = (str(found or "not_run") for found in (one.whole, one.part))
    if output == VerifyOutput.JSON:
        told = {"connector": row.name, "peer": one.peer, "probe": one.probe.tries, "expected": str(one.probe.expected)}
        typer.echo(json.dumps({**told, "whole": whole, "part": part, "finding": str(one.finding)}))
        return
    did = f"'{one.probe.tries}': expected {one.probe.expected}, found {whole}; with the delegated part {part}"
    if one.finding == Finding.WIDER:
        complain(f"{row.name} is wider than its policy, {did}")
    elif one.finding == Finding.NARROWER:
        typer.echo(f"{row.name} is no wider than its policy, yet otherwise, {did}")
