"""The stdio end of the bridge: the same tools through a process."""

import json
import statistics
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp import Client, StdioServerParameters

from bridge_mcp.answers import AnswerMode
from bridge_mcp.http import BridgeAddress, relay_command
from contract_tests.bridge_mcp.desk import Desk, bridge, call, request, text
from contract_tests.requirements import requirement


class Relay:
    """A running relay and the messages that come out of it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None and process.stdout is not None
        self.process = process
        self._input, self._output = process.stdin, BufferedByteReceiveStream(process.stdout)

    async def send(self, *messages: Any) -> None:
        await self._input.send(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    async def receive(self) -> dict[str, Any]:
        return json.loads(await self._output.receive_until(b"\n", 2**28))

    async def end_input(self) -> int:
        await self._input.aclose()
        return await self.process.wait()


@asynccontextmanager
async def relayed(address: BridgeAddress) -> AsyncGenerator[Relay]:
    argv, env = relay_command(address)
    async with await anyio.open_process(argv, env=env, stderr=None) as process:
        try:
            yield Relay(process)
        finally:
            if process.returncode is None:
                process.kill()


@requirement("bridge:relay:stdio")
async def test_the_mcp_package_uses_our_tools_over_stdio() -> None:
    desk = Desk()
    desk.answer("t1", text("ok"))
    with anyio.fail_after(10):
        async with bridge(desk, mode=AnswerMode.STREAM) as address:
            argv, env = relay_command(address)
            parameters = StdioServerParameters(command=argv[0], args=argv[1:], env=env)
            async with Client(parameters, mode="legacy") as client:
                [tool] = (await client.list_tools()).tools
                result = await client.call_tool("echo", {"q": 1}, meta={"id": "t1"})
    assert tool.name == "echo"
    assert desk.calls[0].arguments == {"q": 1}
    assert result.content[0].text == "ok"  # type: ignore[union-attr]


@requirement("bridge:relay:stdio")
async def test_calls_over_stdio_wait_together_and_keep_every_byte() -> None:
    odd = "\u2028\u2029\u0085\x0b\x0c\r\ud800 " + "x" * 3_000_000
    desk = Desk()
    got: dict[Any, Any] = {}
    with anyio.fail_after(10):
        async with bridge(desk, mode=AnswerMode.STREAM) as address, relayed(address) as relay:
            await relay.send(call(1, "t1", {"q": odd}), call(2, "t2"), call("three", "t3"))
            calls = await desk.holds(3)
            assert [one.key for one in calls] == ["t1", "t2", "t3"]
            for key in ("t2", "t3", "t1"):
                desk.answer(key, text(odd + key))
                message = await relay.receive()
                got[message["id"]] = message["result"]
    assert desk.calls[0].arguments == {"q": odd}
    assert got == {2: text(odd + "t2"), "three": text(odd + "t3"), 1: text(odd + "t1")}


@requirement("bridge:relay:stdio", "R-H5")
async def test_a_cancel_right_behind_its_call_withdraws_it() -> None:
    desk = Desk()
    with anyio.fail_after(10):
        async with bridge(desk, mode=AnswerMode.STREAM) as address, relayed(address) as relay:
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
            await relay.send(call(1, "t1"), note, request(2, "ping"))
            assert {(await relay.receive())["id"] for _ in range(2)} == {1, 2}
    assert desk.withdrawn == [one.key for one in desk.calls]


@requirement("bridge:relay:stdio", "R-A3")
async def test_progress_passes_the_relay() -> None:
    desk = Desk()
    with anyio.fail_after(10):
        async with bridge(desk, mode=AnswerMode.STREAM, progress_seconds=0.02) as address, relayed(address) as relay:
            await relay.send(call(1, "t1", token="p"))
            progress = await relay.receive()
            desk.answer("t1", text("ok"))
            while "id" not in (last := await relay.receive()):
                assert last["method"] == "notifications/progress"
    assert progress["params"] == {"progressToken": "p", "progress": 1}
    assert last["result"] == text("ok")


@requirement("bridge:relay:end")
async def test_the_relay_ends_with_its_input_and_withdraws_what_is_open() -> None:
    desk = Desk()
    with anyio.fail_after(10):
        async with bridge(desk, mode=AnswerMode.STREAM) as address, relayed(address) as relay:
            await relay.send(call(1, "t1"))
            await desk.holds(1)
            assert await relay.end_input() == 0
            await desk.has_withdrawn("t1")


@requirement("bridge:relay:end", "R-G2")
async def test_a_host_that_is_gone_is_an_error_and_nothing_is_sent_again() -> None:
    desk = Desk()
    with anyio.fail_after(10):
        async with bridge(Desk()) as keeps_listening:
            async with bridge(desk, mode=AnswerMode.STREAM) as address:
                argv_and_env = address
            async with relayed(argv_and_env) as relay:
                await relay.send(
                    call(1, "t1"), {"jsonrpc": "2.0", "method": "notifications/initialized"}, call(2, "t2")
                )
                refused = [await relay.receive() for _ in range(2)]
                assert await relay.end_input() == 0
            assert keeps_listening.url
        async with relayed(address) as relay:
            await relay.send(call(3, "t3"))
            refused.append(await relay.receive())
    assert [(answer["id"], answer["error"]["code"]) for answer in refused] == [(1, -32000), (2, -32000), (3, -32000)]
    assert desk.calls == []


@requirement("R-E2")
async def test_the_relay_tells_the_tools_within_60_ms_of_its_start() -> None:
    times: list[float] = []
    with anyio.fail_after(20):
        async with bridge(Desk(), mode=AnswerMode.STREAM) as address:
            # the best of some: a busy machine is no finding
            while min(times, default=1.0) >= 0.06 and len(times) < 30:
                begun = anyio.current_time()
                async with relayed(address) as relay:
                    await relay.send(request(1, "initialize", protocolVersion="2025-11-25"), request(2, "tools/list"))
                    await relay.receive()
                    assert (await relay.receive())["result"]["tools"]
                    times.append(anyio.current_time() - begun)
    assert min(times) < 0.06, f"median {statistics.median(times) * 1000:.0f} ms"
