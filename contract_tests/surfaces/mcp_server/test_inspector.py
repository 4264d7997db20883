"""The MCP inspector's command line: a client that nobody here wrote, in another language."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from contract_tests.cli.command import HARNESS
from contract_tests.llm_suite import open_server
from contract_tests.peers_installed import installed, needs_peer
from contract_tests.requirements import requirement
from contract_tests.surfaces.mcp_server.clients import OFFER
from harness.surfaces.mcp_server.http import mcp_dialect

pytestmark = needs_peer("mcp-inspector")

STEPS = [{"text": "Rain."}, {"approval": {"tool": "Bash", "id": "p"}}]
ON_STDIO = [
    "-e",
    "HARNESS_STORE=memory",
    "--",
    HARNESS,
    "mcp",
    "--connector",
    "fake",
    "-O",
    f"steps={json.dumps(STEPS)}",
]


def inspect(directory: Path, *arguments: str) -> Any:
    """What the inspector prints, in a home of its own."""
    done = subprocess.run(
        [str(installed("mcp-inspector")), "--cli", "--connect-timeout", "50000", *arguments],
        capture_output=True,
        text=True,
        cwd=directory,
        env={"PATH": os.environ["PATH"], "HOME": str(directory)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@requirement("mcp-server:inspector")
def test_the_inspector_lists_the_tools_and_finds_no_fault_with_their_schemas(tmp_path: Path) -> None:
    listed = inspect(tmp_path, "--strict", "--method", "tools/list", *ON_STDIO)
    names = [tool["name"] for tool in listed["tools"]]
    assert names[0] == "ask" and "poll_turn" in names


@requirement("mcp-server:inspector")
def test_the_inspector_asks_over_stdio(tmp_path: Path) -> None:
    called = ("--method", "tools/call", "--tool-name", "ask", "--tool-arg", "message=hello")
    result = inspect(tmp_path, *called, *ON_STDIO)
    assert (result["isError"], result["content"][0]["text"]) == (False, "Rain.")
    facts = result["structuredContent"]
    assert (facts["status"], facts["stop_reason"], facts["conversation_id"][:2]) == ("completed", "end_turn", "c_")


@pytest.mark.parametrize("tool", ["ask", "list_conversations"])
@requirement("mcp-server:inspector", "mcp-server:http")
async def test_the_inspector_asks_over_http(tmp_path: Path, tool: str) -> None:
    with anyio.fail_after(60):
        async with open_server([[{"text": "Rain."}]], also=(mcp_dialect(OFFER),)) as server:
            to = ("--transport", "http", "--server-url", f"{server.url}/mcp")
            header = ("--header", f"Authorization: Bearer {server.tokens[0].secret}")
            argument = ("--tool-arg", "message=hello") if tool == "ask" else ()
            called = ("--method", "tools/call", "--tool-name", tool, *argument)
            result = await anyio.to_thread.run_sync(lambda: inspect(tmp_path, *to, *header, *called))
    assert not result.get("isError")
    assert result["content"][0]["text"] == ("Rain." if tool == "ask" else '{"conversations":[]}')
