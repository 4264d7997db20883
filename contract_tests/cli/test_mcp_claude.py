"""An MCP client that asks the real Claude Code CLI, with a scripted model."""

from __future__ import annotations

import json
import os
import re
import subprocess

import anyio
import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters

from connectors.claude import ClaudeOptions
from connectors.claude.installed import find_program
from contract_tests.cli.command import HARNESS, Shell, fake
from contract_tests.cli.test_claude import claude
from contract_tests.cli.test_mcp import HELLO, INITIALIZED, call_of_ask, piped, say
from contract_tests.connectors.claude.cli import MODEL, needs_cli
from contract_tests.connectors.processes import kill, living, until_gone
from contract_tests.requirements import requirement
from contract_tests.surfaces.mcp_server.clients import LEGACY, MODERN, Filling, ask, facts, told
from harness.scripted_model import open_scripted_model

pytestmark = needs_cli


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@requirement("mcp-server:claude")
async def test_a_person_at_the_client_decides_what_the_cli_runs(shell: Shell, era: str) -> None:
    script = [
        {"calls": [{"name": "Bash", "arguments": {"command": "touch allowed"}, "id": "toolu_a"}]},
        {"calls": [{"name": "Bash", "arguments": {"command": "touch denied"}, "id": "toolu_b"}]},
        {"text": "One of two."},
        {"text": "I remember."},
    ]
    work = shell.directory / "work"
    work.mkdir()
    person = Filling({"decision": "allow_once"}, {"decision": "deny", "reason": "Not this one."})
    heard: list[str] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message or "")

    async with open_scripted_model(script) as model:
        arguments = ["mcp", *claude(shell, model), "-m", MODEL, "--internal-tools", "Bash", "--cwd", str(work)]
        environment = {**shell.environment_of_commands(), "HARNESS_STORE": "memory"}
        server = StdioServerParameters(command=HARNESS, args=arguments, env=environment, cwd=shell.directory)
        with anyio.fail_after(90):
            async with Client(server, mode=era, elicitation_callback=person) as client:
                first = await client.call_tool("ask", {"message": "Go."}, progress_callback=hear)
                second = await ask(client, "And?", conversation_id=facts(first)["conversation_id"])

    assert [form.message.splitlines()[0].rpartition(": ")[2] for form in person.asked] == [
        "Bash(touch allowed)",
        "Bash(touch denied)",
    ]
    assert [file.name for file in work.iterdir()] == ["allowed"]
    assert (told(first)[0], told(second)[0]) == ("One of two.", "I remember.")
    assert [(call["tool"], call["outcome"]) for call in facts(first)["calls"]] == [("Bash", "ok"), ("Bash", "refused")]
    assert (facts(first)["stop_reason"], facts(first)["usage"]["model_calls"]) == ("end_turn", 3)
    assert {call.call_id: call.is_error for call in model.requests[2].past_calls} == {"toolu_a": False, "toolu_b": True}
    assert "waits for leave: Bash(touch allowed)" in heard
    assert any(message.startswith("claude ") for message in heard)


@requirement("mcp-server:claude")
async def test_the_cli_itself_is_a_client_and_its_model_asks_another_agent(shell: Shell) -> None:
    # in this mode it shows forms to nobody, and says that they were cancelled
    steps = [{"text": "Rain "}, {"approval": {"tool": "Bash", "id": "p"}}, {"text": "({{results.p}})."}]
    server = {
        "command": HARNESS,
        "args": ["mcp", *fake(*steps), "--tools", "ask"],
        "env": {"HARNESS_STORE": "memory"},
    }
    config = shell.directory / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"agents": server}}))
    call = {"name": "mcp__agents__ask", "arguments": {"message": "How is Oslo?"}, "id": "toolu_a"}
    async with open_scripted_model([{"calls": [call]}, {"text": "Done."}]) as model:
        command = [
            find_program(ClaudeOptions(), {"PATH": "/usr/bin:/bin"}),
            *("-p", "Go.", "--model", MODEL, "--mcp-config", str(config), "--strict-mcp-config"),
            *("--allowedTools", "mcp__agents__ask"),
        ]
        environment = {
            **shell.environment_of_commands(),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-made-up",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        with anyio.fail_after(90):
            done = await anyio.run_process(command, cwd=shell.directory, env=environment, check=False)

    assert (done.returncode, done.stdout.decode().strip()) == (0, "Done.")
    [heard] = model.requests[-1].past_calls
    answer = json.loads((heard.result or "").partition("\n")[0])
    assert (heard.is_error, answer["text"], answer["stop_reason"]) == (False, "Rain (deny).", "end_turn")
    assert answer["calls"][0]["refusal_kind"] == "approval_unavailable"


@requirement("mcp-server:stdio", "mcp-server:claude")
async def test_the_end_of_stdin_ends_the_cli_and_what_it_runs(shell: Shell) -> None:
    script = [{"calls": [{"name": "Bash", "arguments": {"command": "echo $$ > pid; sleep 1000"}, "id": "toolu_a"}]}]
    note = shell.directory / "pid"
    os.mkfifo(note)
    async with open_scripted_model(script) as model:
        options = ["--internal-tools", "Bash", "--approve", "allow", "-m", MODEL]
        with piped(shell, *claude(shell, model), *options) as process, anyio.fail_after(90):
            say(process, HELLO, INITIALIZED, call_of_ask())
            peer = int((await anyio.to_thread.run_sync(_match, process, r"pid (\d+)"))[1])
            await anyio.to_thread.run_sync(_match, process, r"uses Bash\(")
            child = int(await anyio.to_thread.run_sync(note.read_text))  # once the command runs
            try:
                assert living([peer, child]) == [peer, child]
                assert process.stdin is not None
                process.stdin.close()
                code = await anyio.to_thread.run_sync(lambda: process.wait(30))
                with anyio.fail_after(10):
                    await until_gone([peer, child])
            finally:
                kill([peer, child])
    assert code == 0


def _match(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """The first progress message that fits."""
    assert process.stdout is not None
    for line in process.stdout:
        found = re.search(pattern, json.loads(line).get("params", {}).get("message", ""))
        if found:
            return found
    raise AssertionError(f"the server ended without '{pattern}'")
