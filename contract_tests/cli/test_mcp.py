"""`harness mcp` as a process: what a client that starts it gets, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.session import ElicitationFnT
from mcp.client.streamable_http import streamable_http_client

from contract_tests.cli.command import HARNESS, Shell, fake, line_with, rest_of
from contract_tests.requirements import requirement
from contract_tests.surfaces.mcp_server.clients import LEGACY, MODERN, Filling, ask, facts, told
from contract_tests.surfaces.mcp_server.test_ask import end_of_turn
from contract_tests.test_import_cost import RUN_COMMAND, packages_loaded_by

both_eras = pytest.mark.parametrize("era", [LEGACY, MODERN])
LEAVE = (
    {"text": "I ask: "},
    {"approval": {"tool": "Bash", "arguments": {"command": "ls"}, "id": "p"}},
    {"text": "{{results.p}}"},
)
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call_of_ask(**arguments: Any) -> dict[str, Any]:
    params = {"name": "ask", "arguments": {"message": "hello", **arguments}, "_meta": {"progressToken": 7}}
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}


@asynccontextmanager
async def started(
    shell: Shell, *arguments: str, era: str = LEGACY, person: ElicitationFnT | None = None, seconds: float = 40
) -> AsyncGenerator[Client]:
    environment = {**shell.environment_of_commands(), "HARNESS_STORE": "memory"}
    server = StdioServerParameters(command=HARNESS, args=["mcp", *arguments], env=environment, cwd=shell.directory)
    with anyio.fail_after(seconds):
        async with Client(server, mode=era, elicitation_callback=person) as client:
            yield client


@both_eras
@requirement("mcp-server:stdio", "mcp-server:progress", "mcp-server:conversation", "mcp-server:elicitation")
async def test_a_client_that_starts_it_asks_is_asked_and_goes_on(shell: Shell, era: str) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    person = Filling({"decision": "allow_once"}, "decline")
    async with started(shell, *fake(*LEAVE), "-O", "repeat=true", era=era, person=person) as client:
        first = await client.call_tool("ask", {"message": "Go."}, progress_callback=hear)
        second = await ask(client, "Again.", conversation_id=facts(first)["conversation_id"])

    assert (told(first)[0], told(second)[0]) == ("I ask: allow_once", "I ask: deny")
    assert facts(second)["turn_id"] == "t2"
    assert "waits for leave: Bash(ls)" in heard


@both_eras
@requirement("mcp-server:stdio", "mcp-server:cancel")
async def test_a_cancelled_call_cancels_its_turn(shell: Shell, era: str) -> None:
    begun = anyio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        begun.set()

    async with started(shell, *fake({"text": "one"}, {"hang": True}), era=era) as client:
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                await client.call_tool("ask", {"message": "Wait."}, progress_callback=hear)

            group.start_soon(wait)
            await begun.wait()
            group.cancel_scope.cancel()
        listed = facts(await client.call_tool("list_conversations", {}))["conversations"]
        assert await end_of_turn(client, listed[0]["conversation_id"], "t1") == "cancelled"


@requirement("mcp-server:conversation", "mcp-server:stdio")
async def test_a_conversation_outlives_the_server_that_began_it(shell: Shell) -> None:
    async with started(shell, *fake(), "--store", "journal.db") as client:
        first = facts(await ask(client, "one"))
    async with started(shell, *fake(), "--store", "journal.db") as client:
        second = facts(await ask(client, "two", conversation_id=first["conversation_id"]))
        [listed] = facts(await client.call_tool("list_conversations", {}))["conversations"]
    assert (second["text"], second["turn_id"]) == ("two", "t2")
    assert (listed["conversation_id"], listed["turns"]) == (first["conversation_id"], 2)


@requirement("mcp-server:nobody", "mcp-server:stdio")
async def test_a_policy_decides_where_the_client_has_no_person(shell: Shell) -> None:
    (shell.directory / "policy.toml").write_text('allow = ["Bash(ls)"]\n')
    async with started(shell, *fake(*LEAVE)) as client:
        assert facts(await ask(client))["calls"][0]["outcome"] == "refused"
    async with started(shell, *fake(*LEAVE), "--policy", "policy.toml") as client:
        assert facts(await ask(client))["calls"][0]["outcome"] == "ok"


@requirement("mcp-server:stdio")
def test_stdout_has_the_protocol_alone_and_the_end_of_stdin_ends_it(shell: Shell) -> None:
    with piped(shell, *fake()) as process:
        say(process, HELLO, "this is no JSON", INITIALIZED, call_of_ask())
        answers = [json.loads(line_with(process, '"id":1')), json.loads(line_with(process, '"id":2'))]
        rest, err = rest_of(process)

    assert answers[0]["result"]["serverInfo"]["name"] == "level2-harness"
    assert answers[1]["result"]["structuredContent"]["text"] == "hello"
    assert (rest, process.returncode) == ("", 0)
    assert "Traceback" not in err


@requirement("mcp-server:stdio", "http:text")
def test_a_message_that_was_cut_within_a_character_is_answered(shell: Shell) -> None:
    with piped(shell, *fake()) as process:
        say(process, HELLO, INITIALIZED, call_of_ask(message="cut \ud83d"))
        line_with(process, '"id":1')
        answer = json.loads(line_with(process, '"id":2'))

    assert answer["result"]["structuredContent"]["text"] == "cut \ufffd"


@requirement("mcp-server:stdio")
def test_a_client_that_says_nothing_at_all_is_gone_at_once(shell: Shell) -> None:
    with shell.started("mcp", *fake(), "--store", "memory") as process:  # its stdin is /dev/null
        out, err = rest_of(process)
    done = shell.run("mcp", *fake(), "--store", "memory")  # and here an empty pipe
    assert (out, err, process.returncode) == (done.out, done.err, done.code) == ("", "", 0)


@requirement("mcp-server:elicitation", "mcp-server:stdio")
@pytest.mark.parametrize("answer", [{"action": "banana"}, {}, {"action": "accept", "content": {"decision": ["x"]}}, 7])
def test_whatever_a_client_answers_to_a_form_nothing_breaks_and_nothing_is_allowed(shell: Shell, answer: Any) -> None:
    hello = {**HELLO, "params": {**HELLO["params"], "capabilities": {"elicitation": {}}}}
    with piped(shell, *fake(*LEAVE)) as process:
        say(process, hello, INITIALIZED, call_of_ask())
        form = json.loads(line_with(process, "elicitation/create"))
        say(process, {"jsonrpc": "2.0", "id": form["id"], "result": answer})
        if answer == 7:  # no message at all: nobody has answered yet
            say(process, {"jsonrpc": "2.0", "id": form["id"], "error": {"code": 1, "message": "sorry"}})
        result = json.loads(line_with(process, '"id":2'))["result"]
        rest_of(process)
    assert (result["content"][0]["text"], result["isError"]) == ("I ask: deny", False)


@requirement("mcp-server:stdio")
def test_the_end_of_stdin_ends_a_turn_that_hangs(shell: Shell) -> None:
    with piped(shell, *fake({"text": "one"}, {"hang": True})) as process:
        say(process, HELLO, INITIALIZED, call_of_ask())
        line_with(process, "notifications/progress")
        rest_of(process)
    assert process.returncode == 0


@requirement("mcp-server:stdio")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_stdin_stays_open(shell: Shell, end: signal.Signals) -> None:
    with piped(shell, *fake()) as process:
        say(process, HELLO)
        line_with(process, '"id":1')
        process.send_signal(end)
        assert process.wait(20) == 0


@both_eras
@requirement("mcp-server:http", "R-K4")
async def test_over_http_it_tells_its_address_and_takes_the_token_of_a_file(shell: Shell, era: str) -> None:
    token = shell.directory / "token"
    token.write_text("sesame\n")
    token.chmod(0o600)
    arguments = ("mcp", *fake(), "--http", "--token-file", "token", "--store", "memory")
    with anyio.fail_after(40), shell.started(*arguments) as process:
        line = await anyio.to_thread.run_sync(line_with, process, "listening on ")
        url = line.removeprefix("listening on ").strip()
        headers = {"Authorization": "Bearer sesame"}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=30) as http,
            Client(streamable_http_client(url, http_client=http), mode=era) as client,
        ):
            assert told(await ask(client))[0] == "hello"
        process.send_signal(signal.SIGTERM)
        rest, err = await anyio.to_thread.run_sync(rest_of, process)
    assert (rest, err, process.returncode) == ("", "", 0)
    assert url.startswith("http://127.0.0.1:") and url.endswith("/mcp")


@requirement("mcp-server:stdio")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--connector", "nobody"), "unknown connector 'nobody'"),
        (("--connector", "fake", "--cwd", "nowhere"), "--cwd: 'nowhere' is no directory"),
        (("--connector", "fake", "--http", "--host", "0.0.0.0"), "give a token"),
        (("--connector", "fake", "--port", "8801"), "--port: is for a server over HTTP; add --http"),
    ],
)
def test_what_cannot_be_used_is_told_on_one_line(shell: Shell, arguments: tuple[str, ...], told: str) -> None:
    done = shell.run("mcp", *arguments)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert told in done.err


@requirement("import:cost:help")
def test_its_help_does_not_load_the_package(tmp_path: Path) -> None:
    loaded = packages_loaded_by(RUN_COMMAND.format(arguments=["mcp", "--help"]), tmp_path)
    assert loaded & {"mcp", "mcp_types", "starlette"} == set()


@requirement("mcp-server:stdio")
def test_without_the_package_it_says_what_to_type(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None; sys.argv = ['harness', 'mcp', '--connector', 'fake']\n"
        "from harness.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "pip install 'level2-harness[mcp]'" in done.stderr


@contextmanager
def piped(shell: Shell, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """The command with pipes that a test writes and reads itself; it is killed if it still runs at the end."""
    with shell.started("mcp", *arguments, stdin=subprocess.PIPE, HARNESS_STORE="memory") as process:
        yield process


def say(process: subprocess.Popen[str], *messages: dict[str, Any] | str) -> None:
    assert process.stdin is not None
    for message in messages:
        process.stdin.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    process.stdin.flush()
