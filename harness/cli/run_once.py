"""What `harness run` does: one turn, its requests answered here, its stream shown in one of three ways."""

from __future__ import annotations

import anyio
import typer

from harness.cli.dry_run import dry_run
from harness.cli.logs import set_up_logs
from harness.cli.run import RunArguments
from harness.cli.run_plan import plan_of
from harness.cli.run_views import view_for
from harness.cli.running import Run, exit_code_of_run
from harness.cli.terminal import Terminal, open_terminal
from harness.errors import HarnessError


def run_once(arguments: RunArguments) -> None:
    """Runs the turn and ends with its exit code."""
    set_up_logs(verbose=arguments.verbose)
    with open_terminal(plain=arguments.plain) as terminal:
        code = _run(arguments, terminal)
    raise typer.Exit(code)


def _run(arguments: RunArguments, terminal: Terminal) -> int:
    run = Run(view_for(arguments, terminal))
    try:
        # outside the event loop: stdin and tools files may take their time, and Ctrl-C ends both
        plan = plan_of(arguments)
        if arguments.dry_run:
            terminal.write_data(f"{anyio.run(dry_run, plan)}\n")
            return 0
        completion = anyio.run(run.complete, plan)
    except HarnessError as error:
        completion = run.failed(error)
    run.view.end(completion)
    return exit_code_of_run(completion)
