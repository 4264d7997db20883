"""A server in small with a journal, whose one connector is the stand-in CLI. The test that starts it kills it.

journaling_owner.py JOURNAL STEP...      begins a conversation whose peer does these steps, and says its pids
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio

from connectors._environment import base_environment
from connectors._process import open_process
from connectors._recorded import RecordedProcesses, process_note
from contract_tests.connectors.processes import standin, told_pids
from harness.connector import SessionLog, TurnSink
from harness.contract import (
    ContentBlock,
    ConversationOptions,
    Delegation,
    HostRequest,
    HostResponse,
    LlmCapabilities,
    Notice,
    TurnOptions,
    as_content,
)
from harness.local import LocalHarness
from harness.registry import Registry
from harness.store import SqliteStore
from harness.turn.events import notice


class StandInSession:
    """Its turn lasts until somebody ends the process."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        sink.emit(notice("pids", json.dumps(self._pids)))
        await anyio.sleep_forever()

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        raise NotImplementedError

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        """It asks nothing."""

    async def interrupt(self) -> None:
        """It never stops by itself."""


class StandInConnector(RecordedProcesses):
    name = "standin"
    variants: Mapping[str, Mapping[str, Any]] = {}
    restricted_options: frozenset[str] = frozenset()

    def __init__(self, *steps: str) -> None:
        self._steps = steps

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        return LlmCapabilities(resume="continued")

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[StandInSession]:
        environment = base_environment(os.environ)
        async with open_process(standin(*self._steps), env=environment, grace_seconds=0.1) as process:
            log.append(process_note(process.record))
            children = sum(step.startswith("child") for step in self._steps)
            yield StandInSession([process.pid, *await told_pids(process, children)])


async def main(journal: str, *steps: str) -> None:
    registry = Registry({"standin": StandInConnector(*steps)})
    async with LocalHarness(registry, store=SqliteStore(Path(journal))) as llm:
        conversation_id = await llm.begin_conversation(ConversationOptions(connector="standin"))
        turn_id = await llm.submit_user_message(conversation_id, as_content("go"))
        state = await llm.poll_turn(conversation_id, turn_id, 0, 20_000)
        [told] = [json.loads(item.text) for item in state.new_output_items if isinstance(item, Notice)]
        print(json.dumps({"conversation": conversation_id, "turn": turn_id, "pids": told}), flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], *sys.argv[2:])
