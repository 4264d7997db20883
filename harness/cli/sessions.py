"""`harness sessions`: the conversations in the journal. This file only says what may be typed."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from harness.cli.options import StoreOption

EXAMPLES = """\b
Examples:
  harness sessions list
  harness sessions show c_0123456789abcdef0123
  harness sessions export c_0123456789abcdef0123 --format markdown > talk.md
  harness sessions prune --older-than 30d --dry-run
  harness run --continue "And tomorrow?"
"""


class SessionsOutput(StrEnum):
    TEXT = "text"
    JSON = "json"


class Transcript(StrEnum):
    """The members of `TranscriptFormat`, which is not loaded for `--help`."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSONL = "jsonl"


OutputOption: TypeAlias = Annotated[SessionsOutput, typer.Option("-o", "--output", help="What stdout gets.")]
ConfigOption: TypeAlias = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Configuration, in place of the user's config.toml.")
]
Id: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="As 'list' names it.")]


def list_sessions(
    limit: Annotated[int, typer.Option(min=1, metavar="NUMBER", help="So many, the most recently used first.")] = 20,
    output: OutputOption = SessionsOutput.TEXT,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """List conversations, with what waits in them and what their processes take of the memory."""
    from harness.cli.session_commands import run_list

    run_list(store, config, limit=limit, as_json=output == SessionsOutput.JSON)


def show_session(
    conversation_id: Id,
    form: Annotated[Transcript, typer.Option("-f", "--format", help="How to write it.")] = Transcript.TEXT,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Show a whole conversation; as JSONL, each item as it is on the wire."""
    from harness.cli.session_commands import run_transcript

    run_transcript(conversation_id, form, None, store, config)


def export_session(
    conversation_id: Id,
    form: Annotated[Transcript, typer.Option("-f", "--format", help="How to write it.")] = Transcript.MARKDOWN,
    file: Annotated[Path | None, typer.Option("--file", metavar="FILE", help="Where to, by default stdout.")] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Write a whole conversation to a file."""
    from harness.cli.session_commands import run_transcript

    run_transcript(conversation_id, form, file, store, config)


def delete_sessions(
    conversation_ids: Annotated[list[str], typer.Argument(metavar="ID...", help="As 'list' names them.")],
    output: OutputOption = SessionsOutput.TEXT,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Forget conversations for ever. One that another process has open is refused."""
    from harness.cli.session_commands import run_delete

    run_delete(conversation_ids, store, config, as_json=output == SessionsOutput.JSON)


def prune_sessions(
    older_than: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Those not used for longer: 30d, 12h ...")
    ] = None,
    max_size: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The longest unused, until the rest takes less: 500M, 2G ...")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and keep it.")] = False,
    output: OutputOption = SessionsOutput.TEXT,
    store: StoreOption = None,
    config: ConfigOption = None,
) -> None:
    """Forget old conversations. What is open, or waits to be gone on with, stays."""
    from harness.cli.session_commands import run_prune

    as_json = output == SessionsOutput.JSON
    run_prune(older_than, max_size, store, config, dry_run=dry_run, as_json=as_json)


def build_sessions_app() -> typer.Typer:
    app = typer.Typer(
        help="List, read and forget the conversations that the journal keeps.",
        epilog=EXAMPLES,
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    app.command("list", epilog=EXAMPLES)(list_sessions)
    app.command("show", epilog=EXAMPLES)(show_session)
    app.command("export", epilog=EXAMPLES)(export_session)
    app.command("delete", epilog=EXAMPLES)(delete_sessions)
    app.command("prune", epilog=EXAMPLES)(prune_sessions)
    return app
