"""Stdin and stdout for the protocol alone, read and written without a thread that no signal could end."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel

_READ_BYTES = 256 * 1024


def take_streams() -> tuple[int, int]:
    """Stdin and stdout, ours alone until the process ends, and for what is printed while it does.

    A program that a connector starts reads nothing, and what anybody else prints goes to stderr.
    """
    sys.stdout.flush()
    taken = os.dup(0), os.dup(1)
    with Path(os.devnull).open("rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    return taken


async def read_some(descriptor: int) -> bytes:
    """What is there, or what comes next; nothing at the end."""
    await _ready(anyio.wait_readable, descriptor)
    try:
        return os.read(descriptor, _READ_BYTES)
    except OSError:  # the terminal is gone
        return b""


async def write_all(descriptor: int, data: bytes) -> None:
    """Raises:
    OSError: nobody reads any more.
    """
    rest = memoryview(data)
    while rest:
        await _ready(anyio.wait_writable, descriptor)
        # so much a pipe that is ready takes without blocking; it is shared, so it cannot be set not to block
        rest = rest[os.write(descriptor, rest[: select.PIPE_BUF]) :]


async def _ready(wait: Callable[[int], Awaitable[None]], descriptor: int) -> None:
    try:
        await wait(descriptor)
    except PermissionError:  # a file: it always is
        await anyio.lowlevel.checkpoint()
