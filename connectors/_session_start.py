"""What every session around a process does at its start: tells of it, fails with a remedy, and begins to read."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from bridge_mcp.mapping import Rewrite
from harness.errors import ConnectorUnavailable, PeerLost
from harness.turn.events import TurnEvent, notice


def peer_started(peer: str, program: str | Path, pid: int, begun_at: float) -> TurnEvent:
    """`peer` is the name with its version; `begun_at` is of `time.monotonic`."""
    seconds = time.monotonic() - begun_at
    return notice("peer_started", f"{peer} at {program}, pid {pid}, ready in {seconds:.1f} s")


def tools_rewritten(rewrites: Iterable[Rewrite]) -> list[TurnEvent]:
    return [notice("tool_rewritten", f"tool '{change.tool_name}': {change.rule}") for change in rewrites]


def did_not_start(
    program: str | Path, error: PeerLost, remedy: str, reason: str = "not_installed"
) -> ConnectorUnavailable:
    """The process ended before it could be used."""
    return ConnectorUnavailable(
        f"'{program}' did not start: {error.message}; {remedy}",
        reason=reason,
        exit_code=error.exit_code,
        stderr_tail=error.stderr_tail or None,
    )


@asynccontextmanager
async def pumping(pump: Callable[[], Coroutine[None, None, None]]) -> AsyncGenerator[TaskGroup]:
    """Reads the peer while the context lasts; the group is for what else belongs to the session."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pump)
        try:
            yield tasks
        finally:
            tasks.cancel_scope.cancel()
