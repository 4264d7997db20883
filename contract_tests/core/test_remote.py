"""The remote client's own affairs: one stream for all, cuts, servers that die, tokens, what it imports."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from contract_tests.llm_suite import WAIT_MS, begin, is_over, is_waiting, open_server, results, texts, to_end, until
from contract_tests.requirements import requirement
from harness.contract import OutputItem
from harness.errors import InvalidArgument, PeerLost, PeerProtocolError, Unauthorized
from harness.remote import RemoteHarness, turn_feed
from harness.server_record import runtime_directory

LETTERS = [{"text": list("abcdefghij")}, {"calls": [{"name": "clock", "id": "c"}]}, {"text": list("klmno")}]
HANG = [{"text": "one"}, {"hang": True}]

SERVER = """
import anyio, sys
from connectors.fake import FakeConnector
from harness.local import LocalHarness
from harness.registry import Registry
from harness.surfaces.server import serve

async def main():
    registry = Registry({"fake": FakeConnector([[{"text": "one"}, {"hang": True}]])})
    async with LocalHarness(registry, default_connector="fake") as harness, serve(harness) as server:
        print(server.url, flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""


class Proxy:
    """A TCP relay in front of a server that can cut every connection, and remembers what clients sent."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._scopes: set[anyio.CancelScope] = set()
        self.sent = b""
        self.url = ""

    def cut(self) -> None:
        for scope in list(self._scopes):
            scope.cancel()

    async def relay(self, client: SocketStream) -> None:
        async with (
            client,
            await anyio.connect_tcp("127.0.0.1", self._port) as server,
            anyio.create_task_group() as group,
        ):
            self._scopes.add(group.cancel_scope)
            group.start_soon(self._pump, client, server, True)
            await self._pump(server, client, False)
            group.cancel_scope.cancel()
        self._scopes.discard(group.cancel_scope)

    async def _pump(self, source: SocketStream, target: SocketStream, is_client: bool) -> None:
        try:
            async for data in source:
                self.sent += data if is_client else b""
                await target.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


@asynccontextmanager
async def open_proxy(url: str) -> AsyncGenerator[Proxy]:
    proxy = Proxy(int(url.rpartition(":")[2]))
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    async with listener, anyio.create_task_group() as group:
        proxy.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        group.start_soon(listener.serve, proxy.relay)
        yield proxy
        group.cancel_scope.cancel()


@asynccontextmanager
async def open_server_process() -> AsyncGenerator[tuple[str, subprocess.Popen[str]]]:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield (await anyio.to_thread.run_sync(process.stdout.readline)).strip(), process
        finally:
            process.kill()


@requirement("remote:shared-stream")
async def test_all_pollers_of_a_turn_share_one_stream() -> None:
    with anyio.fail_after(5):
        async with open_server([HANG]) as server, RemoteHarness(server.url) as llm:
            ids = await begin(llm)
            await until(llm, ids, lambda state: state.sequence_no == 1)
            async with anyio.create_task_group() as group:
                for _ in range(5):
                    group.start_soon(llm.poll_turn, *ids, 1, WAIT_MS)
                await anyio.wait_all_tasks_blocked()
                assert server.waiters.count == 1
                await llm.cancel_turn(*ids)
            await server.waiters.wait_for(0)


async def test_a_stream_that_nobody_polls_any_more_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_feed, "_LINGER_SECONDS", 0)
    with anyio.fail_after(5):
        async with open_server([HANG], heartbeat_seconds=0.02) as server, RemoteHarness(server.url) as llm:
            ids = await begin(llm)
            await until(llm, ids, lambda state: state.sequence_no == 1)
            await server.waiters.wait_for(0)
            assert (await llm.poll_turn(*ids, 0, WAIT_MS)).sequence_no == 1


async def test_leaving_the_client_frees_what_it_waited_for() -> None:
    with anyio.fail_after(5):
        async with open_server([HANG]) as server:
            async with RemoteHarness(server.url) as llm:
                ids = await begin(llm)
                await until(llm, ids, lambda state: state.sequence_no == 1)
            await server.waiters.wait_for(0)


@requirement("remote:resumes", "R-M8")
async def test_a_stream_cut_again_and_again_gives_every_item_once() -> None:
    items: list[OutputItem] = []
    with anyio.fail_after(10):
        async with (
            open_server([LETTERS]) as server,
            open_proxy(server.url) as proxy,
            RemoteHarness(proxy.url, server.tokens[0].secret) as llm,
        ):
            ids = await begin(llm)
            since = 0
            while True:
                state = await llm.poll_turn(*ids, since, WAIT_MS)
                items += state.new_output_items
                since = state.sequence_no
                if is_over(state):
                    break
                proxy.cut()
                if is_waiting(state):
                    await llm.submit_responses(*ids, results(["c"]))
            sent = proxy.sent

    assert [item.sequence_no for item in items] == list(range(1, since + 1))
    assert texts(items) == "abcdefghijklmno"
    assert b"last-event-id: " in sent.lower()


@requirement("remote:resumes")
async def test_a_cut_while_nothing_happens_is_not_noticed_by_those_who_wait() -> None:
    go_on = anyio.Event()
    script = [[{"text": "one"}, {"until": go_on}, {"text": "two"}]]
    with anyio.fail_after(10):
        async with (
            open_server(script) as server,
            open_proxy(server.url) as proxy,
            RemoteHarness(proxy.url, server.tokens[0].secret) as llm,
        ):
            ids = await begin(llm)
            await until(llm, ids, lambda state: state.sequence_no == 1)
            woken: list[str] = []

            async def wait() -> None:
                woken.append(texts((await llm.poll_turn(*ids, 1, WAIT_MS)).new_output_items))

            async with anyio.create_task_group() as group:
                group.start_soon(wait)
                for _ in range(3):
                    await server.waiters.wait_for(1)
                    proxy.cut()
                    await server.waiters.wait_for(0)
                await server.waiters.wait_for(1)
                go_on.set()
    assert woken == ["two"]


@requirement("remote:server-gone")
async def test_a_killed_server_is_an_error_at_once_for_those_who_wait_and_those_who_call() -> None:
    lost: list[PeerLost] = []
    with anyio.fail_after(20):
        async with open_server_process() as (url, process), RemoteHarness(url) as llm:
            ids = await begin(llm)
            await until(llm, ids, lambda state: state.sequence_no == 1)

            async def wait() -> None:
                with pytest.raises(PeerLost) as caught:
                    await llm.poll_turn(*ids, 1, WAIT_MS)
                lost.append(caught.value)

            async with anyio.create_task_group() as group:
                for _ in range(2):
                    group.start_soon(wait)
                await anyio.wait_all_tasks_blocked()
                with anyio.fail_after(1):
                    process.send_signal(signal.SIGKILL)
                    await anyio.to_thread.run_sync(process.wait)
                    while len(lost) < 2:
                        await anyio.lowlevel.checkpoint()
            for call in (llm.cancel_turn(*ids), llm.poll_turn(*ids), llm.poll_turn(*ids, 1, WAIT_MS), begin(llm)):
                with anyio.fail_after(1), pytest.raises(PeerLost) as caught:
                    await call
                lost.append(caught.value)

    assert {error.detail["url"] for error in lost} == {url}
    assert all(url in error.message and "gone" in error.message for error in lost)


@requirement("remote:server-gone")
async def test_a_server_that_cuts_every_stream_is_given_up_after_a_few_attempts() -> None:
    with anyio.fail_after(10):
        async with open_server([HANG]) as server, RemoteHarness(server.url) as llm:
            ids = await begin(llm)
            await until(llm, ids, lambda state: state.sequence_no == 1)
            server.waiters.settle()
            with pytest.raises(PeerLost, match="ended the stream"):
                await llm.poll_turn(*ids, 1, WAIT_MS)
            assert (await llm.poll_turn(*ids, 0, 0)).sequence_no == 1


@requirement("remote:server-gone")
async def test_what_answers_there_but_is_no_harness_is_a_clear_error() -> None:
    async def answer(client: SocketStream) -> None:
        async with client:
            await client.receive()
            await client.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nhello")

    with anyio.fail_after(5):
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        async with listener, anyio.create_task_group() as group:
            group.start_soon(listener.serve, answer)
            async with RemoteHarness(url, "token") as llm:
                with pytest.raises(PeerProtocolError, match=url):
                    await llm.list_conversations()
            group.cancel_scope.cancel()
        async with RemoteHarness(url, "token") as llm:
            with pytest.raises(PeerLost, match="cannot be reached"):
                await llm.list_conversations()


@requirement("R-K4")
async def test_the_token_of_a_local_server_is_found_and_a_missing_one_is_explained() -> None:
    with anyio.fail_after(5):
        async with open_server([HANG]) as server:
            async with RemoteHarness(server.url) as llm:
                assert [one.name for one in await llm.list_connectors()] == ["fake"]
            (runtime_directory() / f"{server.url.rpartition(':')[2]}.json").unlink()
            async with RemoteHarness(server.url) as llm:
                with pytest.raises(Unauthorized, match="give its token"):
                    await llm.list_connectors()
            async with RemoteHarness(server.url, "wrong") as llm:
                with pytest.raises(Unauthorized, match="not one of this server's"):
                    await llm.list_connectors()
            async with RemoteHarness(server.url + "/", server.tokens[0].secret) as llm:
                assert await llm.list_conversations() == []


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://127.0.0.1", "http://", ""])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="no server's URL"):
        RemoteHarness(url)


async def test_proxies_of_the_environment_are_not_used_between_programs_of_one_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    with anyio.fail_after(5):
        async with open_server([[{"text": "hi"}]]) as server, RemoteHarness(server.url) as llm:
            assert texts(await to_end(llm, await begin(llm))) == "hi"


@requirement("remote:import-light")
def test_the_client_loads_no_server() -> None:
    code = "import sys, harness.remote; print({'starlette', 'uvicorn', 'jsonschema', 'mcp'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    assert done.stdout.strip() == "set()"
