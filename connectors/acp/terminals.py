"""Commands that an agent has its client run: each a process of ours, in the working directory, until it is released."""

from __future__ import annotations

import codecs
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.abc import TaskGroup, TaskStatus

from connectors._json import JsonObject
from connectors._process import PeerProcess, open_process
from connectors.acp.client_calls import NOT_FOUND, Command, Refusal
from harness.errors import HarnessError, PeerLost
from harness.wire.json_rpc import INTERNAL_ERROR

MOST_TERMINALS = 32
MOST_BYTES = 1024 * 1024
# one stream, as in a terminal, and nothing to read
_RUN = ("/bin/sh", "-c", 'exec "$0" "$@" </dev/null 2>&1')
_SHELL = ("/bin/sh", "-c")


class Chunks:
    """Output as it comes: not cut into anything."""

    unfinished_bytes = 0

    def feed(self, data: bytes) -> list[bytes]:
        return [data] if data else []


class OutputEnd:
    """The end of an output, in so many bytes of UTF-8, never in the middle of a character."""

    def __init__(self, limit: int) -> None:
        self._limit = min(max(limit, 0), MOST_BYTES)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._kept = b""
        self.is_truncated = False

    @property
    def text(self) -> str:
        return self._kept.decode()

    def feed(self, data: bytes, *, is_last: bool = False) -> None:
        kept = self._kept + self._decoder.decode(data, is_last).encode()
        if len(kept) > self._limit:
            self.is_truncated = True
            start = len(kept) - self._limit
            while start < len(kept) and kept[start] & 0xC0 == 0x80:
                start += 1
            kept = kept[start:]
        self._kept = kept


@dataclass(slots=True)
class _Terminal:
    output: OutputEnd
    process: PeerProcess | None = None
    ended: anyio.Event = field(default_factory=anyio.Event)
    returncode: int | None = None

    @property
    def status(self) -> JsonObject:
        code = self.returncode
        if code is not None and code < 0:
            return {"exitCode": None, "signal": signal.Signals(-code).name}
        return {"exitCode": code, "signal": None}

    def end_soon(self) -> None:
        if self.process is not None:
            self.process.end_soon()


class Terminals:
    """Those of one conversation; they run in its task group, and end with it."""

    def __init__(self, tasks: TaskGroup, environment: Mapping[str, str], *, grace_seconds: float) -> None:
        self._tasks = tasks
        self._environment = environment
        self._grace_seconds = grace_seconds
        self._open: dict[str, _Terminal] = {}
        self._made = 0

    async def create(self, command: Command, cwd: Path, *, limit: int | None = None) -> str:
        """Starts a command and gives the name of its terminal. A program that is not there says so in its output.

        Raises:
            Refusal: there are too many, or this machine gives no process.
        """
        if len(self._open) >= MOST_TERMINALS:
            raise Refusal(INTERNAL_ERROR, f"{MOST_TERMINALS} terminals are open: release one first")
        terminal = _Terminal(OutputEnd(MOST_BYTES if limit is None else limit))
        self._made += 1
        name = f"terminal-{self._made}"
        self._open[name] = terminal
        words = [*_SHELL, command.program] if command.arguments is None else [command.program, *command.arguments]
        try:
            await self._tasks.start(self._run, terminal, [*_RUN, *words], {**self._environment, **command.env}, cwd)
        except HarnessError as error:
            del self._open[name]
            raise Refusal(INTERNAL_ERROR, error.message) from None
        return name

    def output(self, name: str) -> JsonObject:
        terminal = self._terminal(name)
        told: JsonObject = {"output": terminal.output.text, "truncated": terminal.output.is_truncated}
        return {**told, "exitStatus": terminal.status} if terminal.ended.is_set() else told

    async def exit_status(self, name: str) -> JsonObject:
        """Waits for the command's end."""
        terminal = self._terminal(name)
        await terminal.ended.wait()
        return terminal.status

    async def kill(self, name: str) -> None:
        """Ends the command; its output can still be read."""
        terminal = self._terminal(name)
        terminal.end_soon()
        await terminal.ended.wait()

    async def release(self, name: str) -> None:
        await self.kill(name)
        self._open.pop(name, None)

    def stop(self) -> None:
        """Ends every command that runs: the user has cancelled."""
        for terminal in self._open.values():
            terminal.end_soon()

    # inside

    def _terminal(self, name: str) -> _Terminal:
        if name not in self._open:
            raise Refusal(NOT_FOUND, f"no terminal '{name}'")
        return self._open[name]

    async def _run(
        self,
        terminal: _Terminal,
        argv: list[str],
        env: Mapping[str, str],
        cwd: Path,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        try:
            async with open_process(
                argv, env=env, cwd=cwd, name=argv[3], grace_seconds=self._grace_seconds, framer=Chunks()
            ) as process:
                terminal.process = process
                task_status.started()
                try:
                    async for chunks in process.lines():
                        terminal.output.feed(b"".join(chunks))
                except PeerLost:
                    pass  # it has ended by itself
                terminal.output.feed(b"", is_last=True)
                terminal.returncode = await process.wait()
                terminal.ended.set()
        finally:
            terminal.ended.set()
