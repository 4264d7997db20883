"""Real times, for `make soak`: the agents that are programs of their own, each with a call and an approval that wait.

All agents wait side by side, so that it takes as long as one of them.
"""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from contract_tests.peers_installed import path_with_peers, peer_program
from contract_tests.requirements import requirement
from harness.contract import Timeouts
from harness.contract.requests import RequestKind
from harness.errors import HarnessError
from harness.testing.agent_rows import AGENTS
from harness.testing.checks import Divergence, holds, same
from harness.testing.row import Row
from harness.testing.running import Verdict, run_scenario
from harness.testing.scenario import Scenario, Stage, call, run_command
from harness.testing.talk import Talk, choice, result

CALL_SECONDS = float(os.environ.get("HARNESS_SOAK_CALL_SECONDS", "375"))
APPROVAL_SECONDS = float(os.environ.get("HARNESS_SOAK_APPROVAL_SECONDS", "620"))
BEFORE_ITS_LIMIT = 15.0
"""Some agents end a call themselves, after the time that the capability `max_call_wait_ms` tells."""
ROWS_HELD = [row for row in AGENTS if peer_program(row.program or "") is not None]

pytestmark = pytest.mark.skipif("HARNESS_SOAK" not in os.environ, reason="takes a quarter of an hour: make soak")


async def wait(seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await anyio.sleep_forever()


async def hold(talk: Talk, seconds: float) -> None:
    turn_id = await talk.start("1")
    [request] = await talk.pending(turn_id)
    await wait(seconds)
    await talk.answer(turn_id, result(request, "late"))
    turn = await talk.finished(turn_id)
    same("how the turn with the late result ended", turn.end, ("completed", "end_turn"))
    holds("the late result reached the model", "late" in turn.text, turn.text)


async def approve(talk: Talk, directory: Path) -> None:
    turn_id = await talk.start("2")
    [request] = await talk.pending(turn_id)
    same("what was asked", request.kind, RequestKind.APPROVAL)
    await wait(APPROVAL_SECONDS)
    await talk.answer(turn_id, choice(request, "allow_once"))
    same("how the turn with the late permission ended", (await talk.finished(turn_id)).end, ("completed", "end_turn"))
    holds("the permitted command ran", (directory / "made").exists())


async def run(stage: Stage) -> None:
    limit = stage.capabilities.max_call_wait_ms
    asks = RequestKind.APPROVAL in stage.capabilities.routable_request_kinds
    patience = {"timeouts": Timeouts(tool_ms=None, approval_ms=None)}
    talk = await stage.begin(**patience, **({} if asks else {"internal_tools": []}))
    await hold(talk, CALL_SECONDS if limit is None else min(CALL_SECONDS, limit / 1000 - BEFORE_ITS_LIMIT))
    if asks:
        await approve(talk, stage.directory)


HELD = Scenario(
    name="held",
    requirements=("R-A2",),
    script=[
        [{"calls": [call("save", "call_1", note="x")]}, {"text": "{{results.call_1}}"}],
        [{"calls": [run_command("call_2", "touch made")]}, {"text": "Done."}],
    ],
    run=run,
    seconds=CALL_SECONDS + APPROVAL_SECONDS + 120,
)


@requirement("R-A2", "R-D3")
@pytest.mark.skipif(not ROWS_HELD, reason="no agent is installed: type: make peers")
async def test_the_agents_wait_as_long_as_people_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", path_with_peers(os.environ["PATH"]))
    ended: dict[str, str] = {}

    async def walk(row: Row) -> None:
        begun = anyio.current_time()
        try:
            outcome = await run_scenario(HELD, row, tmp_path / row.name.replace(":", "-"))
        except (Divergence, HarnessError, ValueError) as error:
            ended[row.name] = f"{type(error).__name__} after {anyio.current_time() - begun:.0f} s: {error}"
        else:
            ended[row.name] = outcome.verdict

    async with anyio.create_task_group() as group:
        for row in ROWS_HELD:
            group.start_soon(walk, row)
    assert ended == {row.name: Verdict.SUPPORTED for row in ROWS_HELD}
