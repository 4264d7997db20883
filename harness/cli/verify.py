"""`harness verify`: whether connectors keep the contract on this machine. This file only says what may be typed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import OptionOption, VerboseOption

EXAMPLES = """\b
Examples:
  harness verify --connector claude --canary
  harness verify --connector claude
  harness verify --replay
  harness verify --connector claude --policy-probes --report probes.md
  harness verify --connector claude --scenario one-call -O command=/opt/claude/2.1.197/claude -o json
"""


DRIFTED = 6
"""Exit code: the contract is kept, and yet something is otherwise than recorded."""


class VerifyOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class VerifyArguments:
    """What was typed, by the names of the options."""

    connectors: tuple[str, ...]
    scenarios: tuple[str, ...]
    options: tuple[str, ...]
    canary: bool
    policy_probes: bool
    replay: bool
    matrix: Path | None
    report: Path | None
    output: VerifyOutput
    verbose: bool


def verify(
    connector: Annotated[
        list[str] | None,
        typer.Option(envvar="HARNESS_CONNECTOR", help="What to try: claude, openai:chat ... Repeatable, else all."),
    ] = None,
    scenario: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only this one. Repeatable.")] = None,
    canary: Annotated[
        bool, typer.Option("--canary", help="Only prove that tools ask, block and stay denied; keep the verdict.")
    ] = False,
    policy_probes: Annotated[
        bool, typer.Option("--policy-probes", help="Only try to get past policies that were delegated to the CLI.")
    ] = False,
    replay: Annotated[
        bool, typer.Option("--replay", help="Play the recordings that ship with this package; needs no CLI.")
    ] = False,
    option: OptionOption = None,
    matrix: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the table of all connectors and scenarios to this file.")
    ] = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --policy-probes: add what was found to the table there.")
    ] = None,
    output: Annotated[VerifyOutput, typer.Option("-o", "--output", help="What stdout gets.")] = VerifyOutput.TEXT,
    verbose: VerboseOption = False,
) -> None:
    """Try installed connectors against a scripted model.

    Nothing leaves this machine and no key is used. What a CLI does otherwise than when it was recorded is told. Exit
    code 0: the contract is kept; 1: it is not; 3: the connector cannot be used here; 6: it is kept, and yet the CLI
    does something else than recorded, or than a policy probe expects.
    """
    from harness.cli.verifying import run_verify

    run_verify(
        VerifyArguments(
            connectors=tuple(connector or ()),
            scenarios=tuple(scenario or ()),
            options=tuple(option or ()),
            canary=canary,
            policy_probes=policy_probes,
            replay=replay,
            matrix=matrix,
            report=report,
            output=output,
            verbose=verbose,
        )
    )
