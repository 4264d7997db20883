"""`harness requests`: the inbox of a running server. This file only says what may be typed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  harness requests list
  harness requests list --url http://127.0.0.1:8800
  harness requests answer c_1/t1/a1 allow_once
  harness requests answer c_1/t1/a1 deny --reason "not on a Friday"
  harness requests answer c_1/t1/q1 --reply colour=Blue
"""
Url = Annotated[
    str | None, typer.Option(envvar="HARNESS_URL", help="A running 'harness serve'; by default the only one of yours.")
]


class ListOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class AnswerArguments:
    """What was typed, by the names of the options."""

    url: str | None
    request: str
    choice: str | None
    reason: str | None
    arguments: str | None
    replies: tuple[str, ...]
    result: str | None
    is_error: bool
    is_declined: bool


def list_requests(
    url: Url = None,
    output: Annotated[ListOutput, typer.Option("-o", "--output", help="What stdout gets.")] = ListOutput.TEXT,
) -> None:
    """List what waits for an answer: approvals, questions and calls of callers' tools."""
    from harness.cli.inbox import run_list

    run_list(url, as_json=output == ListOutput.JSON)


def answer_request(
    request: Annotated[str, typer.Argument(metavar="CONVERSATION/TURN/REQUEST", help="As 'list' names it.")],
    url: Url = None,
    choice: Annotated[
        str | None, typer.Argument(help="For an approval: an option's id, or allow_once, allow_always, deny.")
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Why it is denied; the model reads it.")] = None,
    arguments: Annotated[str | None, typer.Option(metavar="JSON", help="Other arguments to run it with.")] = None,
    reply: Annotated[
        list[str] | None,
        typer.Option(metavar="QUESTION=ANSWER", help="An option's id or label, or own words. Repeatable."),
    ] = None,
    result: Annotated[str | None, typer.Option(metavar="TEXT", help="The result of a tool call.")] = None,
    error: Annotated[bool, typer.Option("--error", help="The result is a failure.")] = False,
    decline: Annotated[bool, typer.Option("--decline", help="Do not answer the question.")] = False,
) -> None:
    """Answer one request, from any process that may talk to the server."""
    from harness.cli.inbox import run_answer

    run_answer(
        AnswerArguments(
            url=url,
            request=request,
            choice=choice,
            reason=reason,
            arguments=arguments,
            replies=tuple(reply or ()),
            result=result,
            is_error=error,
            is_declined=decline,
        )
    )


def build_requests_app() -> typer.Typer:
    app = typer.Typer(
        help="See and answer what waits at a running server.",
        epilog=EXAMPLES,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.command("list", epilog=EXAMPLES)(list_requests)
    app.command("answer", epilog=EXAMPLES)(answer_request)
    return app
