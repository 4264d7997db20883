"""`harness models`: which models there are. This file only says what may be typed."""

from __future__ import annotations

from typing import Annotated

import typer

EXAMPLES = """\b
Examples:
  harness models list
  harness models list --connector ollama --json
  harness models show qwen3:4b-instruct
  harness models pull qwen3:4b-instruct
"""
Connectors = Annotated[
    list[str] | None,
    typer.Option("--connector", envvar="HARNESS_CONNECTOR", help="Whom to ask. Repeatable, else every one."),
]
Options = Annotated[
    list[str] | None,
    typer.Option("-O", "--option", metavar="KEY=VALUE", help="Option of the connector, value in JSON. Repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON on stdout.")]
Name = Annotated[str, typer.Argument(metavar="MODEL", help="As the connector names it.")]


def list_models(connector: Connectors = None, option: Options = None, json: AsJson = False) -> None:
    """List the models of every connector that can be asked here; why others cannot goes to stderr."""
    from harness.cli.model_catalog import run_list

    run_list(tuple(connector or ()), tuple(option or ()), as_json=json)


def show_model(name: Name, connector: Connectors = None, option: Options = None, json: AsJson = False) -> None:
    """Show size, context window and abilities of a model."""
    from harness.cli.model_catalog import run_show

    run_show(name, tuple(connector or ()), tuple(option or ()), as_json=json)


def pull_model(name: Name, connector: Connectors = None, option: Options = None) -> None:
    """Bring a model onto the machine of its server."""
    from harness.cli.model_catalog import run_pull

    run_pull(name, tuple(connector or ()), tuple(option or ()))


def build_models_app() -> typer.Typer:
    app = typer.Typer(help="See and fetch models.", epilog=EXAMPLES, no_args_is_help=True, rich_markup_mode=None)
    app.command("list")(list_models)
    app.command("show")(show_model)
    app.command("pull")(pull_model)
    return app
