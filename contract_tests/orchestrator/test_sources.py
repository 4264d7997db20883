"""MCP servers of a conversation: some run here, some handed to the peer, each decision told first."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import pytest

from connectors.fake import FakeConnector
from contract_tests.connectors.processes import is_alive
from contract_tests.orchestrator.http_peer import serving_mcp
from contract_tests.peers.mcp_sdk_server import Peer
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness import LocalHarness, Registry, RemoteHarness, connect, run_to_completion
from harness.contract import InternalToolFinished, ToolSourceDescriptor
from harness.errors import InvalidArgument
from harness.orchestrator.lines import ItemLine, Line, SourceLine
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.routing import Delegate, PeerPlace, Route
from harness.orchestrator.sources import place_of

ROUGH = str(ROOT / "contract_tests" / "peers" / "mcp_rough.py")


def stdio(name: str, **members: Any) -> McpServer:
    return McpServer(ToolSourceDescriptor(name=name, kind="mcp_stdio", command=sys.executable, args=[ROUGH]), **members)


def http(name: str, port: int, **members: Any) -> McpServer:
    url = f"http://127.0.0.1:{port}/mcp"
    return McpServer(ToolSourceDescriptor(name=name, kind="mcp_http", url=url), **members)


def house(*steps: Any) -> LocalHarness:
    return LocalHarness(Registry({"fake": FakeConnector([list(steps)])}), default_connector="fake")


@requirement("orchestrator:sources:mixed")
async def test_routed_and_delegated_servers_are_used_side_by_side_and_said_first() -> None:
    steps = [
        {"calls": [{"name": "search", "arguments": {}, "source": "away", "result": "found"}]},
        {"calls": [{"name": "add_numbers", "arguments": {"a": 2, "b": 3}}, {"name": "x_pid", "arguments": {}}]},
        {"message": "done"},
    ]
    lines: list[Line] = []
    with anyio.fail_after(30):
        async with serving_mcp(Peer()) as port, house(*steps) as llm:
            servers = [
                stdio("away"),
                http("web", port, delegate=Delegate.NEVER),
                stdio("own", prefix="x_"),
            ]
            done = await run_to_completion(llm, "go", servers=servers, on_line=lines.append)
    told = [line for line in lines if isinstance(line, SourceLine)]
    assert [(line.source, line.route) for line in told] == [
        ("away", Route.DELEGATED),
        ("web", Route.ROUTED),
        ("own", Route.ROUTED),
    ]
    assert all(line.reason for line in told)
    assert lines[: len(told)] == told
    assert [(call.tool, call.outcome) for call in done.calls] == [("add_numbers", "ok"), ("x_pid", "ok")]
    [first, second] = done.calls
    assert first.result is not None and second.result is not None
    inside = [line.item for line in lines if isinstance(line, ItemLine) and isinstance(line.item, InternalToolFinished)]
    assert [item.result_text for item in inside] == ["found"]
    assert not is_alive(int(second.result[0].text))  # type: ignore[union-attr]


@requirement("orchestrator:sources:mixed")
async def test_wish_that_cannot_be_fulfilled_or_a_name_used_twice_begins_nothing() -> None:
    async with house({"message": "never"}) as llm:
        with pytest.raises(InvalidArgument, match=r"'own' cannot be delegated.*other names"):
            await run_to_completion(llm, "go", servers=[stdio("own", prefix="x_", delegate=Delegate.REQUIRE)])
        with pytest.raises(InvalidArgument, match="2 MCP servers are called 'own'"):
            await run_to_completion(llm, "go", servers=[stdio("own"), stdio("own")])
        assert await llm.list_conversations() == []


@requirement("orchestrator:sources:mixed")
async def test_place_of_the_peer_follows_from_how_it_is_reached() -> None:
    async with house({"message": "x"}) as llm:
        assert place_of(llm) == PeerPlace.BESIDE_US
    assert place_of(RemoteHarness("http://127.0.0.1:8800")) == PeerPlace.BEHIND_A_SERVER
    assert place_of(RemoteHarness("http://192.168.1.9:8800")) == PeerPlace.ON_ANOTHER_MACHINE


@requirement("orchestrator:sources:mixed")
async def test_connection_takes_servers_too() -> None:
    steps = [{"calls": [{"name": "echo", "arguments": {"a": 1}}]}, {"message": "done"}]
    registry = Registry({"fake": FakeConnector([steps])})
    servers = [stdio("rough", delegate=Delegate.NEVER)]
    with anyio.fail_after(30):
        async with connect("fake", registry=registry).conversation(servers=servers) as conversation:
            done = await conversation.ask("go")
    assert [(call.tool, call.outcome) for call in done.calls] == [("echo", "ok")]
