"""Real times, for `make soak`: calls and approvals that wait longer than any limit that was ever met.

All ways wait side by side, so that it takes as long as the longest of them.
"""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import httpx2
import pytest

from bridge_mcp.answers import AnswerMode
from contract_tests.bridge_mcp.desk import Desk, bridge, call, headers, text
from contract_tests.bridge_mcp.test_relay import relayed
from contract_tests.connectors.claude.cli import needs_cli, open_claude, result
from contract_tests.requirements import requirement
from harness.contract import HostResponse, Timeouts

CALL_SECONDS = float(os.environ.get("HARNESS_SOAK_CALL_SECONDS", "375"))
"""Over HTTP a tool that waited for a person was seen to fail after about six minutes, whatever was configured."""
APPROVAL_SECONDS = float(os.environ.get("HARNESS_SOAK_APPROVAL_SECONDS", "620"))

pytestmark = pytest.mark.skipif("HARNESS_SOAK" not in os.environ, reason="takes a quarter of an hour: make soak")


async def wait(seconds: float) -> None:
    with anyio.move_on_after(seconds):
        await anyio.sleep_forever()


async def through_claude(route: str, directory: Path) -> None:
    directory.mkdir()
    script = [
        {"calls": [{"name": "save", "id": "call"}]},
        {"calls": [{"name": "Bash", "arguments": {"command": "touch made"}, "id": "approval"}]},
        {"text": "{{results.call}}"},
    ]
    timeouts = Timeouts(tool_ms=None, approval_ms=None)
    async with open_claude(script, directory, route=route, internal_tools=["Bash"], timeouts=timeouts) as claude:
        turn_id = await claude.start("Go.")
        for kind, seconds in (("tool_call", CALL_SECONDS), ("approval", APPROVAL_SECONDS)):
            while True:
                state, _ = await claude.until(
                    turn_id, lambda s, _, kind=kind: [r for r in s.pending_requests if r.kind == kind]
                )
                if state.pending_requests:
                    break
            [request] = state.pending_requests
            await wait(seconds)
            is_call = kind == "tool_call"
            allowed = HostResponse(request_id=request.request_id, selected_option="allow_once")
            await claude.answer(turn_id, result(request, "late") if is_call else allowed)
        seen = await claude.finished(turn_id)
    assert (seen.state.status, seen.text) == ("completed", "late")
    assert (directory / "work" / "made").exists()


async def answer_late(desk: Desk) -> None:
    await desk.holds(1)
    await wait(CALL_SECONDS)
    desk.answer("t1", text("late"))


async def through_a_stream(directory: Path) -> None:
    """The peer gives up after 20 s of silence."""
    desk = Desk()
    async with (
        bridge(desk, mode=AnswerMode.STREAM) as address,
        httpx2.AsyncClient(headers=headers(address), timeout=20, trust_env=False) as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(answer_late, desk)
        response = await client.post(address.url, json=call(1, "t1"))
        [data] = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        assert json.loads(data)["result"] == text("late")


async def through_the_relay(directory: Path) -> None:
    desk = Desk()
    async with (
        bridge(desk, mode=AnswerMode.STREAM) as address,
        relayed(address) as relay,
        anyio.create_task_group() as group,
    ):
        group.start_soon(answer_late, desk)
        await relay.send(call(1, "t1"))
        assert (await relay.receive())["result"] == text("late")


@needs_cli[1]
@requirement("R-A2", "R-A5", "R-D3")
async def test_calls_and_approvals_wait_as_long_as_people_do(tmp_path: Path) -> None:
    ways: dict[str, Callable[[Path], Awaitable[None]]] = {
        "tunnel": lambda directory: through_claude("tunnel", directory),
        "bridge": lambda directory: through_claude("bridge", directory),
        "stream": through_a_stream,
        "relay": through_the_relay,
    }
    took: dict[str, float] = {}
    begun = anyio.current_time()
    with anyio.fail_after(CALL_SECONDS + APPROVAL_SECONDS + 120):
        async with anyio.create_task_group() as group:

            async def walk(name: str, way: Callable[[Path], Awaitable[None]]) -> None:
                await way(tmp_path / name)
                took[name] = anyio.current_time() - begun

            for name, way in ways.items():
                group.start_soon(walk, name, way)
    assert took.keys() == ways.keys()
    assert min(took.values()) >= CALL_SECONDS
