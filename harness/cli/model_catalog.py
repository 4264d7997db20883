"""What `harness models` does: asks every connector that keeps a catalogue."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

import anyio
import typer
from rich.console import Console
from rich.progress import Progress, TaskID

from harness.cli.failures import complain
from harness.cli.terminal import printable
from harness.cli.values import pairs
from harness.connector import ModelCatalog, ModelInfo, ModelSource
from harness.contract.options import ConversationOptions
from harness.errors import HarnessError, InvalidArgument, unwrapped
from harness.registry import Registry

Found = list[tuple[str, ModelInfo]]


def run_list(connectors: Sequence[str], options: Sequence[str], *, as_json: bool) -> None:
    found = anyio.run(_ask, connectors, options)
    if as_json:
        typer.echo(json.dumps([_as_json(name, info) for name, info in found], ensure_ascii=False, indent=2))
        return
    for name, info in found:
        typer.echo(printable(_line(name, info)))


def run_show(model: str, connectors: Sequence[str], options: Sequence[str], *, as_json: bool) -> None:
    found = [(name, info) for name, info in anyio.run(_ask, connectors, options) if info.name == model]
    if not found:
        raise InvalidArgument(f"no model '{model}' here; type: harness models list")
    for name, info in found:
        if as_json:
            typer.echo(json.dumps(_as_json(name, info), ensure_ascii=False, indent=2))
        else:
            facts = {key: value for key, value in _as_json(name, info).items() if value not in (None, "", [])}
            typer.echo(printable("\n".join(f"{key:15} {value}" for key, value in facts.items())))


def run_pull(model: str, connectors: Sequence[str], options: Sequence[str]) -> None:
    """A progress bar on stderr; the connection's end ends the pull, and a later one goes on."""
    anyio.run(_pull, model, connectors, options)
    typer.echo(printable(f"'{model}' is there"))


async def _ask(connectors: Sequence[str], options: Sequence[str]) -> Found:
    """Every connector that can be asked; the others say on stderr why not, and so does the only one named."""
    registry = Registry()
    found: Found = []
    for name in connectors or registry.names():
        try:
            connector, asked = registry.resolve(_options(name, options))
            if isinstance(connector, ModelCatalog):
                with unwrapped():
                    found += [(name, info) for info in await connector.list_models(asked)]
            elif connectors:
                raise InvalidArgument(f"connector '{name}' keeps no list of models")
        except HarnessError as error:
            if len(connectors) == 1:
                raise
            complain(f"{name}: {error.message}")
    return found


async def _pull(model: str, connectors: Sequence[str], options: Sequence[str]) -> None:
    registry = Registry()
    for name in connectors or registry.names():
        connector, asked = registry.resolve(_options(name, options))
        if not isinstance(connector, ModelSource):
            continue
        with Progress(console=Console(stderr=True)) as bar, unwrapped():
            await connector.pull_model(asked, model, partial(_show_progress, bar, bar.add_task(model, total=None)))
        return
    raise InvalidArgument("no connector that was named can pull models; 'ollama' can")


def _show_progress(bar: Progress, task: TaskID, status: str, completed: int | None, total: int | None) -> None:
    bar.update(task, description=printable(status), completed=completed or 0, total=total)


def _options(connector: str, options: Sequence[str]) -> ConversationOptions:
    chosen = pairs(options)
    return ConversationOptions(connector=connector, connector_options_json=json.dumps(chosen) if chosen else None)


def _as_json(connector: str, info: ModelInfo) -> dict[str, object]:
    facts = asdict(info)
    return {"connector": connector, **facts, "capabilities": list(info.capabilities)}


def _line(connector: str, info: ModelInfo) -> str:
    size = "" if info.size_bytes is None else f"{info.size_bytes / 1e9:.1f} GB"
    window = "" if info.context_window is None else f"{info.context_window} tokens"
    able = ", ".join(info.capabilities)
    return f"{connector:10} {info.name:32} {size:>9} {window:>14}  {able:24} {info.about}".rstrip()
