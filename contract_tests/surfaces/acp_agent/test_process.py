"""The command on its two streams: what is no message, what is printed, and the end of the input."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from contract_tests.cli.command import HARNESS, TIMEOUT_SECONDS, killed_after
from contract_tests.connectors.processes import living, until_gone
from contract_tests.requirements import requirement
from contract_tests.surfaces.acp_agent.client import environment, scripted
from harness.surfaces.acp_agent import stdio
from harness.wire.json_rpc import RpcMalformed, RpcRequest

INITIALIZE: dict[str, Any] = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


class Wire:
    """The agent's two streams, line by line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def send(self, message: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        line = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def until(self, **members: Any) -> dict[str, Any]:
        """The first message with these members; each line before it is a message too."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: dict[str, Any] = json.loads(line)
            if all(message.get(name) == value for name, value in members.items()):
                return message
        raise AssertionError(f"the agent ended without {members}")

    def ask(self, rpc_id: int, method: str, **params: Any) -> Any:
        self.send({"id": rpc_id, "method": method, "params": params})
        answer = self.until(id=rpc_id)
        return answer.get("result", answer.get("error"))


@contextmanager
def agent(home: Path, *arguments: str) -> Iterator[Wire]:
    with subprocess.Popen(
        [HARNESS, "acp", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=home,
        env=dict(environment(home)),
    ) as process:
        try:
            with killed_after(process):
                yield Wire(process)
        finally:
            process.kill()


@requirement("acp-agent:lines")
def test_lines_that_are_no_messages_are_answered_and_survived(tmp_path: Path) -> None:
    with agent(tmp_path, *scripted()) as wire:
        for line, code in (
            (b"nonsense", -32700),
            (b'"\xff"', -32700),
            (b"[1]", -32600),
            (b'{"id": 7}', -32600),
            (b'{"id": 7, "method": "initialize", "params": [1]}', -32602),
            (b'{"id": {}, "method": "initialize"}', -32600),
        ):
            wire.send(line)
            assert wire.until(id=7 if b'"id": 7' in line else None)["error"]["code"] == code
        wire.send(b"")
        wire.send({"method": "unheard/of"})
        wire.send({"id": 99, "result": {}})  # nobody has asked
        assert wire.ask(1, "initialize")["code"] == -32602
        assert wire.ask(2, "initialize", protocolVersion=1)["protocolVersion"] == 1
        odd = wire.ask(3, "session/new", cwd=str(tmp_path), mcpServers=[])
        wire.send(
            json.dumps(
                {
                    "id": 4,
                    "method": "session/prompt",
                    "params": {"sessionId": odd["sessionId"], "prompt": [{"type": "text", "text": "a\ud800\u2028b"}]},
                }
            ).encode()
        )
        told = ""
        while not told.endswith("b"):
            told += wire.until(method="session/update")["params"]["update"]["content"]["text"]
        assert told == "a\ufffd\u2028b"
        assert wire.until(id=4)["result"]["stopReason"] == "end_turn"


@requirement("acp-agent:lines")
async def test_a_line_without_end_is_one_message_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "MAX_LINE_BYTES", 100)
    pieces = [b"x" * 60, b"x" * 60, b"x" * 60, b'xx\n{"id": 1, "meth', b'od": "m"}\n', b"y" * 101 + b"\n"]

    async def read() -> bytes:
        await anyio.lowlevel.checkpoint()
        return pieces.pop(0) if pieces else b""

    messages = [message async for message in stdio._messages(read)]  # pyright: ignore[reportPrivateUsage]
    assert [type(message) for message in messages] == [RpcMalformed, RpcRequest, RpcMalformed]


@requirement("acp-agent:end")
def test_the_answers_before_the_end_of_the_input_still_arrive(tmp_path: Path) -> None:
    with agent(tmp_path, *scripted()) as wire:
        wire.send(INITIALIZE)
        wire.until(id=0)
        wire.send(b"nonsense")
        assert wire.process.stdin is not None
        wire.process.stdin.close()
        wire.until(id=None)
        assert wire.process.wait(TIMEOUT_SECONDS) == 0


@requirement("acp-agent:end")
@pytest.mark.parametrize("how", ["stdin", "stdout", "signal"])
async def test_the_end_of_the_client_ends_everything_below(tmp_path: Path, how: str) -> None:
    """The peer is an agent of our own, whose prompt hangs; an MCP server hangs on it too."""
    inner = ["acp", *scripted([{"text": "Here."}, {"hang": True}])]
    command = json.dumps([HARNESS, *inner])
    with agent(tmp_path, "--connector", "acp", "-O", f"command={command}", "-v") as wire:
        wire.send(INITIALIZE)
        wire.until(id=0)
        session = wire.ask(1, "session/new", cwd=str(tmp_path), mcpServers=[])["sessionId"]
        prompt = [{"type": "text", "text": "Go."}]
        wire.send({"id": 2, "method": "session/prompt", "params": {"sessionId": session, "prompt": prompt}})
        wire.until(method="session/update")
        below = descendants(wire.process.pid)
        assert any("acp" in name for name in map(command_line, below)), below
        assert wire.process.stdin is not None
        assert wire.process.stdout is not None
        if how == "stdin":
            wire.process.stdin.close()
        elif how == "stdout":
            wire.process.stdout.close()
            wire.send(b"nonsense")  # it hears of it when it has something to say
        else:
            wire.process.terminate()
        with anyio.fail_after(TIMEOUT_SECONDS):
            assert await anyio.to_thread.run_sync(wire.process.wait) == 0
            await until_gone(below)
        assert living(below) == []


@requirement("acp-agent:lines")
def test_what_is_printed_beside_goes_to_stderr(tmp_path: Path) -> None:
    noisy = tmp_path / "noisy"
    noisy.mkdir()
    (noisy / "sitecustomize.py").write_text(
        "import atexit, os, sys\nprint('at start', file=sys.stderr)\n"
        "atexit.register(lambda: (print('at the end', flush=True), os.system('echo from a child')))\n"
    )
    done = subprocess.run(
        [HARNESS, "acp", *scripted()],
        input=json.dumps(INITIALIZE).encode() + b"\n",
        capture_output=True,
        cwd=tmp_path,
        env={**environment(tmp_path), "PYTHONPATH": str(noisy)},
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0
    assert b"at the end" not in done.stdout
    assert b"from a child" in done.stderr
    for line in done.stdout.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"


def test_wrong_usage_is_one_line_on_stderr(tmp_path: Path) -> None:
    for words, told in (
        (("--connector", "nobody"), "nobody"),
        (("--connector", "fake", "-O", "steps"), "KEY=VALUE"),
    ):
        done = subprocess.run(
            [HARNESS, "acp", *words],
            capture_output=True,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            env=dict(environment(tmp_path)),
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert told in done.stderr.decode()
        assert len(done.stderr.splitlines()) == 1


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [int(child), *descendants(int(child))]
    return found


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
