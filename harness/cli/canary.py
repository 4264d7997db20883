"""The canary in commands: `harness verify --canary`, and once before a program is trusted with tools of its own."""

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
from harness.contract.capabilities import LlmCapabilities
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

    `name` may carry a variant: its canary flies now, that of another one with the first conversation that opens
    internal tools. A canary that passed before counts.
    """
    if not any(row.is_live and row.name.partition(":")[0] == connector.name for row in ROWS.values()):
        return connector
    asked = ConversationOptions(connector=name, connector_options_json=json.dumps(options))
    row = canary.row_of(connector, _with_variant(connector, asked))
    served = _Guarded(connector, options)
    try:
        refusal = None if row is None else await served.refusal(row)
    except ConnectorUnavailable as error:
        complain(f"no canary for '{name}': {error.message}")
    else:
        if refusal is not None:
            complain(refusal.message)
    return served


async def check_before(options: ConversationOptions, registry: Registry) -> None:
    """Before one conversation that opens tools of the peer's own.

    Raises:
        ConnectorUnavailable: the program does not ask before it acts, or cannot be started.
    """
    if not options.internal_tools:
        return
    connector, resolved = registry.resolve(options)
    row = canary.row_of(connector, resolved)
    if row is None:
        return
    given = parsed_object(resolved.connector_options_json or "{}", "connector_options_json")
    # of the scripted model all else is told by the row
    program = {name: given[name] for name in canary.PROGRAM_OPTIONS if name in given}
    verdict = await _fly(row, connector, program, again=False)
    if verdict is not None and not verdict.passed:
        raise canary.refusal_of(verdict)


def _with_variant(connector: Connector, options: ConversationOptions) -> ConversationOptions:
    variant = connector.variants.get((options.connector or "").partition(":")[2], {})
    given = parsed_object(options.connector_options_json or "{}", "connector_options_json")
    return options.model_copy(update={"connector_options_json": json.dumps({**variant, **given})})


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


class _Guarded(WrappedConnector):
    """A connector whose programs have to ask and to block before a conversation with internal tools begins."""

    def __init__(self, connector: Connector, program: Mapping[str, Any]) -> None:
        super().__init__(connector)
        self._program = program
        self._flown: dict[str, CanaryVerdict | None] = {}

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        row = canary.row_of(self._connector, options) if options.internal_tools else None
        refusal = None if row is None else await self.refusal(row)
        if refusal is not None:
            raise refusal
        return await super().get_capabilities(options)

    async def refusal(self, row: Row) -> ConnectorUnavailable | None:
        """Flies the row's canary, once."""
        if row.name not in self._flown:
            self._flown[row.name] = await _fly(row, self._connector, self._program, again=False)
        verdict = self._flown[row.name]
        return None if verdict is None or verdict.passed else canary.refusal_of(verdict)
