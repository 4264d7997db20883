"""A call that waits for a person, over every way we ship, with the limits of the peer scaled down."""

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import httpx2
import pytest

from bridge_mcp.answers import AnswerMode
from contract_tests.bridge_mcp.desk import Desk, bridge, call, headers, text
from contract_tests.bridge_mcp.test_relay import relayed
from contract_tests.requirements import requirement

SILENCE = 0.3
"""After how many seconds without a byte the peer gives up."""
HELD = 3 * SILENCE


async def answer_late(desk: Desk) -> None:
    await desk.holds(1)
    with anyio.move_on_after(HELD):
        await anyio.sleep_forever()
    desk.answer("t1", text("late"))


@requirement("R-A2", "R-A3")
async def test_a_peer_that_gives_up_on_silence_hears_a_stream_for_as_long_as_it_takes() -> None:
    desk = Desk()
    lines: list[str] = []
    with anyio.fail_after(10):
        async with (
            bridge(desk, mode=AnswerMode.STREAM, progress_seconds=SILENCE / 3) as address,
            httpx2.AsyncClient(headers=headers(address), timeout=SILENCE, trust_env=False) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(answer_late, desk)
            async with client.stream("POST", address.url, json=call(1, "t1")) as response:
                lines += [line async for line in data_of(response.aiter_lines())]
    assert [json.loads(line)["result"] for line in lines] == [text("late")]


async def data_of(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    async for line in lines:
        if line.startswith("data: "):
            yield line[6:]


@requirement("R-A2")
@pytest.mark.parametrize("mode", list(AnswerMode))
async def test_a_peer_whose_limit_was_raised_gets_its_answer_whenever_it_comes(mode: AnswerMode) -> None:
    desk = Desk()
    got: list[Any] = []
    with anyio.fail_after(10):
        async with (
            bridge(desk, mode=mode, progress_seconds=SILENCE / 3) as address,
            httpx2.AsyncClient(headers=headers(address), timeout=None, trust_env=False) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(answer_late, desk)
            response = await client.post(address.url, json=call(1, "t1"))
            got.append(response.text)
    assert "late" in got[0]


@requirement("R-A2")
async def test_the_relay_waits_for_as_long_as_it_takes() -> None:
    desk = Desk()
    with anyio.fail_after(10):
        async with (
            bridge(desk, mode=AnswerMode.STREAM, progress_seconds=SILENCE / 3) as address,
            relayed(address) as relay,
            anyio.create_task_group() as group,
        ):
            group.start_soon(answer_late, desk)
            await relay.send(call(1, "t1"))
            assert (await relay.receive())["result"] == text("late")
