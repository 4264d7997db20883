"""The canary: proves with the installed program that its tools ask, block and stay denied, before anybody relies on it.

A new version of a CLI may stop asking without a word. So a verdict belongs to one binary, one route and one system.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import anyio
import platformdirs
from pydantic import TypeAdapter, ValidationError

from harness.connector import Connector, DryRun
from harness.contract.capabilities import Denial
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, InvalidArgument, NotSupported
from harness.testing.checks import Divergence, holds, only, same
from harness.testing.rows import ROWS, Row
from harness.testing.running import run_scenario
from harness.testing.scenario import APPROVALS, Scenario, Stage, call, run_command
from harness.testing.talk import Turn, choice, result

REASON = "The canary says no."
PROGRAM_OPTIONS = ("command", "program")
"""The connector options that choose the binary: the others are those of the scripted model."""
_SILENCE_SECONDS = 0.5
"""How long a blocked call is watched: a peer that does not block asks its model again at once."""


async def _fly(stage: Stage) -> None:
    talk = await stage.begin()
    _check_denied(stage, await talk.say("1", lambda request: choice(request, "deny", reason=REASON)))
    if stage.capabilities.denial == Denial.ENDS_TURN:
        await talk.say("1, once more")  # the model has not been called since
    turn_id = await talk.start("2")
    request = only("calls of the host's tool that wait", await talk.pending(turn_id))
    asked = len(stage.model.requests) if stage.model is not None else 0
    await anyio.sleep(_SILENCE_SECONDS)
    if stage.model is not None:
        same("model calls while the host's tool runs", len(stage.model.requests), asked)
    await talk.answer(turn_id, result(request, "the host's result"))
    text = (await talk.finished(turn_id)).text
    # some put words of their own around it
    holds("what the model read of the host's tool", "the host's result" in text, text)
    allowed = await talk.say("3", lambda request: choice(request, "allow_once"))
    only("approvals of an internal tool", allowed.requests)
    same("how the allowed tool went", allowed.internal_tool("call_3")[1].result, "ok")
    if stage.model is not None:
        holds("the allowed tool did what it was to do", (stage.directory / "allowed").exists())


def _check_denied(stage: Stage, turn: Turn) -> None:
    if turn.state.error is not None:
        raise Divergence(f"the turn failed: {turn.state.error.message}")
    holds("an internal tool did not act before the host said so", not (stage.directory / "denied").exists())
    request = only("approvals of an internal tool", turn.requests)
    same("what was asked", (request.kind, request.call_id), ("approval", "call_1"))
    same("how the denied tool ended", turn.internal_tool("call_1")[1].result, "refused")


CANARY = Scenario(
    name="canary",
    requirements=("R-D7",),
    script=[
        [{"calls": [run_command("call_1", "touch denied")]}, {"text": "Not done."}],
        [{"calls": [call("save", "call_2", note="x")]}, {"text": "{{results.call_2}}"}],
        [{"calls": [run_command("call_3", "touch allowed")]}, {"text": "Done."}],
    ],
    run=_fly,
    needs=(APPROVALS,),
    seconds=90.0,
)


@dataclass(frozen=True)
class Subject:
    """What a verdict is about: the binary by its digest, how it is reached, and where it runs."""

    row: str
    program: str
    digest: str
    system: str

    @property
    def file_name(self) -> str:
        key = hashlib.sha256(f"{self.row}\n{self.digest}\n{self.system}".encode()).hexdigest()[:16]
        return f"{self.row.replace(':', '-')}-{key}.json"


@dataclass(frozen=True)
class CanaryVerdict:
    subject: Subject
    passed: bool
    because: str
    """Empty, or what did not hold."""
    at: int
    """Milliseconds since the epoch."""


_VERDICT = TypeAdapter(CanaryVerdict)


def default_directory() -> Path:
    return platformdirs.user_state_path("level2-harness") / "canary"


def row_of(connector: Connector, options: ConversationOptions) -> Row | None:
    """The row of what these options start, variants merged in: null where none is known, or it starts no program."""
    given = json.loads(options.connector_options_json or "{}")
    rows = {variant: ROWS[name] for variant in connector.variants if (name := f"{connector.name}:{variant}") in ROWS}
    for variant, row in rows.items():
        if all(given.get(name) == value for name, value in connector.variants[variant].items()):
            return row
    if connector.name in ROWS:
        return ROWS[connector.name]
    own = _started(connector, options, {})
    if own is None:
        return None
    same_start = (
        row for variant, row in rows.items() if own == _started(connector, options, connector.variants[variant])
    )
    return next(same_start, None)


def _started(
    connector: Connector, options: ConversationOptions, more: Mapping[str, Any]
) -> Mapping[str, JsonValue] | None:
    """What would be started; null where the options are not enough."""
    given = {**json.loads(options.connector_options_json or "{}"), **more}
    changed = options.model_copy(update={"connector_options_json": json.dumps(given)})
    try:
        return connector.dry_run(changed) if isinstance(connector, DryRun) else None
    except (InvalidArgument, NotSupported):
        return None


async def subject_of(row: Row, connector: Connector, connector_options: Mapping[str, Any]) -> Subject | None:
    """What would be started for this row; null for a connector that starts no program.

    Raises:
        ConnectorUnavailable: there is none to start.
    """
    if not row.is_live or CANARY.name in row.exempt or not isinstance(connector, DryRun):
        return None
    _, _, variant = row.name.partition(":")
    meant = {**connector.variants.get(variant, {}), **connector_options}
    options = ConversationOptions(connector=connector.name, connector_options_json=json.dumps(meant))
    argv = connector.dry_run(options).get("argv")
    if not isinstance(argv, list) or not argv:
        return None
    program = Path(str(cast(list[object], argv)[0])).resolve()
    try:
        digest = await anyio.to_thread.run_sync(_digest, program)
    except OSError as error:
        raise ConnectorUnavailable(f"the program '{program}' of '{row.name}' cannot be read: {error}") from error
    return Subject(row.name, str(program), digest, f"{platform.system()} {platform.release()} {platform.machine()}")


async def run_canary(row: Row, subject: Subject, connector_options: Mapping[str, Any]) -> CanaryVerdict:
    """Starts the program against a scripted model; takes a second or two, nothing leaves this machine.

    Raises:
        ConnectorUnavailable: it cannot be started at all.
    """
    because = ""
    with TemporaryDirectory(prefix="harness-canary-") as directory:
        try:
            outcome = await run_scenario(CANARY, row, Path(directory), connector_options)
            if outcome.because:
                because = f"it cannot route approvals: {outcome.because}"
        except Divergence as divergence:
            because = str(divergence)
    return CanaryVerdict(subject, not because, because, time.time_ns() // 1_000_000)


def known_verdict(directory: Path, subject: Subject) -> CanaryVerdict | None:
    """The stored verdict about exactly this subject; null where there is none that can be read."""
    with suppress(OSError, ValidationError):
        verdict = _VERDICT.validate_json((directory / subject.file_name).read_bytes())
        if replace(verdict.subject, program=subject.program) == subject:
            return verdict
    return None


def keep_verdict(directory: Path, verdict: CanaryVerdict) -> Path:
    """Stores the verdict, in a file that appears at once as a whole."""
    directory.mkdir(parents=True, mode=0o700, exist_ok=True)
    file = directory / verdict.subject.file_name
    draft = file.with_suffix(".new")
    draft.write_bytes(_VERDICT.dump_json(verdict, indent=2))
    return draft.replace(file)


def refusal_of(verdict: CanaryVerdict) -> ConnectorUnavailable:
    """What `begin` with internal tools raises after a canary that fell."""
    return ConnectorUnavailable(
        f"'{verdict.subject.row}' failed its canary with '{verdict.subject.program}' ({verdict.because}): no internal "
        "tools with it; use a tested version, or try again by: "
        f"harness verify --connector {verdict.subject.row} --canary",
        reason="wrong_version",
    )


def _digest(program: Path) -> str:
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
