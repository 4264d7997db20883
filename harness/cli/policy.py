"""`harness policy`: what a policy says about a call, and which project's policy counts. Only what may be typed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  harness policy test 'allow Bash(git diff *)' 'Bash(git diff HEAD; rm x)'
  harness policy test policy.toml '{"tool": "Write", "arguments": {"file_path": "../x"}}'
  harness policy trust .
"""


class PolicyOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


class KindChoice(StrEnum):
    APPROVAL = "approval"
    TOOL_CALL = "tool_call"


def test_policy(
    rules: Annotated[
        str, typer.Argument(help="A policy file, or rules: 'deny Bash(rm *); ask Bash; allow Edit(src/**)'.")
    ],
    call: Annotated[str, typer.Argument(help="A call: 'Bash(git diff)', or JSON with 'tool' and 'arguments'.")],
    cwd: Annotated[Path, typer.Option(help="Directory the call would run in.")] = Path(),
    kind: Annotated[
        KindChoice, typer.Option(help="A tool of the peer's own, or one that the caller gives.")
    ] = KindChoice.APPROVAL,
    connector: Annotated[str | None, typer.Option(help="Connector the call would come from.")] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="The call is known to change nothing.")] = False,
    output: Annotated[PolicyOutput, typer.Option("-o", "--output", help="What stdout gets.")] = PolicyOutput.TEXT,
) -> None:
    """Explain what a policy says about one call. Nothing is run."""
    from harness.cli.policy_commands import explain

    typer.echo(
        explain(
            rules,
            call,
            cwd=cwd,
            kind=kind.value,
            connector=connector,
            read_only=read_only or None,
            as_json=output == PolicyOutput.JSON,
        )
    )


def trust_policy(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The project's directory.")] = Path(),
) -> None:
    """Let the allow rules and the mode of a project's .harness/policy.toml count, until that file changes."""
    from harness.cli.policy_commands import trust_project

    for line in trust_project(directory):
        typer.echo(line)


def build_policy_app() -> typer.Typer:
    app = typer.Typer(
        help="See what a policy says about a call, and trust a project's policy.",
        epilog=EXAMPLES,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.command("test", epilog=EXAMPLES)(test_policy)
    app.command("trust", epilog=EXAMPLES)(trust_policy)
    return app
