"""What a mistake looks like: one line on stderr with the remedy, and the right exit code. Never a stack trace."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer

from harness.cli.terminal import printable

USAGE = 2
"""What the caller typed, or a file named there, cannot be used."""
_USAGE_CODES = frozenset({"invalid_argument", "config_error"})


def complain(message: str) -> None:
    """One line on stderr, whatever the message holds; but no secret."""
    from harness.trace.redaction import Redactor, secrets_of_environment

    told = Redactor(secrets_of_environment(os.environ)).text(" ".join(message.split()))
    typer.echo(f"harness: {printable(told)}", err=True)


def exit_code_of(code: str) -> int:
    """The exit code of a broken call. Before a turn begins a wrong argument is a usage error, not a failure."""
    from harness.contract.output import StopReason, TurnStatus
    from harness.orchestrator.exit_codes import exit_code

    if code in _USAGE_CODES:
        return USAGE
    return exit_code(TurnStatus.FAILED, StopReason.ERROR, code)


@contextmanager
def reported(*, verbose: bool = False) -> Generator[None]:
    """Turns what escapes a command into its line and the end of the process."""
    from harness.errors import HarnessError

    try:
        yield
    except HarnessError as error:
        complain(error.message)
        raise SystemExit(exit_code_of(error.code)) from None
    except Exception as error:
        # the edge of the program: nobody is left to handle it
        complain(f"internal error, {type(error).__name__}: {error}{'' if verbose else ' (-v shows where)'}")
        if verbose:
            import traceback

            traceback.print_exc(file=sys.stderr)
        raise SystemExit(1) from None
