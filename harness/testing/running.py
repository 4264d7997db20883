"""Plays a scenario on a row and says what came of it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import anyio

from harness.contract.capabilities import LlmCapabilities
from harness.contract.options import ConversationOptions
from harness.errors import HarnessError
from harness.local import LocalHarness
from harness.scripted_model.server import ScriptedModel
from harness.store.memory import MemoryStore
from harness.testing.checks import Divergence
from harness.testing.rows import Prepared, Row
from harness.testing.scenario import Need, Scenario
from harness.testing.talk import Talk
from harness.testing.trace import canonical

REFUSING_CODES = frozenset({"not_supported", "content_not_supported", "invalid_argument"})


class Verdict(StrEnum):
    SUPPORTED = "supported"
    REFUSED = "refused"
    """As the capability says, by an error of the contract."""
    EXEMPT = "exempt"
    """The peer gives no occasion for it."""
    GAP = "gap"
    """Known not to hold yet."""


@dataclass(frozen=True)
class Outcome:
    """`because` is the capability that refuses, or the reason of the row; `peer` the program or service and version."""

    verdict: Verdict
    because: str = ""
    peer: str = ""
    trace: tuple[str, ...] = ()
    """What the host saw, in canonical form."""
    note: str = ""
    """What the peer was seen to do otherwise though the contract is kept."""


class OpenStage:
    """A row with its peer, in a house over a journal."""

    def __init__(
        self, row: Row, scenario: Scenario, prepared: Prepared, directory: Path, connector_options: Mapping[str, Any]
    ) -> None:
        self._row = row
        self._prepared = prepared
        given = json.loads(prepared.options.connector_options_json or "{}")
        chosen = {"connector_options_json": json.dumps({**given, **connector_options})}
        self._options = prepared.options.model_copy(update={"cwd": str(directory), **chosen})
        self._scenario = scenario
        self.directory = directory
        self._journal = MemoryStore()
        self._stack = AsyncExitStack()
        self._house: LocalHarness | None = None
        self._begun: list[str] = []
        self.capabilities = LlmCapabilities()

    @property
    def model(self) -> ScriptedModel | None:
        return self._prepared.model

    @property
    def keeps_order(self) -> bool:
        return not self._row.mixes_calls

    def peer_name(self, name: str) -> str:
        return self._row.peer_name(name)

    @property
    def peer(self) -> str:
        """Name and version of what is underneath."""
        inner = self.capabilities.inner
        told = "" if inner is None else " ".join(part for part in (inner.name, inner.version) if part)
        return re.sub(r"http://127\.0\.0\.1:\d+", "scripted model", told)

    def options(self, **changes: Any) -> ConversationOptions:
        internal = [self.peer_name(name) for name in self._scenario.internal_tools]
        asked = {
            "tools": list(self._scenario.tools),
            "internal_tools": internal,
            **self._scenario.options,
            **changes,
        }
        return self._options.model_copy(update=asked)

    async def open(self) -> None:
        self._house = await self._stack.enter_async_context(
            LocalHarness(self._row.registry(), store=MemoryStore(self._journal))
        )
        # of the connector, whatever this scenario asks of it
        self.capabilities = await self._house.get_capabilities(self._options)

    async def close(self) -> None:
        await self._stack.aclose()

    async def begin(self, **options: Any) -> Talk:
        house = self._open_house()
        talk = Talk(house, await house.begin_conversation(self.options(**options)))
        self._begun.append(talk.conversation_id)
        return talk

    async def restart(self, talk: Talk) -> Talk:
        await self.close()
        await self.open()
        return Talk(self._open_house(), talk.conversation_id)

    async def trace(self) -> list[str]:
        """What the host has seen so far, in canonical form."""
        house = self._open_house()
        exports = [await house.export_conversation(one) for one in self._begun]
        return canonical([export.turns for export in exports], {str(self.directory.parent): "<directory>"})

    def kill_peer(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def _open_house(self) -> LocalHarness:
        if self._house is None:
            raise RuntimeError("the stage is not open")
        return self._house


@asynccontextmanager
async def open_stage(
    row: Row, scenario: Scenario, directory: Path, connector_options: Mapping[str, Any]
) -> AsyncGenerator[OpenStage]:
    """The row's peer, ready for the scenario; `directory` is the peer's, and below it the work directory."""
    work = directory / "project"
    work.mkdir(parents=True, exist_ok=True)
    async with row.prepare(scenario, directory) as prepared:
        stage = OpenStage(row, scenario, prepared, work, connector_options)
        try:
            await stage.open()
            yield stage
        finally:
            await stage.close()


async def run_scenario(
    scenario: Scenario, row: Row, directory: Path, connector_options: Mapping[str, Any] | None = None
) -> Outcome:
    """Plays the scenario; returns when the connector kept the contract, or breaks it where that is known.

    `connector_options` are added to those of the row.

    Raises:
        Divergence: it did not, and says where; or a known gap is none any more.
        ConnectorUnavailable: the connector cannot be used here.
    """
    if scenario.name in row.exempt:
        return Outcome(Verdict.EXEMPT, row.exempt[scenario.name])
    gap = row.known_gaps.get(scenario.name)
    try:
        with anyio.fail_after(scenario.seconds):
            outcome = await _play(scenario, row, directory, connector_options or {})
    except TimeoutError:
        raise Divergence(f"scenario '{scenario.name}' did not end within {scenario.seconds:g} s") from None
    except Divergence:
        if gap is None:
            raise
        return Outcome(Verdict.GAP, gap)
    if gap is not None and scenario.name in row.chance:
        return Outcome(Verdict.GAP, gap)
    if gap is not None:
        raise Divergence(f"'{scenario.name}' holds for '{row.name}' now: take it out of its known gaps")
    return outcome


async def _play(scenario: Scenario, row: Row, directory: Path, connector_options: Mapping[str, Any]) -> Outcome:
    async with open_stage(row, scenario, directory, connector_options) as stage:
        missing = next((need for need in scenario.needs if not need.is_met(stage.capabilities)), None)
        if missing is not None:
            await _expect_refusal(scenario, stage, missing)
            return Outcome(Verdict.REFUSED, missing.name, peer=stage.peer)
        await scenario.run(stage)
        trace = tuple(await stage.trace())
        return Outcome(Verdict.SUPPORTED, note=_note(scenario, row, stage.model), peer=stage.peer, trace=trace)


def _note(scenario: Scenario, row: Row, model: ScriptedModel | None) -> str:
    order = row.mixes_calls if scenario.has_calls_at_once else ""
    return "; ".join(told for told in (_seen_words(row, model), order) if told)


def _seen_words(row: Row, model: ScriptedModel | None) -> str:
    """What the row tells of the words around results, where there were any."""
    if row.words is None or model is None:
        return ""
    had_words = any(past.had_words for request in model.requests for past in request.past_calls)
    return row.words.told if had_words else ""


async def _expect_refusal(scenario: Scenario, stage: OpenStage, missing: Need) -> None:
    """What a connector cannot do it refuses with an error of the contract, it never just leaves it out."""
    try:
        await scenario.run(stage)
    except HarnessError as error:
        if error.code not in REFUSING_CODES:
            raise Divergence(f"without '{missing.name}' the refusal was '{error.code}': {error.message}") from error
        return
    except Divergence as divergence:
        raise Divergence(f"without '{missing.name}' it was not refused but done otherwise: {divergence}") from None
    raise Divergence(f"the capability '{missing.name}' is not told, and yet it works: tell it")
