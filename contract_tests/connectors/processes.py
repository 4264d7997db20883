"""What the process tests share: the stand-in CLI's command line, and looks at the process table."""

import json
import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import anyio

from connectors._environment import base_environment
from connectors._process import PeerProcess

STANDIN = Path(__file__).parent.parent / "peers" / "standin.py"
ENVIRONMENT = base_environment(os.environ)


def standin(*steps: str) -> list[str]:
    return [sys.executable, "-I", "-S", str(STANDIN), *steps]


async def next_line(process: PeerProcess) -> bytes:
    """The one line that the peer writes next."""
    [line] = await process.receive()
    return line


async def told_pids(process: PeerProcess, count: int) -> list[int]:
    """The process ids that the stand-in writes, one line each, in whatever pieces they come."""
    pids: list[int] = []
    while len(pids) < count:
        pids += [json.loads(line)["pid"] for line in await process.receive()]
    return pids


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def living(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if is_alive(pid)]


async def until_gone(pids: Iterable[int]) -> None:
    """Wait for the end of processes that need not be our children."""
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if is_alive(pid):
                await anyio.wait_readable(descriptor)
        finally:
            os.close(descriptor)


def kill(pids: Iterable[int]) -> None:
    """For the end of a test that failed: leave nothing behind."""
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)


def children() -> set[int]:
    """All processes whose parent we are, zombies too."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def open_descriptors() -> set[str]:
    return {f"{entry.name} -> {target(entry)}" for entry in Path("/proc/self/fd").iterdir() if target(entry)}


def target(entry: Path) -> str:
    try:
        name = str(entry.readlink())
    except FileNotFoundError:  # the descriptor that lists the directory
        return ""
    return "" if name.endswith("/fd") else name


def environment_of(pid: int) -> dict[str, str]:
    entries = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(entry.decode().split("=", 1) for entry in entries if b"=" in entry)
