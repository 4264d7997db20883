"""`harness demo`: the main job on this machine, without a key. This file only says what may be typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  harness demo
  harness demo --log requests.jsonl
"""


def demo(
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append each request that the model received to this file, one JSON line."),
    ] = None,
    plain: Annotated[bool, typer.Option("--plain", help="No colours; also by NO_COLOR or without a terminal.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more, with tracebacks.")] = False,
) -> None:
    """Let the real Claude Code CLI call Python functions.

    The CLI is the installed one, in a clean environment. Its model is a script on this machine: no key, no account,
    no traffic.
    """
    from harness.cli.demo_show import show

    show(log=log, plain=plain, verbose=verbose)
