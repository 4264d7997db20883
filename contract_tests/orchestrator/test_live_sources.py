"""One turn of the real CLI with every kind of tool source, and an approval answered by a second process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from connectors.claude import ClaudeConnector
from contract_tests.connectors.claude.cli import ENVIRONMENT, claude_options, needs_cli
from contract_tests.orchestrator.http_peer import serving, serving_mcp
from contract_tests.peers.mcp_sdk_server import Peer
from contract_tests.peers.shop import Shop
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness import Completion, LocalHarness, Registry, TextBlock, run_to_completion
from harness.contract import InternalToolFinished, InternalToolStarted, PolicyRule, RequestPolicy, ToolSourceDescriptor
from harness.orchestrator.lines import ItemLine, Line, RequestLine, SourceLine
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.routing import Delegate
from harness.orchestrator.ujmw_source import open_ujmw_source
from harness.scripted_model import open_scripted_model
from harness.settings import Rights
from harness.surfaces.server import serve
from harness.surfaces.tokens import Token

pytestmark = needs_cli

PEERS = ROOT / "contract_tests" / "peers"


def count_letters(text: str) -> int:
    """How many letters a text has."""
    return sum(letter.isalpha() for letter in text)


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments, "id": f"toolu_{name}"}]}


@requirement("orchestrator:sources:live")
async def test_function_servers_service_and_an_approval_in_one_turn(tmp_path: Path) -> None:
    script = [
        call("count_letters", text="four 4"),
        call("mcp__rough__echo", said="delegated"),
        call("add_numbers", a=2, b=3),
        call("Price", item="pen"),
        call("Bash", command="touch was-here"),
        {"text": "Done."},
    ]
    rough = ToolSourceDescriptor(
        name="rough", kind="mcp_stdio", command=sys.executable, args=["-I", "-S", str(PEERS / "mcp_rough.py")]
    )
    policy = RequestPolicy(
        allow=[PolicyRule(tool=name) for name in ("mcp__rough__*", "count_letters", "add_*", "Price")]
    )
    rights = Rights(programs=True, cwd_roots=None)
    token = Token("inbox-token", "ada", rights)
    asked = anyio.Event()
    lines: list[Line] = []
    inbox: list[str] = []
    finished: list[Completion] = []
    told: dict[str, str] = {}

    def see(line: Line) -> None:
        lines.append(line)
        if isinstance(line, RequestLine) and line.request.tool_name == "Bash":
            asked.set()

    async def answer_from_another_process(url: str) -> None:
        await asked.wait()
        done = await anyio.run_process([sys.executable, "-I", str(PEERS / "inbox.py"), url, token.secret])
        inbox.append(done.stdout.decode())

    registry = Registry({"claude": ClaudeConnector(ENVIRONMENT)})
    with anyio.fail_after(60):
        async with (
            serving_mcp(Peer()) as mcp_port,
            serving(Shop().app) as shop_port,
            open_scripted_model(script) as model,
            LocalHarness(registry) as house,
            serve(house, tokens=[token]) as server,
            open_ujmw_source(f"http://127.0.0.1:{shop_port}/ujmw/IShop", select=["Price"]) as shop,
            anyio.create_task_group() as group,
        ):
            group.start_soon(answer_from_another_process, server.url)
            web = ToolSourceDescriptor(name="web", kind="mcp_http", url=f"http://127.0.0.1:{mcp_port}/mcp")
            done = await run_to_completion(
                house.for_owner("ada", rights),
                "Go.",
                tools=[count_letters, shop],
                servers=[McpServer(rough), McpServer(web, delegate=Delegate.NEVER)],
                policy=policy,
                approver="wait",
                options=claude_options(model, tmp_path, tools=[], internal_tools=["Bash"]),
                on_line=see,
            )
            finished.append(done)
            told |= tool_results(model.requests[-1].body)

    [done] = finished
    assert (done.content, done.error) == ("Done.", None)
    assert [(line.source, line.route, line.reason) for line in lines if isinstance(line, SourceLine)] == [
        ("rough", "delegated", "the peer takes it and reaches it"),
        ("web", "routed", "the caller wants it routed"),
    ]
    routed = {one.tool: one.result for one in done.calls if one.kind == "tool_call"}
    assert {name: result for name, result in routed.items() if result} == {
        "count_letters": [TextBlock(text="4")],
        "add_numbers": [TextBlock(text="5")],
        "Price": [TextBlock(text="4.5")],
    }
    items = [line.item for line in lines if isinstance(line, ItemLine)]
    inside = [item for item in items if isinstance(item, InternalToolStarted)]
    assert [(item.call_id, item.source) for item in inside] == [
        ("toolu_mcp__rough__echo", "rough"),
        ("toolu_Bash", "claude"),
    ]
    assert {item.result for item in items if isinstance(item, InternalToolFinished)} == {"ok"}
    assert json.loads(told["toolu_mcp__rough__echo"]) == {"said": "delegated"}
    assert inbox[0].startswith("Bash ")
    assert json.loads(inbox[0].removeprefix("Bash "))["command"] == "touch was-here"
    assert (tmp_path / "work" / "was-here").exists()


def tool_results(body: Any) -> dict[str, str]:
    """What the model was told, by call."""
    blocks = [block for message in body["messages"] for block in message["content"] if isinstance(block, dict)]
    found = {block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}
    return {key: value if isinstance(value, str) else value[0]["text"] for key, value in found.items()}
