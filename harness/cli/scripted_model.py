"""`harness scripted-model SCRIPT`: a model that follows a script, for a CLI under test."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLES = """\b
A script, of two model calls:
  - text: I look.
    calls: [{name: get_weather, arguments: {city: Oslo}}]
  - text: "It is so: {{results.get_weather}}."

\b
Examples:
  harness scripted-model script.yaml --port 8900 --log requests.jsonl
  export ANTHROPIC_BASE_URL=http://127.0.0.1:8900 ANTHROPIC_API_KEY=made-up
  harness run "What is the weather in Oslo?" --connector claude --tools tools.py
"""


def scripted_model(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="YAML or JSON: a list, one entry per model call.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
    log: Annotated[Path | None, typer.Option(help="Append each received request to this file, one JSON line.")] = None,
) -> None:
    """Serve a model that follows a script.

    It speaks the Anthropic, OpenAI, Ollama and Gemini APIs on loopback, until Ctrl-C.
    """
    import anyio

    from harness.errors import ConfigError

    try:
        anyio.run(_serve, script, port, log)
    except ConfigError as error:
        typer.echo(f"harness: {error.message}", err=True)
        raise typer.Exit(2) from None


async def _serve(script: Path, port: int, log: Path | None) -> None:
    import signal

    import anyio

    from harness.scripted_model import open_scripted_model

    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async with open_scripted_model(script, port=port, log=log) as model:
            typer.echo(f"listening on {model.url}")
            async for _ in signals:
                return
