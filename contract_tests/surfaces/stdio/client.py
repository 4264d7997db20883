"""A JSON-RPC client as a stranger would write it: lines to one descriptor, lines from another."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from contract_tests.cli.command import HARNESS, Shell
from contract_tests.llm_suite import open_house
from harness.surfaces.descriptors import read_some, write_all
from harness.surfaces.server import connectors_of
from harness.surfaces.stdio.server import serve_stdio


class Fault(Exception):
    """A call that was answered by an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.number: int = error["code"]
        self.data: dict[str, Any] = error.get("data", {})


@dataclass
class Client:
    """`heard` has all messages in their order; those nobody asked for are notifications or answer a broken line."""

    reading: int
    writing: int
    heard: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    asked: int = 0
    rest: bytes = b""

    async def next(self) -> dict[str, Any] | None:
        """The next message; null at the end."""
        while b"\n" not in self.rest:
            data = await read_some(self.reading)
            if not data:
                assert self.rest == b""
                return None
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        assert line.isascii()
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        self.heard.append(message)
        return message

    async def rest_of_it(self) -> list[dict[str, Any]]:
        """All messages to the end."""
        messages: list[dict[str, Any]] = []
        while (message := await self.next()) is not None:
            messages.append(message)
        return messages

    async def write(self, line: bytes) -> None:
        await write_all(self.writing, line + b"\n")

    async def send(self, method: str, **params: Any) -> int:
        """Asks without waiting; gives the id."""
        self.asked += 1
        message = {"jsonrpc": "2.0", "id": self.asked, "method": method, "params": params}
        await self.write(json.dumps(message).encode())
        return self.asked

    async def notify(self, method: str, **params: Any) -> None:
        await self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode())

    async def answer_to(self, rpc_id: int | str) -> Any:
        while (message := await self.next()) is not None:
            if "method" not in message and message["id"] == rpc_id:
                if "error" in message:
                    raise Fault(message["error"])
                return message["result"]
        raise AssertionError(f"the end came before the answer to {rpc_id}")

    async def ask(self, method: str, **params: Any) -> Any:
        return await self.answer_to(await self.send(method, **params))

    async def until(self, method: str, **members: Any) -> dict[str, Any]:
        """The params of the next notification whose turn state has these members."""
        while (message := await self.next()) is not None:
            if message.get("method") == method:
                state = message["params"].get("state", {})
                if all(state.get(name) == member for name, member in members.items()):
                    return message["params"]
        raise AssertionError(f"the end came before '{method}'")

    async def begin_turn(self, text: str = "hello", **params: Any) -> dict[str, str]:
        begun = await self.ask("begin_conversation", options={"tools": [{"name": "weather"}]})
        content = [{"type": "text", "text": text}]
        return {**begun, **await self.ask("submit_user_message", **begun, content=content, **params)}

    def close(self) -> None:
        if self.writing >= 0:
            os.close(self.writing)
            self.writing = -1


@asynccontextmanager
async def connected(script: object, **options: Any) -> AsyncGenerator[tuple[Client, anyio.Event]]:
    """A client in this process; the event stops the server."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    client, stopping = Client(ours_in, ours_out), anyio.Event()
    try:
        with anyio.fail_after(20):
            async with open_house(script) as house, anyio.create_task_group() as group:

                async def serve() -> None:
                    known = connectors_of(["fake"])
                    await serve_stdio(house, known, theirs_in, theirs_out, version="9", stopping=stopping, **options)
                    os.close(theirs_out)

                group.start_soon(serve)
                yield client, stopping
                client.close()
                await client.rest_of_it()
    finally:
        client.close()
        os.close(ours_in)
        os.close(theirs_in)


@asynccontextmanager
async def started(shell: Shell, *arguments: str) -> AsyncGenerator[tuple[Client, subprocess.Popen[bytes]]]:
    """The command as a program starts it."""
    with subprocess.Popen(
        [HARNESS, "serve", "--stdio", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.directory,
        env=shell.environment_of_commands(),
    ) as process:
        assert process.stdin and process.stdout
        client = Client(process.stdout.fileno(), os.dup(process.stdin.fileno()))
        process.stdin.close()
        try:
            with anyio.fail_after(60):
                yield client, process
        finally:
            client.close()
            process.kill()


async def ended(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Exit code and stderr, when it has ended by itself."""
    assert process.stderr
    err = await anyio.to_thread.run_sync(process.stderr.read)
    return await anyio.to_thread.run_sync(process.wait), err.decode()
