"""The channel of a provider: our requests and its answers, with a tee between or a stand-in in its place.

It goes where the connector option `base_url` points.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.errors import NotSupported
from harness.testing.checks import Divergence
from harness.testing.peers.replay_http import open_http_replay
from harness.testing.peers.tee_http import open_http_tee
from harness.testing.row import Prepared, Row
from harness.testing.running import Outcome, run_scenario
from harness.testing.scenario import Scenario


async def watch(
    scenario: Scenario, row: Row, directory: Path, connector_options: Mapping[str, Any]
) -> tuple[Outcome, list[dict[str, Any]], dict[str, str]]:
    """Plays the scenario before the row's provider; what came of it, all that was said, and what to scrub from it.

    Raises:
        NotSupported: the row has no provider.
    """
    records: list[dict[str, Any]] = []
    rest = {name: value for name, value in connector_options.items() if name != "base_url"}

    @asynccontextmanager
    async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
        async with row.prepare(scenario, directory) as prepared:
            target = str(connector_options.get("base_url") or _base_url(prepared) or "")
            if not target.startswith("http://"):
                raise NotSupported(f"'{row.name}' starts no program and has no 'base_url': there is nothing to record")
            async with open_http_tee(target) as (url, tee):
                yield replace(prepared, options=_led_to(prepared, target, url).options)
            records.extend(tee.records)

    outcome = await run_scenario(scenario, replace(row, prepare=prepare), directory, rest)
    return outcome, records, {}


def stood_in(row: Row, lines: Sequence[str], cuts: Sequence[int]) -> Row:
    """The row with the recording in the place of its provider."""

    @asynccontextmanager
    async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
        async with row.prepare(scenario, directory) as prepared:
            async with open_http_replay(lines, directory, cuts) as (url, replay):
                try:
                    yield Prepared(_led_to(prepared, _base_url(prepared) or "", url).options)
                except Exception as error:
                    # where it began says more than what came of it
                    if replay.difference is None:
                        raise
                    raise Divergence(replay.difference) from error
            problem = replay.difference or replay.missing()
            if problem is not None:
                raise Divergence(problem)

    return replace(row, prepare=prepare)


def _base_url(prepared: Prepared) -> str | None:
    return json.loads(prepared.options.connector_options_json or "{}").get("base_url")


def _led_to(prepared: Prepared, target: str, url: str) -> Prepared:
    """The options with another server and the same path."""
    options = json.loads(prepared.options.connector_options_json or "{}") | {"base_url": url + urlsplit(target).path}
    return replace(
        prepared, options=prepared.options.model_copy(update={"connector_options_json": json.dumps(options)})
    )
