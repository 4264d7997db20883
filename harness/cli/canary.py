"""The canary in commands: `harness verify --canary`, and once before `harness serve`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from harness.cli.failures import complain
from harness.cli.verify import VerifyArguments, VerifyOutput
from harness.cli.wrapped import WrappedConnector
from harness.connector import Connector
from harness.contract.options import ConversationOptions
from harness.conversation.checks import parsed_object
from harness.errors import ConnectorUnavailable, InvalidArgument
from harness.registry import Registry
from harness.testing import canary
from harness.testing.canary import CanaryVerdict
from harness.testing.rows import ROWS, Row


async def run_canaries(arguments: VerifyArguments, options: Mapping[str, Any]) -> int:
    """Flies one for each named connector, by default for every one that starts a program; keeps the verdicts."""
    verdicts = [
        verdict
        for row in _rows(arguments.connectors)
        if (verdict := await _fly(row, Registry().connector(row.name.partition(":")[0]), options, again=True))
    ]
    for verdict in verdicts:
        _tell(verdict, arguments.output)
    return 0 if all(verdict.passed for verdict in verdicts) else 1


async def guarded(name: str, connector: Connector, options: Mapping[str, Any]) -> Connector:
    """The connector as it may be served: after a canary that fell, without its internal tools.

    `name` may carry a variant; a canary that passed before counts, one that fell is flown again.
    """
    row = ROWS.get(name)
    if row is None:
        return connector
    try:
        verdict = await _fly(row, connector, options, again=False)
    except ConnectorUnavailable as error:
        complain(f"no canary for '{name}': {error.message}")
        return connector
    if verdict is None or verdict.passed:
        return connector
    complain(canary.refusal_of(verdict).message)
    return _WithoutInternalTools(connector, row, verdict)


async def _fly(row: Row, connector: Connector, options: Mapping[str, Any], *, again: bool) -> CanaryVerdict | None:
    subject = await canary.subject_of(row, connector, options)
    if subject is None:
        return None
    known = None if again else canary.known_verdict(canary.default_directory(), subject)
    if known is not None and known.passed:
        return known
    complain(f"canary for '{row.name}': does '{subject.program}' ask before it acts?")
    verdict = await canary.run_canary(row, subject, options)
    kept = _keep(verdict)
    complain(f"canary for '{row.name}' {'passed' if verdict.passed else 'FELL'}{f', noted in {kept}' if kept else ''}")
    return verdict


def _keep(verdict: CanaryVerdict) -> Path | None:
    try:
        return canary.keep_verdict(canary.default_directory(), verdict)
    except OSError as error:
        complain(f"the verdict cannot be kept ({error}): it will be asked for again")
        return None


def _rows(names: tuple[str, ...]) -> list[Row]:
    for name in names:
        if name not in ROWS or not ROWS[name].is_live:
            known = ", ".join(row.name for row in ROWS.values() if row.is_live)
            raise InvalidArgument(f"'{name}' has no canary: it starts no program; those that do: {known}")
    return [row for row in ROWS.values() if row.is_live and (not names or row.name in names)]


def _tell(verdict: CanaryVerdict, output: VerifyOutput) -> None:
    subject = verdict.subject
    if output == VerifyOutput.JSON:
        told = {"connector": subject.row, "program": subject.program, "sha256": subject.digest}
        more = {"system": subject.system, "passed": verdict.passed, "because": verdict.because, "at": verdict.at}
        typer.echo(json.dumps({**told, **more}, ensure_ascii=False))
    elif verdict.passed:
        typer.echo(f"{subject.row}: internal tools ask, the host's tools block, a denial holds")
    else:
        typer.echo(f"{subject.row}: FELL, {verdict.because}")


class _WithoutInternalTools(WrappedConnector):
    """A connector whose program does not ask, or does not block: conversations without internal tools are served."""

    def __init__(self, connector: Connector, row: Row, verdict: CanaryVerdict) -> None:
        super().__init__(connector)
        self._verdict = verdict
        self._route = connector.variants.get(row.name.partition(":")[2], {})

    def check(self, options: ConversationOptions) -> None:
        given = parsed_object(options.connector_options_json or "{}", "connector_options_json")
        if options.internal_tools and all(given.get(name) == value for name, value in self._route.items()):
            raise canary.refusal_of(self._verdict)
