"""`harness doctor`: which connectors can be used on this machine. This file only says what may be typed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from harness.cli.options import OptionOption, VerboseOption

EXAMPLES = """\b
Examples:
  harness doctor
  harness doctor --connector claude -o json
  harness doctor --connector claude -O command=/opt/claude/claude
"""


class DoctorOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


def doctor(
    connector: Annotated[
        list[str] | None, typer.Option(envvar="HARNESS_CONNECTOR", help="What to look at. Repeatable, else all.")
    ] = None,
    option: OptionOption = None,
    output: Annotated[DoctorOutput, typer.Option("-o", "--output", help="What stdout gets.")] = DoctorOutput.TEXT,
    verbose: VerboseOption = False,
) -> None:
    """Tell which connectors can be used here, and what to type for the others.

    No model is asked and nothing leaves this machine but a look at servers that are configured. Exit code 0: all that
    were named can be used, or one at all; 3: not so.
    """
    from harness.cli.doctoring import run_doctor

    run_doctor(tuple(connector or ()), tuple(option or ()), output, verbose=verbose)
