"""What a killed harness left of a real agent is ended by the next one, by what the journal has of it."""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from contract_tests.connectors.processes import ENVIRONMENT, kill, living
from contract_tests.core.test_stale_processes import reaper_of
from contract_tests.llm_suite import is_over, until
from contract_tests.peers_installed import needs_peer, path_with_peers
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.local import LocalHarness
from harness.registry import Registry
from harness.store import SqliteStore

OWNER = Path(__file__).parent.parent / "peers" / "agent_owner.py"
ROWS = {
    "codex": "codex",
    "copilot:sdk": "copilot",
    "copilot:acp": "copilot",
    "acp:claude-agent-acp": "claude-agent-acp",
}


@requirement("agents:reaped", "R-C6")
@pytest.mark.parametrize("row", [pytest.param(row, marks=needs_peer(program)) for row, program in ROWS.items()])
async def test_the_next_harness_ends_the_agent_of_one_that_was_killed(row: str, tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    directory = tmp_path / "peer"
    directory.mkdir()
    path = path_with_peers(ENVIRONMENT["PATH"])
    command = [sys.executable, str(OWNER), row, str(journal), str(directory)]
    environment = {**ENVIRONMENT, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)}
    process = await anyio.open_process(command, stderr=None, env=environment)
    pids: list[int] = []
    async with process:
        try:
            output = BufferedByteReceiveStream(process.stdout)  # pyright: ignore[reportArgumentType]
            with anyio.fail_after(60):
                told = json.loads(await output.receive_until(b"\n", 1 << 20))
            pids = told["pids"]
            for pid in pids:  # or some see that nobody is there any more and end by themselves
                os.kill(pid, signal.SIGSTOP)
            os.kill(reaper_of(process, pids), signal.SIGKILL)
            process.kill()
            await process.wait()
            assert living(pids) == pids
            with anyio.fail_after(30):
                async with LocalHarness(Registry(), store=SqliteStore(journal)) as llm:
                    assert living(pids) == []
                    state, _ = await until(llm, (told["conversation"], told["turn"]), is_over)
            assert state.error is not None and state.error.code == "peer_lost"
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            kill(pids)
