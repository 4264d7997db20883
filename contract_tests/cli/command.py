"""The command as a user types it: a process of its own, in an empty directory, with an environment of its own."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HARNESS = str(Path(sys.executable).with_name("harness"))
TIMEOUT_SECONDS = 60

TOOLS = '''
import subprocess, threading, time
from harness import tool

@tool(read_only=True)
def get_weather(city: str) -> str:
    """The weather in a city."""
    print("a tool may print")
    subprocess.run(["echo", "and so may a program that it starts"], check=True)
    return f"3 °C in {city}"

def boom(x: int) -> str:
    """Raises."""
    raise ValueError("no way")

def say(text: str) -> str:
    """Says it again."""
    return text

def gate() -> str:
    """Returns what somebody writes into the fifo 'gate'."""
    with open("gate") as fifo:
        return fifo.read()

def forever() -> None:
    """Never returns."""
    threading.Event().wait()

async def busy() -> None:
    """Never returns, and lets nobody else in its event loop work."""
    while True:
        time.sleep(0.01)
'''


@contextmanager
def killed_after(process: subprocess.Popen[Any], seconds: float = TIMEOUT_SECONDS) -> Iterator[None]:
    """So long may the context last; after that the process is killed, and whoever reads from it goes on."""
    too_long = threading.Timer(seconds, process.kill)
    too_long.start()
    try:
        yield
    finally:
        too_long.cancel()


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Shell:
    """A directory that is home, working directory and runtime directory in one; `tools.py` is in it."""

    directory: Path
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def run(self, *arguments: str, stdin: str | bytes = b"", **environment: str) -> Done:
        done = subprocess.run(
            [HARNESS, *arguments],
            input=stdin.encode() if isinstance(stdin, str) else stdin,
            capture_output=True,
            cwd=self.directory,
            env={**self.environment_of_commands(), **environment},
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    @contextmanager
    def started(
        self, *arguments: str, stdin: int = subprocess.DEVNULL, **environment: str
    ) -> Iterator[subprocess.Popen[str]]:
        """The command while it runs; it is killed if it still does at the end."""
        with subprocess.Popen(
            [HARNESS, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env={**self.environment_of_commands(), **environment},
        ) as process:
            try:
                with killed_after(process):
                    yield process
            finally:
                process.kill()

    @contextmanager
    def at_terminal(self, *arguments: str, **environment: str) -> Iterator[Screen]:
        """The command with a terminal as stdin, stdout and stderr."""
        ours, theirs = pty.openpty()
        try:
            process = subprocess.Popen(
                [HARNESS, *arguments],
                stdin=theirs,
                stdout=theirs,
                stderr=theirs,
                cwd=self.directory,
                env={**self.environment_of_commands(), "TERM": "xterm-256color", **environment},
                start_new_session=True,
                preexec_fn=_take_terminal,
            )
        finally:
            os.close(theirs)
        try:
            with killed_after(process):
                yield Screen(ours, process)
        finally:
            process.kill()
            process.wait()
            os.close(ours)

    def environment_of_commands(self) -> dict[str, str]:
        home = str(self.directory)
        return {
            "PATH": "/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "HOME": home,
            "XDG_RUNTIME_DIR": home,
            **self.environment,
        }


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C typed there is a signal
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # what runs in the background of a script inherits that it is ignored


@dataclass
class Screen:
    """What a person sees, and the keyboard."""

    terminal: int
    process: subprocess.Popen[bytes]
    shown: str = ""

    def until(self, text: str) -> str:
        """Reads until the text is on the screen; gives what is new, the text included."""
        before = len(self.shown)
        while text not in self.shown[before:]:
            data = self._read()
            assert data, f"'{text}' never came, only: {self.shown[before:]}"
        return self.shown[before:]

    def more(self) -> bool:
        """Reads once; false at the end."""
        return bool(self._read())

    def type(self, keys: str) -> None:
        os.write(self.terminal, keys.encode())

    def end(self) -> int:
        """Reads to the end; gives the exit code."""
        while self._read():
            pass
        return self.process.wait(TIMEOUT_SECONDS)

    def _read(self) -> bytes:
        try:
            data = os.read(self.terminal, 65536)
        except OSError:  # the other side of the terminal is closed
            data = b""
        self.shown += data.decode(errors="replace")
        return data


def fake(*steps: dict[str, Any]) -> tuple[str, ...]:
    """Options that choose the connector `fake` with this script; without steps it echoes."""
    script = ("-O", f"steps={json.dumps(steps)}") if steps else ()
    return ("--connector", "fake", *script)


def line_with(process: subprocess.Popen[str], text: str) -> str:
    """The first line of stdout that has this text."""
    assert process.stdout is not None
    for line in process.stdout:
        if text in line:
            return line
    raise AssertionError(f"the command ended without '{text}': {process.stderr.read() if process.stderr else ''}")


def rest_of(process: subprocess.Popen[str], seconds: float = 20) -> tuple[str, str]:
    """Closes stdin and gives what stdout and stderr still say until the command ends.

    `communicate()` loses lines that a `readline()` has taken from the pipe together with its own.
    """
    if process.stdin is not None:
        process.stdin.close()
    assert process.stdout is not None
    assert process.stderr is not None
    with killed_after(process, seconds):
        rest, err = process.stdout.read(), process.stderr.read()
        process.wait()
    assert process.returncode != -signal.SIGKILL, f"it did not end within {seconds} seconds"
    return rest, err
