"""The port behind which programs are started and ended, and how the rest of the house finds who does it.

Only the POSIX code behind it knows process groups and signals. It is found by entry point, as connectors are, so that
what needs no process works without it.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import entry_points
from typing import Protocol, cast

from harness.errors import ConnectorUnavailable

ENTRY_POINT_GROUP = "harness.processes"


class RunningProcess(Protocol):
    """A program that speaks in lines. It ends with the block of the `OpenProcess` that gave it."""

    @property
    def pid(self) -> int: ...

    @property
    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr."""
        ...

    def write(self, data: bytes) -> None:
        """Never waits.

        Raises:
            PeerLost: it has ended or reads no more.
        """
        ...

    def lines(self) -> AsyncIterator[list[bytes]]:
        """Its lines, those of one read together.

        Raises:
            PeerLost: it ended by itself, or closed its output.
        """
        ...


class OpenProcess(Protocol):
    """Starts a program; leaving the block ends it and everything it started."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None = None,
        name: str | None = None,
    ) -> AbstractAsyncContextManager[RunningProcess]: ...


def find_open_process() -> OpenProcess:
    """The installed way to start programs.

    Raises:
        ConnectorUnavailable: there is none for this system.
    """
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            return cast(OpenProcess, entry.load())
        except ImportError as error:
            raise ConnectorUnavailable(f"programs cannot be started on this system: {error}") from error
    raise ConnectorUnavailable("nothing here can start programs; install 'level2-harness' again: pip install -e .")
