"""What `harness bench` does: tries tasks on a model and tells how often it did them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median

import anyio
import typer

from harness.cli.terminal import printable
from harness.cli.values import pairs
from harness.contract.options import ConversationOptions
from harness.local import LocalHarness
from harness.testing.tool_bench import Trial, run_trials, success_rates
from harness.testing.tool_tasks import made_up_tasks, standing_tasks


def run_bench(
    connector: str,
    model: str | None,
    options: Sequence[str],
    *,
    repetitions: int,
    made_up: int,
    seed: int,
    as_json: bool,
) -> None:
    chosen = pairs(options)
    asked = ConversationOptions(
        connector=connector, model=model, connector_options_json=json.dumps(chosen) if chosen else None
    )
    trials, peer = anyio.run(_measure, asked, repetitions, made_up, seed)
    rates = success_rates(trials)
    if as_json:
        tasks = [{"task": task, "successes": ok, "trials": of} for task, (ok, of) in rates.items()]
        told = {"connector": connector, "model": model, "peer": peer, "seed": seed, "tasks": tasks}
        typer.echo(json.dumps({**told, "trials": [asdict(trial) for trial in trials]}, ensure_ascii=False, indent=2))
        return
    for task, (successes, of) in rates.items():
        seconds = median(trial.seconds for trial in trials if trial.task == task)
        typer.echo(f"{task:20} {successes:3} of {of:3}  {successes / of:4.0%}  {seconds:6.1f} s")
    successes, of = sum(ok for ok, _ in rates.values()), len(trials)
    typer.echo(f"{'all':20} {successes:3} of {of:3}  {successes / of:4.0%}  {printable(peer)}")


async def _measure(options: ConversationOptions, repetitions: int, made_up: int, seed: int) -> tuple[list[Trial], str]:
    """Each trial is told on stderr as it ends."""
    trials: list[Trial] = []
    async with LocalHarness() as house:
        inner = (await house.get_capabilities(options)).inner
        tasks = [*standing_tasks(), *made_up_tasks(random.Random(seed), prompts=made_up)]
        async for trial in run_trials(house, options, tasks, repetitions):
            trials.append(trial)
            outcome = "ok" if trial.is_success else printable(trial.problem or "did something else")
            typer.echo(f"{trial.task}: {outcome} ({trial.seconds:.1f} s)", err=True)
    return trials, "" if inner is None else " ".join(part for part in (inner.name, inner.version) if part)
