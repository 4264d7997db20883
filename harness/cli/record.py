"""`harness record`: writes down what a peer and its connector say. This file only says what may be typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from harness.cli.options import OptionOption, VerboseOption

EXAMPLES = """\b
Examples:
  harness record --connector claude --scenario one-call
  harness record --connector claude --all -O command=/opt/claude/2.1.197/claude
  harness record --connector openai --all
"""


def record(
    connector: Annotated[str, typer.Option(envvar="HARNESS_CONNECTOR", help="Whose peer: claude, openai:chat ...")],
    scenario: Annotated[list[str] | None, typer.Option(metavar="NAME", help="What is played. Repeatable.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every scenario.")] = False,
    option: OptionOption = None,
    to: Annotated[
        Path | None, typer.Option(metavar="DIRECTORY", help="By default fixtures/<connector>/<version of the peer>.")
    ] = None,
    verbose: VerboseOption = False,
) -> None:
    """Record what a connector and its peer say before a scripted model: pipes, HTTP, and a CLI's requests to us.

    Keys, paths, ids and times are taken out, so that two recordings differ only where the peer does. Each recording is
    played once before it is kept. Exit code 1: one does not repeat itself.
    """
    from harness.cli.recording import run_record

    run_record(connector, tuple(scenario or ()), tuple(option or ()), to, everything=everything, verbose=verbose)
