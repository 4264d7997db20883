"""The channel of a CLI: its stdin and stdout, with a tee in the pipes or a stand-in in its place."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from harness.connector import DryRun
from harness.contract.options import ConversationOptions
from harness.errors import NotSupported
from harness.testing.checks import Divergence
from harness.testing.peers import replay_cli, tee_cli
from harness.testing.row import Prepared, Row
from harness.testing.running import Outcome, run_scenario
from harness.testing.scenario import Scenario

_PACKAGES = "/node_modules/"
"""Where the program of an npm package and what it needs lie."""


async def watch(
    scenario: Scenario, row: Row, directory: Path, connector_options: Mapping[str, Any]
) -> tuple[Outcome, list[dict[str, Any]], dict[str, str]]:
    """Plays the scenario on the row's program; what came of it, all that was said, and what to scrub from it.

    Raises:
        NotSupported: the connector does not tell which program it starts.
    """
    log = directory / "traffic.jsonl"
    programs: dict[str, str] = {}
    rest = {name: value for name, value in connector_options.items() if name != row.program_option}

    @asynccontextmanager
    async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
        async with row.prepare(scenario, directory) as prepared:
            program = _program(row, _with(prepared, connector_options).options)
            programs[program] = "<program>"
            if _PACKAGES in program:
                programs[program[: program.index(_PACKAGES)]] = "<packages>"
            folder = directory / "program"
            folder.mkdir()
            _copy_manifest(Path(program), folder)
            tee = _script(folder / "tee", [sys.executable, "-I", "-m", tee_cli.__name__, str(log), program])
            yield _with(prepared, {row.program_option: str(tee)})

    outcome = await run_scenario(scenario, replace(row, prepare=prepare), directory, rest)
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return outcome, [json.loads(line) for line in lines], programs


def _complaint(state: Path) -> str | None:
    """Where the connector first said something else than recorded."""
    file = Path(f"{state}{replay_cli.COMPLAINTS}")
    return file.read_text(encoding="utf-8").partition("\n")[0] if file.exists() else None


def _program(row: Row, options: ConversationOptions) -> str:
    connector, whole = row.registry().resolve(options)
    argv = connector.dry_run(whole).get("argv") if isinstance(connector, DryRun) else None
    if not isinstance(argv, list) or not argv:
        raise NotSupported(f"'{row.name}' does not tell which program it starts: there is nothing to record")
    return str(Path(str(cast("list[object]", argv)[0])).resolve())


def _with(prepared: Prepared, changes: Mapping[str, Any]) -> Prepared:
    given = json.loads(prepared.options.connector_options_json or "{}")
    changed = {"connector_options_json": json.dumps({**given, **changes})}
    return replace(prepared, options=prepared.options.model_copy(update=changed))


def stood_in(row: Row, recording: Path, cuts: Sequence[int]) -> Row:
    """The row with the recording in the place of its program."""
    sizes = ",".join(map(str, cuts))

    @asynccontextmanager
    async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
        state = directory / "processes"
        command = [sys.executable, "-I", "-m", replay_cli.__name__, str(recording), str(state), sizes]
        stand_in = _script(directory / "stand-in", command)
        async with row.prepare(scenario, directory) as prepared:
            # the model is there for the options only: nobody asks it
            try:
                yield Prepared(_with(prepared, {row.program_option: str(stand_in)}).options)
            except Exception as error:
                # where it began says more than what came of it
                found = _complaint(state)
                if found is None:
                    raise
                raise Divergence(found) from error
            found = _complaint(state)
            if found is not None:
                raise Divergence(found)

    return replace(row, prepare=prepare)


def _copy_manifest(program: Path, folder: Path) -> None:
    """What tells the version of a program of an npm package: some know no `--version`."""
    manifest = next((found for parent in program.parents[:3] if (found := parent / "package.json").is_file()), None)
    if manifest is not None:
        shutil.copyfile(manifest, folder / manifest.name)


def _script(path: Path, command: list[str]) -> Path:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n', encoding="utf-8")
    path.chmod(0o700)
    return path
