"""A server in small with a journal and one real agent, whose turn waits for a tool. The test that starts it kills it.

agent_owner.py ROW JOURNAL DIRECTORY      begins a conversation, and says its id and the agent's pid
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio

from harness.local import LocalHarness
from harness.registry import Registry
from harness.store import SqliteStore
from harness.testing.agent_rows import AGENTS
from harness.testing.scenario import SAVE, Scenario, Stage, call, pid_in
from harness.testing.talk import Talk


async def never(stage: Stage) -> None:
    raise NotImplementedError


WAITS = Scenario(name="waits", requirements=(), script=[[{"calls": [call("save", "call_1")]}]], run=never)


async def main(name: str, journal: str, directory: str) -> None:
    [row] = [row for row in AGENTS if row.name == name]
    work = Path(directory) / "project"
    work.mkdir()
    async with (
        row.prepare(WAITS, Path(directory)) as prepared,
        LocalHarness(Registry(), store=SqliteStore(Path(journal))) as llm,
    ):
        options = prepared.options.model_copy(update={"cwd": str(work), "tools": [SAVE]})
        talk = Talk(llm, await llm.begin_conversation(options))
        turn_id = await talk.start()
        await talk.pending(turn_id)
        pid = pid_in((await talk.now(turn_id)).notices("peer_started"))
        print(json.dumps({"conversation": talk.conversation_id, "turn": turn_id, "pids": [pid]}), flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    _, row_name, home, journal_file = sys.argv
    anyio.run(main, row_name, home, journal_file)
