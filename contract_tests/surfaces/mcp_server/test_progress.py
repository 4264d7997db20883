"""Progress while nothing happens: a client whose limit restarts with it never gives up."""

from __future__ import annotations

import anyio

from contract_tests.requirements import requirement
from harness.contract.output import InternalToolStarted
from harness.orchestrator.lines import ItemLine
from harness.surfaces.mcp_server.progress import BEAT_SECONDS, Progress


@requirement("mcp-server:progress", "R-A3")
async def test_a_long_silence_is_told_again_and_again_with_growing_numbers() -> None:
    heard: list[tuple[int, str]] = []
    enough = anyio.Event()

    async def report(count: int, message: str) -> None:
        heard.append((count, message))
        if len(heard) == 4:
            enough.set()

    progress = Progress(report, beat_seconds=0.01)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            started = InternalToolStarted(sequence_no=1, at=1, call_id="b", tool_name="look")
            await progress.see(ItemLine(item=started))
            group.start_soon(progress.beat)
            await enough.wait()
            group.cancel_scope.cancel()

    assert heard == [(number, "uses look") for number in (1, 2, 3, 4)]
    assert BEAT_SECONDS <= 15
