"""What `harness doctor` does: looks at each connector as a conversation would, and says what is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import anyio
import typer

from harness.cli.doctor import DoctorOutput
from harness.cli.logs import set_up_logs
from harness.cli.terminal import printable
from harness.cli.values import pairs
from harness.connector import Connector, DryRun, TellsLogin
from harness.contract.options import ConversationOptions
from harness.errors import ConnectorUnavailable, HarnessError, InvalidArgument
from harness.registry import Registry
from harness.testing import canary
from harness.testing.rows import ROWS

UNUSABLE = 3
READY = "ready"
_ONLY_BY_NAME = frozenset({"fake"})


@dataclass(frozen=True)
class Finding:
    """What was found of one connector. `state` is `ready` or the reason why it cannot be used."""

    connector: str
    state: str
    peer: str | None = None
    version: str | None = None
    tested: bool | None = None
    program: str | None = None
    logged_in: bool | None = None
    login: str | None = None
    canary: str | None = None
    problem: str | None = None
    """Says what to type."""


def run_doctor(names: Sequence[str], options: Sequence[str], output: DoctorOutput, *, verbose: bool) -> None:
    set_up_logs(verbose=verbose)
    findings = anyio.run(_look, names, pairs(options))
    width = max(len(finding.connector) for finding in findings)
    for finding in findings:
        text = json.dumps(asdict(finding), ensure_ascii=False) if output == DoctorOutput.JSON else _text(finding, width)
        typer.echo(text)
    usable = [finding for finding in findings if finding.state == READY and finding.connector not in _ONLY_BY_NAME]
    is_well = all(finding.state == READY for finding in findings) if names else bool(usable)
    raise typer.Exit(0 if is_well else UNUSABLE)


async def _look(names: Sequence[str], options: Mapping[str, Any]) -> list[Finding]:
    registry = Registry()
    found: list[Finding] = []
    for name in names or registry.names():
        finding = await _look_at(registry, name, options)
        # what is nothing without a variant is looked at in all of them
        is_open = finding.state == InvalidArgument.code and not names
        variants = list(registry.connector(name).variants) if is_open else []
        found += [await _look_at(registry, f"{name}:{variant}", options) for variant in variants] or [finding]
    return found


async def _look_at(registry: Registry, name: str, options: Mapping[str, Any]) -> Finding:
    program: str | None = None
    asked = ConversationOptions(connector=name, connector_options_json=json.dumps(options))
    try:
        connector, asked = registry.resolve(asked)
        capabilities = await connector.get_capabilities(asked)
        program = _program(connector, asked)
        login = await connector.login(asked) if isinstance(connector, TellsLogin) else None
        flown = await _canary(name, connector, options)
    except ConnectorUnavailable as error:
        state = str(error.detail.get("reason", error.code))
        is_missing = state == "not_logged_in"
        told = {key: error.detail[key] for key in ("peer", "version", "tested", "program") if key in error.detail}
        return replace(Finding(name, state, logged_in=False if is_missing else None, problem=error.message), **told)
    except HarnessError as error:
        return Finding(name, _state_of(error), problem=error.message)
    inner = capabilities.inner
    return Finding(
        name,
        "not_logged_in" if login is not None and login.is_there is False else READY,
        peer=inner and inner.name,
        version=inner and inner.version,
        tested=inner and inner.tested,
        program=program,
        logged_in=login and login.is_there,
        login=login and login.told,
        canary=flown,
        problem=login and login.remedy,
    )


def _state_of(error: HarnessError) -> str:
    return "not_reachable" if error.detail.get("reason") == "network" else error.code


def _program(connector: Connector, options: ConversationOptions) -> str | None:
    argv = connector.dry_run(options).get("argv") if isinstance(connector, DryRun) else None
    words = cast("list[object]", argv) if isinstance(argv, list) else []
    return str(words[0]) if words else None


async def _canary(name: str, connector: Connector, options: Mapping[str, Any]) -> str | None:
    """What an earlier canary said; null for a connector that has none."""
    subject = await canary.subject_of(ROWS[name], connector, options) if name in ROWS else None
    if subject is None:
        return None
    verdict = canary.known_verdict(canary.default_directory(), subject)
    if verdict is None:
        return "not flown yet"
    return "passed" if verdict.passed else f"fell: {verdict.because}"


def _text(finding: Finding, width: int) -> str:
    about = [
        " ".join(part for part in (finding.peer, finding.version) if part),
        "" if finding.tested is None else "tested" if finding.tested else "not among the tested versions",
        finding.program or "",
        "" if finding.login is None else f"login: {finding.login}",
        "" if finding.canary is None else f"canary: {finding.canary}",
        finding.problem or "",
    ]
    return printable(
        f"{finding.connector:{width}} {finding.state:14} {'; '.join(part for part in about if part)}".rstrip()
    )
