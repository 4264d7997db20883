"""Stands between a connector and a CLI and writes down every message of both. Standard library only.

tee_cli LOG PROGRAM [ARGUMENT...]: questions such as `--version` go to the program itself. Where the CLI is told of a
bridge, what goes there over HTTP is written down too.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

from harness.testing.peers.framing import framed, messages_in
from harness.testing.peers.tee_mcp import McpTee

_LAST_WORDS_SECONDS = 0.5
_QUESTIONS = ({"--version"}, {"auth", "status"})


class Log:
    """Appends one JSON line per record, at once on disk: the process may be killed at any time."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._lock = threading.Lock()
        self._begun = time.monotonic()

    def add(self, **record: object) -> None:
        at = round((time.monotonic() - self._begun) * 1000)
        with self._lock:
            os.write(self._file, json.dumps({"at": at, **record}).encode() + b"\n")


def unchanged(line: bytes) -> bytes:
    return line


def copy(source: IO[bytes], sink: IO[bytes], log: Log, name: str, change: Callable[[bytes], bytes] = unchanged) -> None:
    """Message by message to the end, then closes the sink."""
    try:
        for message, framing in messages_in(source):
            if b'"transcript_path"' in message:
                keep_transcript(message, log)
            how = {"framing": framing} if framing != "line" else {}
            log.add(**{"from": name, "line": message.decode("utf-8", "surrogateescape"), **how})
            sink.write(framed(change(message), framing))
            sink.flush()
    except (BrokenPipeError, ValueError):
        pass  # the reader is gone, and with it the reason to copy
    finally:
        sink.close()


def keep_transcript(line: bytes, log: Log) -> None:
    """The file that the CLI names in a hook: whoever reads it then, finds it in a replay too."""
    found = re.search(rb'"transcript_path":\s*("(?:[^"\\]|\\.)*")', line)
    path = Path(json.loads(found[1])) if found else None
    if path is not None and path.is_file():
        log.add(file=str(path), text=path.read_text(encoding="utf-8", errors="surrogateescape"))


def redirect(arguments: list[str], log: Log, bridges: McpTee) -> list[str]:
    """Has the CLI read copies of the files that tell it of a bridge."""
    passed: list[str] = []
    for number, argument in enumerate(arguments):
        file = Path(argument)
        if number and arguments[number - 1] == "--mcp-config" and file.is_file():
            told = file.read_bytes()
            redirected = bridges.redirected(told)
            if redirected != told:
                log.add(config=told.decode())
                file = file.with_name("redirected.json")
                file.touch(0o600)
                file.write_bytes(redirected)
        passed.append(str(file) if file.name == "redirected.json" else argument)
    return passed


def main() -> None:
    log_path, program, *arguments = sys.argv[1:]
    if any(words <= set(arguments) for words in _QUESTIONS):
        os.execv(program, [program, *arguments])
    log = Log(log_path)
    log.add(start=arguments)
    bridges = McpTee(log.add)
    arguments = redirect(arguments, log, bridges)
    pipe = subprocess.PIPE
    child = subprocess.Popen([program, *arguments], stdin=pipe, stdout=pipe, stderr=pipe)
    assert child.stdin is not None and child.stdout is not None and child.stderr is not None

    def pass_on(number: int, _: object) -> None:
        child.send_signal(number)

    signal.signal(signal.SIGTERM, pass_on)
    signal.signal(signal.SIGINT, pass_on)
    threading.Thread(
        target=copy, args=(sys.stdin.buffer, child.stdin, log, "host", bridges.redirected), daemon=True
    ).start()
    errors = threading.Thread(target=copy, args=(child.stderr, sys.stderr.buffer, log, "stderr"), daemon=True)
    errors.start()
    copy(child.stdout, sys.stdout.buffer, log, "peer")
    code = child.wait()
    errors.join(_LAST_WORDS_SECONDS)  # a grandchild may hold the pipe
    log.add(exit=code)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main()
