"""`harness bench tools`: how well a model calls tools here. This file only says what may be typed."""

from __future__ import annotations

from typing import Annotated

import typer

from harness.cli.options import OptionOption

EXAMPLES = """\b
Examples:
  harness bench tools --connector ollama --model qwen3:4b-instruct
  harness bench tools --connector local -n 1 --made-up 30
  harness bench tools --connector openai:chat -O base_url=http://127.0.0.1:8080/v1 --model m --json
"""


def bench_tools(
    connector: Annotated[str, typer.Option(envvar="HARNESS_CONNECTOR", help="Whom to measure.")],
    model: Annotated[str | None, typer.Option(envvar="HARNESS_MODEL", help="As the connector names it.")] = None,
    repetitions: Annotated[int, typer.Option("-n", "--repetitions", min=1, help="How often each task is tried.")] = 3,
    made_up: Annotated[int, typer.Option(min=0, help="So many prompts about tools that nobody knows.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the made-up tools; the same seed gives the same ones.")] = 1,
    option: OptionOption = None,
    json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
) -> None:
    """Measure tool calling: each task several times, and a table of successes.

    The model really runs: with a provider's API this costs what its tokens cost. No real tool is run.
    """
    from harness.cli.benching import run_bench

    run_bench(
        connector,
        model,
        tuple(option or ()),
        repetitions=repetitions,
        made_up=made_up,
        seed=seed,
        as_json=json,
    )


def build_bench_app() -> typer.Typer:
    app = typer.Typer(help="Measure models.", epilog=EXAMPLES, no_args_is_help=True, rich_markup_mode=None)
    app.callback()(_keep_the_word)  # with one command typer would leave its name out
    app.command("tools")(bench_tools)
    return app


def _keep_the_word() -> None:
    """Measure models."""
