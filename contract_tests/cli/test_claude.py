"""The whole way with the real Claude Code CLI and a scripted model: in process, through a server, and the demo."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import pytest

from connectors.claude import ClaudeOptions
from connectors.claude.installed import find_program
from contract_tests.cli.command import Shell, line_with, rest_of
from contract_tests.cli.test_run import fits
from contract_tests.connectors.claude.cli import MODEL, needs_cli
from contract_tests.connectors.processes import kill, living, until_gone
from contract_tests.requirements import requirement
from harness.scripted_model import ScriptedModel, open_scripted_model

T = TypeVar("T", bound=Callable[..., object])

LONG = 120_000
TOOLS = f'''
from harness import tool

@tool(read_only=True)
def get_weather(city: str) -> str:
    """The weather."""
    return f"3 °C in {{city}}"

def boom(x: int) -> str:
    """Raises."""
    raise ValueError("no way")

def long() -> str:
    """Much."""
    return "x" * {LONG - 5} + " end."

def forever() -> None:
    """Never returns."""
    import threading
    threading.Event().wait()
'''
SCRIPT: list[dict[str, Any]] = [
    {
        "text": "I look twice.",
        "calls": [
            {"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "toolu_one"},
            {"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "toolu_two"},
        ],
    },
    {"calls": [{"name": "boom", "arguments": {"x": 1}, "id": "toolu_boom"}, {"name": "long", "id": "toolu_long"}]},
    {"text": "{{results.toolu_one}} and {{results.toolu_two}}, {{results.boom}}."},
]


def live(test: T) -> T:
    """For a test that starts the real CLI."""
    for mark in needs_cli:
        test = mark(test)
    return test


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    tmp_path.chmod(0o700)
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "work").mkdir()
    return Shell(tmp_path)


def claude(shell: Shell, model: ScriptedModel, **options: Any) -> list[str]:
    """Options that let the real CLI run in a home of its own, against the scripted model."""
    given = {"base_url": model.url, "key": "sk-made-up", "home": str(shell.directory / "home"), **options}
    return ["--connector", "claude", *(word for name, value in given.items() for word in ("-O", f"{name}={value}"))]


def check(told: dict[str, Any], model: ScriptedModel) -> None:
    """What the JSON says, and what the model itself received."""
    assert fits("completion.json", told)
    assert told["content"] == "3 °C in Oslo and 3 °C in Oslo, ValueError: no way."
    assert (told["status"], told["tool_calls"], told["failed_tool_calls"]) == ("completed", 4, 1)
    assert [(call["call_id"], call["tool"], call["outcome"]) for call in told["calls"]] == [
        ("toolu_one", "get_weather", "ok"),
        ("toolu_two", "get_weather", "ok"),
        ("toolu_boom", "boom", "failed"),
        ("toolu_long", "long", "ok"),
    ]
    assert told["usage"]["model_calls"] == 3

    first, second, third = model.requests
    assert first.past_calls == ()
    assert {call.call_id: call.result for call in second.past_calls} == dict.fromkeys(
        ("toolu_one", "toolu_two"), "3 °C in Oslo"
    )
    heard = {call.call_id: call for call in third.past_calls}
    assert (heard["toolu_boom"].is_error, heard["toolu_boom"].result) == (True, "ValueError: no way")
    assert heard["toolu_long"].result == "x" * (LONG - 5) + " end."


@live
@requirement("cli:run:claude")
async def test_identical_parallel_calls_an_error_a_long_result_and_a_third_round(shell: Shell) -> None:
    async with open_scripted_model(SCRIPT) as model:
        arguments = ["run", "Go.", *claude(shell, model), "-m", MODEL, "--tools", "tools.py", "--cwd", "work"]
        done = await anyio.to_thread.run_sync(lambda: shell.run(*arguments, "-o", "json"))
        assert (done.code, done.err) == (0, "")
        check(done.json, model)


@asynccontextmanager
async def server(shell: Shell, model: ScriptedModel, **options: Any) -> AsyncGenerator[subprocess.Popen[str]]:
    with shell.started("serve", *claude(shell, model, **options)) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            await anyio.to_thread.run_sync(lambda: process.wait(20))


async def url_of(process: subprocess.Popen[str]) -> str:
    line = await anyio.to_thread.run_sync(line_with, process, "listening on ")
    return line.removeprefix("listening on ").strip()


@live
@requirement("cli:run:remote")
async def test_the_same_through_a_server(shell: Shell) -> None:
    async with open_scripted_model(SCRIPT) as model, server(shell, model) as process:
        arguments = ["run", "Go.", "--url", await url_of(process), "-m", MODEL, "--tools", "tools.py", "-o", "json"]
        done = await anyio.to_thread.run_sync(lambda: shell.run(*arguments))
        assert (done.code, done.err) == (0, "")
        check(done.json, model)


@live
@requirement("serve:killed")
async def test_after_kill_9_of_the_server_nothing_lives_on_and_the_client_knows_at_once(shell: Shell) -> None:
    # before it becomes the real CLI it leaves a grandchild behind, in a session of its own
    program, note = shell.directory / "claude", shell.directory / "grandchild"
    real = find_program(ClaudeOptions(), {"PATH": "/usr/bin:/bin"})
    sleeper = f"setsid sh -c 'echo $$ > {note}; exec sleep 1000' < /dev/null > /dev/null 2>&1 &"
    program.write_text(f'#!/bin/sh\ntest "$1" = --version || {sleeper}\nexec {real} "$@"\n')
    program.chmod(0o755)
    script = [{"calls": [{"name": "forever", "id": "toolu_forever"}]}, {"text": "never"}]

    async with open_scripted_model(script) as model, server(shell, model, command=program) as process:
        url = await url_of(process)
        arguments = ["run", "Go.", "--url", url, "-m", MODEL, "--tools", "tools.py:forever", "-o", "jsonl"]
        with shell.started(*arguments) as client, anyio.fail_after(60):
            started = json.loads(await anyio.to_thread.run_sync(line_with, client, '"peer_started"'))
            await anyio.to_thread.run_sync(line_with, client, '"type":"request"')
            peer = int(re.search(r"pid (\d+)", started["item"]["text"])[1])  # type: ignore[index]
            pids = [peer, int(note.read_text()), *reapers_of(process.pid)]
            assert living(pids) == pids
            process.kill()
            try:
                with anyio.fail_after(5):
                    await until_gone(pids)
                    rest, err = await anyio.to_thread.run_sync(rest_of, client)
            finally:
                kill(pids)

        last = json.loads(rest.splitlines()[-1])
        assert (client.returncode, last["type"], last["error"]["code"]) == (1, "failed", "peer_lost")
        assert f"the server at '{url}' is gone" in err
        assert len(err.splitlines()) == 1
        assert [call["outcome"] for call in last["calls"]] == ["unknown"]
        assert len(model.requests) == 1


def reapers_of(pid: int) -> list[int]:
    """The children of the server that are no peer: its reaper."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"connectors._reaper" in Path(f"/proc/{child}/cmdline").read_bytes():
                found.append(int(child))
    return found


@live
@requirement("cli:run:interrupt-twice")
async def test_a_second_ctrl_c_ends_the_cli_with_the_command(shell: Shell) -> None:
    script = [{"calls": [{"name": "forever", "id": "toolu_forever"}]}, {"text": "never"}]
    async with open_scripted_model(script) as model:
        arguments = ["run", "Go.", *claude(shell, model), "-m", MODEL, "--tools", "tools.py:forever", "-o", "jsonl"]
        with shell.started(*arguments) as process, anyio.fail_after(60):
            started = json.loads(await anyio.to_thread.run_sync(line_with, process, '"peer_started"'))
            await anyio.to_thread.run_sync(line_with, process, '"type":"request"')
            peer = int(re.search(r"pid (\d+)", started["item"]["text"])[1])  # type: ignore[index]
            assert living([peer]) == [peer]
            process.send_signal(signal.SIGINT)
            assert process.stderr is not None
            await anyio.to_thread.run_sync(process.stderr.readline)
            process.send_signal(signal.SIGINT)
            with anyio.fail_after(5):
                await until_gone([peer])
                code = await anyio.to_thread.run_sync(process.wait)
        assert code == 130
        assert len(model.requests) == 1


@requirement("cli:run:claude-broken")
@pytest.mark.parametrize(
    ("program", "words"),
    [
        (None, "claude"),
        ("echo '2.1.100 (Claude Code)'", "at least 2.1.197"),
        ('test "$1" = --version && echo 2.1.300 || { echo nonsense; exit 0; }', "printed 'nonsense'"),
        ('test "$1" = --version && echo 2.1.300 || { echo "unknown option --x" >&2; exit 1; }', "unknown option"),
    ],
)
def test_a_cli_that_cannot_be_used_is_one_line_with_the_remedy(shell: Shell, program: str | None, words: str) -> None:
    file = shell.directory / "claude"
    if program is not None:
        file.write_text(f"#!/bin/sh\n{program}\n")
        file.chmod(0o755)
    options = ["-O", f"command={file}", "-O", "key=sk-made-up", "-O", f"home={shell.directory}/home"]
    done = shell.run("run", "Go.", "--connector", "claude", *options)
    assert (done.code, done.out) == (3, "")
    assert words in done.err
    assert "pip install 'level2-harness[claude]'" in done.err
    assert len(done.err.splitlines()) == 1


@live
@requirement("cli:run:connector-choice")
def test_the_first_usable_connector_is_named_with_the_reason(shell: Shell) -> None:
    done = shell.run("run", "Go.", "--dry-run", ANTHROPIC_API_KEY="sk-made-up")
    assert (done.code, done.json["connector"]) == (0, "claude")
    assert done.err.startswith("harness: connector 'claude', the first usable one; --connector or HARNESS_CONNECTOR")


@live
@requirement("cli:run:dry-run")
def test_a_dry_run_shows_the_command_line_and_no_secret(shell: Shell) -> None:
    options = ("-O", "key=sk-very-secret", "--system", "a secret of a prompt", "--tools", "tools.py:boom")
    done = shell.run("run", "Go.", "--connector", "claude", *options, "--dry-run", ANTHROPIC_API_KEY="sk-other")
    assert done.code == 0
    assert done.json["argv"][0].endswith("claude")
    assert "--strict-mcp-config" in done.json["argv"]
    assert [tool["name"] for tool in done.json["tools"]] == ["boom"]
    assert "secret" not in done.out + done.err
    assert "sk-other" not in done.out


@live
@requirement("cli:demo")
def test_the_demo_shows_every_step_and_the_models_log_proves_them(shell: Shell) -> None:
    done = shell.run("demo", "--log", "model.jsonl")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()

    [start] = [line for line in lines if "peer started" in line]
    told = re.fullmatch(r"· peer started: claude ([\d.]+) at (/.*), pid \d+, ready in [\d.]+ s", start)
    assert told
    version, binary = told[1], told[2]
    assert os.access(binary, os.X_OK)
    asked = [index for index, line in enumerate(lines) if line.startswith("→ get_weather(")]
    answered = [index for index, line in enumerate(lines) if line.startswith("✓ get_weather(")]
    assert [len(asked), len(answered)] == [2, 2]
    assert max(asked) < min(answered), "the calls of a round run side by side"
    assert re.search(r'✓ book_train\(city="Rome", seats=1\): answered by the host in \d+ ms', done.out)
    assert "usage: 3000 input tokens" in done.out
    assert "the model was a script" in done.out
    assert 'harness run "What is the weather in Oslo?" --connector claude --tools tools.py' in done.out

    log = [json.loads(line) for line in (shell.directory / "model.jsonl").read_text().splitlines()]
    calls = [request for request in log if request["entry"] is not None]
    assert {request["headers"]["user-agent"].split()[0] for request in calls} == {f"claude-cli/{version}"}
    results = [results_in(request["body"]) for request in calls]
    assert results[1] == {"toolu_demo_oslo": "3 °C and rain", "toolu_demo_rome": "19 °C and sun"}
    [booking] = results[2].values()
    number = re.match(r"booking (\d{6})", booking)
    assert number
    [answer] = [line for line in lines if line.startswith("Rome is warmer.")]
    assert number[1] in answer
    # nothing of the user's is read or written
    assert not (shell.directory / ".claude").exists()
    assert not (shell.directory / ".claude.json").exists()


def results_in(body: dict[str, Any]) -> dict[str, str]:
    """Tool-use id -> text, of the last message."""
    content = body["messages"][-1]["content"]
    blocks = [block for block in content if isinstance(block, dict) and block["type"] == "tool_result"]
    return {
        block["tool_use_id"]: block["content"]
        if isinstance(block["content"], str)
        else "".join(part["text"] for part in block["content"])
        for block in blocks
    }
