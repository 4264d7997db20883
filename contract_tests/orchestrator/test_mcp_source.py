"""MCP servers as tool sources, over stdio and HTTP, with real servers that are killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from contract_tests.connectors.processes import is_alive, until_gone
from contract_tests.orchestrator.http_peer import serving_mcp
from contract_tests.peers.mcp_sdk_server import DOT, TOOLS, Peer
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness import ImageBlock, TextBlock, ToolRegistry
from harness.contract import ResourceLinkBlock, ToolCall, ToolSourceDescriptor
from harness.contract.value import Label
from harness.errors import ConnectorUnavailable, InvalidArgument
from harness.orchestrator.mcp_config import ListChanges, McpServer
from harness.orchestrator.mcp_source import McpSource, open_mcp_source
from harness.orchestrator.tool_context import Progress, ToolContext
from harness.orchestrator.tool_provider import ToolOutcome

PEERS = ROOT / "contract_tests" / "peers"


def stdio(file: str, *args: str, **members: Any) -> McpServer:
    env = [Label(name="PYTHONPATH", value=str(ROOT))]
    source = ToolSourceDescriptor(
        name="peer", kind="mcp_stdio", command=sys.executable, args=[str(PEERS / file), *args], env=env
    )
    return McpServer(source, **members)


def rough(*args: str, **members: Any) -> McpServer:
    return stdio("mcp_rough.py", *args, **members)


def http(port: int, **members: Any) -> McpServer:
    headers = [Label(name="Authorization", value="Bearer secret-1")]
    url = f"http://127.0.0.1:{port}/mcp"
    return McpServer(ToolSourceDescriptor(name="peer", kind="mcp_http", url=url, headers=headers), **members)


async def call(source: McpSource, name: str, on_progress: Any = None, **arguments: Any) -> ToolOutcome:
    await source.list_tools()
    context = ToolContext("1", name, on_progress)
    context.begin()
    return await source.run(ToolCall(call_id="1", tool_name=name, arguments_json=json.dumps(arguments)), context)


def said(outcome: ToolOutcome) -> str:
    return "".join(block.text for block in outcome.content if isinstance(block, TextBlock))


async def served_until(stop: anyio.Event, port: int, *, task_status: TaskStatus[int]) -> None:
    async with serving_mcp(Peer(), port) as bound:
        task_status.started(bound)
        await stop.wait()


async def check_everything(source: McpSource) -> None:
    tools = {tool.name: tool for tool in await source.list_tools()}
    assert sorted(tools) == ["add_numbers", "change", "draw", "fail", "slow", "who"]
    assert json.loads(tools["add_numbers"].input_schema_json) == TOOLS[0].input_schema
    assert (tools["add_numbers"].read_only, tools["add_numbers"].destructive) == (True, False)
    assert tools["draw"].read_only is None

    progress: list[Progress] = []
    added = await call(source, "add_numbers", progress.append, a=2, b=3)
    assert (said(added), added.structured_content_json, added.is_error) == ("5", '{"sum":5}', False)
    assert progress == [Progress(1, 2, "adding")]
    drawn = await call(source, "draw")
    assert list(drawn.content) == [
        ImageBlock(data=DOT, media_type="image/png"),
        ResourceLinkBlock(uri="file:///a", name="a"),
    ]
    failed = await call(source, "fail")
    assert (said(failed), failed.is_error) == ("no such row", True)


@requirement("orchestrator:mcp:tools")
async def test_tools_of_a_stdio_server_with_pages_progress_and_images() -> None:
    with anyio.fail_after(30):
        async with open_mcp_source(stdio("mcp_sdk_server.py")) as source:
            await check_everything(source)


@requirement("orchestrator:mcp:tools")
@requirement("orchestrator:mcp:cancel")
async def test_tools_of_an_http_server_with_its_header_and_a_cancel() -> None:
    peer = Peer()
    with anyio.fail_after(30):
        async with serving_mcp(peer, token="secret-1") as port, open_mcp_source(http(port)) as source:
            await check_everything(source)
            assert said(await call(source, "who")) == "Bearer secret-1"
            async with anyio.create_task_group() as group:
                group.start_soon(call, source, "slow")
                await peer.started.wait()
                group.cancel_scope.cancel()
            await peer.cancelled.wait()
            assert said(await call(source, "add_numbers", a=1)) == "1"


@requirement("orchestrator:mcp:timeout")
async def test_call_that_takes_too_long_is_given_up_on_both_sides() -> None:
    peer = Peer()
    with anyio.fail_after(30):
        async with serving_mcp(peer) as port, open_mcp_source(http(port, call_ms=100)) as source:
            outcome = await call(source, "slow")
            assert outcome.is_error
            assert "imed out" in said(outcome)
            await peer.cancelled.wait()


@requirement("orchestrator:mcp:lost")
async def test_server_that_dies_in_a_call_is_an_error_and_started_anew_with_the_next() -> None:
    with anyio.fail_after(30):
        async with open_mcp_source(rough("--garbage")) as source:
            first = said(await call(source, "pid"))
            died = await call(source, "die")
            assert died.is_error
            assert all(word in said(died) for word in ("'peer'", "on fire", "unknown")), said(died)
            second = said(await call(source, "pid"))
            assert first != second
            os.kill(int(second), signal.SIGKILL)
            await until_gone([int(second)])
            while said(await call(source, "pid")) == second:
                pass
            assert said(await call(source, "echo", text="é\u2028")) == json.dumps({"text": "é\u2028"})


@requirement("orchestrator:mcp:lost", "R-K2")
async def test_last_words_of_a_server_do_not_give_its_secrets_away() -> None:
    base = rough()
    env = [*base.source.env, Label(name="ROUGH_TOKEN", value="s3cr3t")]
    with anyio.fail_after(30):
        async with open_mcp_source(McpServer(base.source.model_copy(update={"env": env}))) as source:
            died = said(await call(source, "die"))
    assert "on fire (secret)" in died, died


@requirement("R-G3")
async def test_error_of_a_tool_and_error_of_its_server_are_told_apart_and_neither_is_tried_again() -> None:
    peer = Peer()
    with anyio.fail_after(30):
        async with serving_mcp(peer) as port, open_mcp_source(http(port)) as source:
            failed = await call(source, "fail")
            assert (said(failed), failed.is_error) == ("no such row", True)
            broken = await call(source, "add_numbers", a="x")
            assert broken.is_error
            assert "answered with an error" in said(broken) and "unknown" in said(broken)
            assert [name for name in peer.called if name != "who"] == ["fail", "add.numbers"]


async def test_what_the_block_raises_leaves_it_as_it_is() -> None:
    with anyio.fail_after(30), pytest.raises(ZeroDivisionError):
        async with open_mcp_source(rough()):
            raise ZeroDivisionError


@requirement("orchestrator:mcp:lost")
async def test_http_server_that_was_started_again_is_reached_with_a_fresh_session() -> None:
    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            first, second = anyio.Event(), anyio.Event()
            port = await group.start(served_until, first, 0)
            async with open_mcp_source(http(port)) as source:
                assert said(await call(source, "add_numbers", a=1)) == "1"
                first.set()
                while not (gone := await call(source, "add_numbers", a=1)).is_error:
                    pass
                assert "'peer'" in said(gone)
                await group.start(served_until, second, port)
                while (await call(source, "add_numbers", a=1)).is_error:
                    pass
            second.set()


@requirement("orchestrator:mcp:start")
async def test_http_server_that_refuses_us_is_named_with_the_remedy() -> None:
    with anyio.fail_after(30):
        async with serving_mcp(Peer(), token="another") as port:
            with pytest.raises(ConnectorUnavailable, match=r"status 401.*'Authorization'") as refused:
                async with open_mcp_source(http(port)):
                    pass
    assert "secret-1" not in refused.value.message


@requirement("orchestrator:mcp:tree")
async def test_end_takes_the_whole_process_tree() -> None:
    with anyio.fail_after(30):
        async with open_mcp_source(rough()) as source:
            server, child = int(said(await call(source, "pid"))), int(said(await call(source, "children")))
            assert is_alive(server) and is_alive(child)
        assert not is_alive(server)
        assert not is_alive(child)


@requirement("orchestrator:mcp:start")
async def test_server_that_cannot_start_or_stays_mute_is_named_with_the_reason() -> None:
    missing = McpServer(ToolSourceDescriptor(name="gone", kind="mcp_stdio", command="/no/such/program"))
    with anyio.fail_after(30):
        with pytest.raises(ConnectorUnavailable, match=r"MCP server 'gone'.*/no/such/program") as caught:
            async with open_mcp_source(missing):
                pass
        assert caught.value.detail["reason"] == "tools_unavailable"
        with pytest.raises(ConnectorUnavailable, match="did not answer the greeting within"):
            async with open_mcp_source(rough("--mute", connect_ms=300)):
                pass


async def check_change(source: McpSource, policy: ListChanges, changing: str) -> None:
    before = [tool.name for tool in await source.list_tools()]
    assert not (await call(source, changing)).is_error
    while not source.has_changed:
        await anyio.lowlevel.checkpoint()
    after = [tool.name for tool in await source.list_tools()]
    again = await source.run(ToolCall(call_id="2", tool_name=before[0]), ToolContext("2", before[0]))
    assert (len(after) < len(before)) == (policy == ListChanges.FOLLOW)
    assert ("changed its tools" in said(again)) == (policy == ListChanges.FAIL)


@requirement("orchestrator:mcp:list-changed")
@pytest.mark.parametrize("policy", list(ListChanges))
async def test_changed_list_follows_the_policy(policy: ListChanges) -> None:
    with anyio.fail_after(30):
        async with open_mcp_source(rough(list_changes=policy)) as source:
            await check_change(source, policy, "drop")


@requirement("orchestrator:mcp:list-changed")
async def test_changes_are_asked_for_where_the_protocol_wants_that() -> None:
    with anyio.fail_after(30):
        policy = ListChanges.FOLLOW
        async with serving_mcp(Peer()) as port, open_mcp_source(http(port, list_changes=policy)) as source:
            await check_change(source, policy, "change")


@requirement("orchestrator:mcp:list-changed")
async def test_server_that_comes_back_with_other_tools_counts_as_changed(tmp_path: Path) -> None:
    with anyio.fail_after(30):
        server = rough("--rename", str(tmp_path / "marker"), list_changes=ListChanges.FAIL)
        async with open_mcp_source(server) as source:
            await call(source, "die")
            assert not (await call(source, "pid")).is_error  # it was started for this call
            refused = await call(source, "pid")
            assert "changed its tools" in said(refused)


@requirement("orchestrator:mcp:names")
async def test_prefix_keeps_two_sources_apart_and_a_wanted_tool_must_exist() -> None:
    with anyio.fail_after(30):
        async with open_mcp_source(rough(prefix="a_")) as one, open_mcp_source(rough(prefix="b_")) as two:
            registry = await ToolRegistry.of([one, two])
            names = [descriptor.name for descriptor in registry.descriptors]
            assert names == [
                f"{letter}_{name}" for letter in "ab" for name in ("children", "die", "drop", "echo", "pid")
            ]
            outcome = await registry.run(ToolCall(call_id="1", tool_name="b_echo", arguments_json='{"x":1}'))
            assert said(outcome) == '{"x": 1}'
        async with open_mcp_source(rough()) as one, open_mcp_source(rough()) as two:
            with pytest.raises(InvalidArgument, match=r"'children' is declared twice: by MCP server 'peer'.*prefix"):
                await ToolRegistry.of([one, two])
        base = rough()
        wanting = McpServer(base.source.model_copy(update={"tool_names": ["echo", "nothing"]}))
        async with open_mcp_source(wanting) as source:
            with pytest.raises(InvalidArgument, match="has no tool 'nothing'"):
                await source.list_tools()
