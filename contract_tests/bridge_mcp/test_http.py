"""The bridge over HTTP, with plain requests and with the `mcp` package as the peer."""

import json
import socket
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import pytest
from mcp import Client

from bridge_mcp.answers import AnswerMode
from bridge_mcp.http import open_endpoint
from contract_tests.bridge_mcp.desk import (
    ECHO,
    Desk,
    bridge,
    call,
    headers,
    http_client,
    mcp_client,
    request,
    server,
    text,
)
from contract_tests.requirements import requirement
from harness.errors import NotSupported

both_modes = pytest.mark.parametrize("mode", list(AnswerMode))


def message_of(response: httpx2.Response) -> dict[str, Any]:
    """The answer, whatever way it came."""
    if response.headers["content-type"] == "application/json":
        return response.json()
    [data] = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    return json.loads(data)


# --- as the mcp package sees it --------------------------------------------------------------------------------------


@requirement("bridge:http:mcp-client")
@both_modes
@pytest.mark.parametrize("era", ["auto", "legacy"])
async def test_the_mcp_package_lists_and_calls_our_tools(mode: AnswerMode, era: Any) -> None:
    desk = Desk()
    with anyio.fail_after(5):
        async with bridge(desk, mode=mode) as address, mcp_client(address, mode=era) as client:
            [tool] = (await client.list_tools()).tools
            assert (tool.name, tool.annotations and tool.annotations.read_only_hint) == ("echo", True)
            assert address.tools_listed.is_set()
            desk.answer("t1", text("one"))
            desk.answer("t2", text("bad", isError=True))
            good = await client.call_tool("echo", {"q": [1, None]}, meta={"id": "t1"})
            bad = await client.call_tool("echo", {}, meta={"id": "t2"})
    assert desk.calls[0].arguments == {"q": [1, None]}
    assert (good.content[0].text, good.is_error) == ("one", False)  # type: ignore[union-attr]
    assert (bad.content[0].text, bad.is_error) == ("bad", True)  # type: ignore[union-attr]


@requirement("bridge:http:parallel", "R-G4")
@both_modes
async def test_several_calls_wait_at_once_and_are_answered_in_any_order(mode: AnswerMode) -> None:
    desk = Desk()
    got: dict[str, str] = {}
    with anyio.fail_after(5):
        async with bridge(desk, mode=mode) as address, mcp_client(address, mode="legacy") as client:

            async def ask(key: str) -> None:
                result = await client.call_tool("echo", {}, meta={"id": key})
                got[key] = result.content[0].text  # type: ignore[union-attr]

            async with anyio.create_task_group() as group:
                for number in range(12):
                    group.start_soon(ask, f"t{number}")
                await desk.holds(12)
                for number in (5, 11, 0, 7, 1, 2, 10, 3, 9, 4, 8, 6):
                    desk.answer(f"t{number}", text(f"answer {number}"))
    assert got == {f"t{number}": f"answer {number}" for number in range(12)}


@requirement("bridge:http:withdrawn", "R-H5")
async def test_a_peer_that_gives_up_withdraws_its_call(mode: AnswerMode = AnswerMode.STREAM) -> None:
    desk = Desk()
    with anyio.fail_after(5):
        async with bridge(desk, mode=mode) as address, mcp_client(address, mode="legacy") as client:
            async with anyio.create_task_group() as calling:
                calling.start_soon(partial(client.call_tool, "echo", {}, meta={"id": "t1"}))
                await desk.holds(1)
                calling.cancel_scope.cancel()
            await desk.has_withdrawn("t1")
            desk.answer("t2", text("still here"))
            result = await client.call_tool("echo", {}, meta={"id": "t2"})
    assert result.content[0].text == "still here"  # type: ignore[union-attr]


@requirement("bridge:http:progress", "R-A3")
async def test_progress_comes_while_a_call_waits() -> None:
    desk = Desk()
    seen: list[float] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        if len(seen) == 3:
            desk.answer("t1", text("ok"))

    with anyio.fail_after(5):
        async with (
            bridge(desk, mode=AnswerMode.STREAM, progress_seconds=0.02) as address,
            mcp_client(address, mode="legacy") as client,
        ):
            await client.call_tool("echo", {}, progress_callback=progressed, meta={"id": "t1"})
    assert seen[:3] == [1, 2, 3]


# --- on the wire -----------------------------------------------------------------------------------------------------


@requirement("R-A1")
async def test_a_stream_answers_at_once_and_shows_life_without_being_asked_for_progress() -> None:
    desk = Desk()
    with anyio.fail_after(5):
        async with (
            bridge(desk, mode=AnswerMode.STREAM, progress_seconds=0.02) as address,
            http_client(address) as client,
            client.stream("POST", address.url, json=call(1, "t1")) as response,
        ):
            assert response.headers["content-type"] == "text/event-stream"
            lines = response.aiter_lines()
            signs = [line async for line in _first(lines, 4) if line]
            desk.answer("t1", text("ok"))
            rest = [line async for line in lines if line.startswith("data: ")]
    assert signs and set(signs) == {": waiting"}
    assert [json.loads(line[6:])["result"] for line in rest] == [text("ok")]


async def _first(lines: AsyncIterator[str], number: int) -> AsyncIterator[str]:
    async for line in lines:
        yield line
        number -= 1
        if not number:
            return


@requirement("bridge:http:withdrawn", "R-H5")
@both_modes
async def test_a_connection_that_closes_withdraws_its_call(mode: AnswerMode) -> None:
    desk = Desk()
    with anyio.fail_after(5):
        async with bridge(desk, mode=mode) as address:
            body = json.dumps(call(1, "t1")).encode()
            with socket.create_connection(("127.0.0.1", urlsplit(address.url).port or 0)) as sock:
                sock.sendall(_raw_post(address.url, address.token, body))
                await desk.holds(1)
            await desk.has_withdrawn("t1")


@requirement("bridge:http:withdrawn")
async def test_a_closed_connection_withdraws_when_its_owner_says_that_the_peer_lives() -> None:
    desk, lives = Desk(), anyio.Event()
    with anyio.fail_after(5):
        async with bridge(desk, before_withdrawal=lives.wait) as address:
            body = json.dumps(call(1, "t1")).encode()
            with socket.create_connection(("127.0.0.1", urlsplit(address.url).port or 0)) as sock:
                sock.sendall(_raw_post(address.url, address.token, body))
                await desk.holds(1)
            async with http_client(address) as client:
                await client.post(address.url, json=request(2, "ping"))
            assert desk.withdrawn == []
            lives.set()
            await desk.has_withdrawn("t1")


def _raw_post(url: str, token: str, body: bytes) -> bytes:
    parts = urlsplit(url)
    head = f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {token}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


@requirement("bridge:http:withdrawn", "R-H5")
@both_modes
async def test_a_cancelled_request_is_let_go_and_its_call_withdrawn(mode: AnswerMode) -> None:
    desk = Desk()
    answers: list[dict[str, Any]] = []
    with anyio.fail_after(5):
        async with bridge(desk, mode=mode) as address, http_client(address) as client:

            async def ask() -> None:
                answers.append(message_of(await client.post(address.url, json=call(7, "t1"))))

            async with anyio.create_task_group() as group:
                group.start_soon(ask)
                await desk.holds(1)
                params = {"requestId": 7, "reason": "AbortError"}
                note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
                assert (await client.post(address.url, json=note)).status_code == 202
    assert desk.withdrawn == ["t1"]
    assert (answers[0]["id"], answers[0]["error"]["code"]) == (7, -32800)


@requirement("R-G2", "bridge:http:delivered-twice")
@both_modes
async def test_a_call_sent_again_with_its_id_is_the_same_call(mode: AnswerMode) -> None:
    desk = Desk()
    got: list[Any] = []
    with anyio.fail_after(5):
        async with bridge(desk, mode=mode) as address, http_client(address) as client:

            async def ask(rpc_id: int) -> None:
                got.append(message_of(await client.post(address.url, json=call(rpc_id, "t1"))))

            async with anyio.create_task_group() as group:
                group.start_soon(ask, 1)
                await desk.holds(1)
                await client.post(address.url, json=request("again", "initialize", protocolVersion="2025-11-25"))
                group.start_soon(ask, 1)
                with anyio.move_on_after(0.05):
                    await desk.holds(2)
                desk.answer("t1", text("once"))
            got.append(message_of(await client.post(address.url, json=call(9, "t1"))))
    assert len(desk.calls) == 1
    assert [message["result"] for message in got] == [text("once")] * 3


@requirement("bridge:http:doors", "R-K3")
@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example", "authorization": ""}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null", "authorization": ""}, 403),
        ({"authorization": "Bearer wrong"}, 401),
        ({"authorization": ""}, 401),
        ({"authorization": "Basic {token}"}, 401),
    ],
)
async def test_only_the_peer_itself_gets_in(changed: dict[str, str], status: int) -> None:
    desk = Desk()
    with anyio.fail_after(5):
        async with bridge(desk) as address, http_client(address) as client:
            sent = {name: value.replace("{token}", address.token) for name, value in changed.items()}
            refused = await client.post(address.url, json=call(1, "t1"), headers=sent)
            assert (refused.status_code, desk.calls) == (status, [])
            assert address.token not in refused.text


@requirement("bridge:http:doors")
async def test_every_conversation_has_a_door_of_its_own_on_one_listener() -> None:
    one, two = Desk(), Desk()
    with anyio.fail_after(5):
        async with bridge(one) as first:
            async with bridge(two) as second:
                assert urlsplit(first.url).netloc == urlsplit(second.url).netloc
                assert len({first.url, second.url, first.token, second.token}) == 4
                async with httpx2.AsyncClient(timeout=5, trust_env=False) as client:
                    crossed = await client.post(second.url, json=call(1, "t1"), headers=headers(first))
                    assert crossed.status_code == 401
                    two.answer("t1", text("two"))
                    answered = await client.post(second.url, json=call(1, "t1"), headers=headers(second))
                    assert answered.json()["result"] == text("two")
            async with httpx2.AsyncClient(timeout=5, trust_env=False) as client:
                gone = await client.post(second.url, json=call(1, "t1"), headers=headers(second))
                assert gone.status_code == 404
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", urlsplit(first.url).port or 0))
        async with bridge(one) as third, http_client(third) as client:
            assert (await client.post(third.url, json=request(1, "ping"))).json()["result"] == {}


@requirement("bridge:http:doors")
@pytest.mark.parametrize(("method", "status"), [("GET", 405), ("DELETE", 405), ("PUT", 405)])
async def test_there_is_nothing_but_post(method: str, status: int) -> None:
    with anyio.fail_after(5):
        async with bridge(Desk()) as address, http_client(address) as client:
            refused = await client.request(method, address.url)
    assert (refused.status_code, refused.headers["allow"]) == (status, "POST")


@requirement("bridge:mcp:errors")
async def test_a_body_that_is_no_message_gets_an_answer_that_says_so() -> None:
    with anyio.fail_after(5):
        async with bridge(Desk(), max_body_bytes=1000) as address, http_client(address) as client:
            assert (await client.post(address.url, content=b"{")).status_code == 400
            assert (await client.post(address.url, content=b"[" * 100_0)).status_code == 400
            assert (await client.post(address.url, content=b" " * 1001)).status_code == 413
            assert (await client.post(address.url, json=[1])).json()["error"]["code"] == -32600
            assert (await client.post(address.url, json=request(1, "server/discover"))).json()["error"][
                "code"
            ] == -32601
            assert (await client.post(address.url, json={"jsonrpc": "2.0", "id": 5, "result": {}})).status_code == 202


@requirement("R-B4")
@both_modes
async def test_large_arguments_and_results_with_odd_characters_pass_whole(mode: AnswerMode) -> None:
    odd = "\u2028\u2029\u0085\x0b\x0c\r\ud800 " + "x" * 5_000_000
    desk = Desk()
    desk.answer("t1", text(odd))
    with anyio.fail_after(10):
        async with bridge(desk, mode=mode) as address, http_client(address) as client:
            body = json.dumps(call(1, "t1", {"q": odd}))
            response = await client.post(address.url, content=body, headers={"content-type": "application/json"})
            data = response.text if mode == AnswerMode.JSON else response.text.split("data: ", 1)[1]
    assert desk.calls[0].arguments == {"q": odd}
    assert json.loads(data)["result"] == text(odd)


@requirement("bridge:http:end")
@both_modes
async def test_the_end_of_a_conversation_answers_what_waits(mode: AnswerMode) -> None:
    desk = Desk()
    got: list[dict[str, Any]] = []
    with anyio.fail_after(5):
        async with anyio.create_task_group() as group, httpx2.AsyncClient(timeout=5, trust_env=False) as client:
            async with bridge(desk, mode=mode) as address:

                async def ask() -> None:
                    response = await client.post(address.url, json=call(1, "t1"), headers=headers(address))
                    got.append(message_of(response)["result"])

                group.start_soon(ask)
                await desk.holds(1)
            while not got:
                await anyio.lowlevel.checkpoint()
    assert got[0]["isError"] is True


@requirement("bridge:http:failures")
async def test_a_call_that_fails_in_the_host_is_an_error_result() -> None:
    desk = Desk()
    desk.answer("t1", NotSupported("no such thing here"))
    desk.answer("t2", ValueError("a secret of the host"))
    with anyio.fail_after(5):
        async with bridge(desk) as address, http_client(address) as client:
            known = (await client.post(address.url, json=call(1, "t1"))).json()["result"]
            unknown = (await client.post(address.url, json=call(2, "t2"))).json()["result"]
    assert known == text("no such thing here", isError=True)
    assert unknown["isError"] is True and "secret" not in json.dumps(unknown)


@requirement("bridge:http:mcp-client")
async def test_an_answer_takes_no_nagle_delay() -> None:
    desk = Desk()
    with anyio.fail_after(5):
        async with bridge(desk) as address, http_client(address) as client:
            await client.post(address.url, json=request(0, "ping"))
            begun = anyio.current_time()
            for number in range(20):
                await client.post(address.url, json=request(number, "ping"))
            seconds = anyio.current_time() - begun
    assert seconds < 20 * 0.03


@requirement("bridge:http:doors")
async def test_a_failing_conversation_takes_its_door_and_leaves_the_others(tmp_path: Path) -> None:
    desk = Desk()
    with anyio.fail_after(5):
        async with bridge(desk) as address:
            with pytest.raises(NotSupported):
                async with open_endpoint(server(), desk.on_call):
                    raise NotSupported("stop")
            async with http_client(address) as client:
                assert (await client.post(address.url, json=request(1, "tools/list"))).json()["result"] == {
                    "tools": [ECHO]
                }


def test_the_client_of_the_tests_is_the_real_one() -> None:
    assert Client.__module__.startswith("mcp.")
