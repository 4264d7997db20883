"""Our end of the reaper: one for all peers of an event loop, started with the first and ended with the last.

`current_reaper()` gives the running loop's. There is nothing to set up, hand around or close: a connector is made with
no arguments, several of them share the reaper without knowing each other, and a process without peers has none.
The loop holds it (a `RunVar`), not this module.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio.lowlevel import RunVar

from connectors._exits import exit_code, until_exit
from connectors._family import ProcessRecord
from connectors._reaper import IGNORED_SIGNALS

_PROGRAM = (
    "import sys; sys.path.append(sys.argv[3]); from connectors._reaper import main; "
    "main(int(sys.argv[1]), int(sys.argv[2]))"
)
_SOURCE = str(Path(__file__).resolve().parent.parent)
_END_SECONDS = 2.0

_logger = logging.getLogger(__name__)


@dataclass
class _Peer:
    stdin: int
    record: ProcessRecord | None = None


class Reaper:
    """Tells the reaper process which peers to end should we die. If somebody ends it, the next call starts another."""

    def __init__(self) -> None:
        self._peers: dict[str, _Peer] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    @property
    def has_peers(self) -> bool:
        return bool(self._peers)

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def expect(self, mark: str, stdin: int) -> None:
        """A peer with this mark is about to start, `stdin` is our write end: from here on its end is assured."""
        self._peers[mark] = _Peer(stdin)
        self._tell(f"expect {mark}", stdin)

    def started(self, record: ProcessRecord) -> None:
        self._peers[record.mark].record = record
        self._tell(_started_line(record))

    def gone(self, mark: str) -> None:
        """The peer and all it started have ended, or it never started."""
        self._peers.pop(mark, None)
        self._tell(f"gone {mark}")

    async def close(self) -> None:
        """Let the reaper process leave, which it does at once when it has no peers; bounded."""
        self.hang_up()
        child, self._process = self._process, None
        if child is not None:
            try:
                with anyio.move_on_after(_END_SECONDS, shield=True):
                    await until_exit(child.pid, lambda: exit_code(child) is None)
            finally:
                child.kill()
                child.wait()

    def hang_up(self) -> None:
        """Close the line: the reaper process ends all peers it still knows, and leaves."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _tell(self, line: str, *descriptors: int) -> None:
        if self._socket is not None:
            with suppress(OSError):
                socket.send_fds(self._socket, [f"{line}\n".encode()], descriptors)
                return
        self._forget_process()
        if self._peers:
            self._start()

    def _start(self) -> None:
        """Start the process and tell it all we know. Without one peers run too: only our own death is not covered."""
        ours, theirs = socket.socketpair()
        with theirs, _signals_held_back():
            try:
                self._process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-c", _PROGRAM, str(theirs.fileno()), str(os.getpid()), _SOURCE],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    cwd="/",
                    env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
                    start_new_session=True,  # what a terminal or a supervisor signals around us is not meant for it
                )
            except OSError as error:
                ours.close()
                _logger.warning("no reaper ('%s' does not start: %s): kill -9 would leave peers", sys.executable, error)
                return
        ours.setblocking(False)
        self._socket = ours
        with suppress(OSError):
            for mark, peer in self._peers.items():
                socket.send_fds(ours, [f"expect {mark}\n".encode()], [peer.stdin])
                if peer.record is not None:
                    ours.send(f"{_started_line(peer.record)}\n".encode())

    def _forget_process(self) -> None:
        # Killed before its socket closes: one that is only stuck would take that for our death.
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.hang_up()


@contextmanager
def _signals_held_back() -> Generator[None]:
    """A child inherits what this thread blocks: a signal cannot end the reaper before it has learned to ignore it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _started_line(record: ProcessRecord) -> str:
    return f"started {record.mark} {record.pid} {record.start_time}"


_CURRENT: RunVar[Reaper | None] = RunVar("connectors reaper", None)


def current_reaper() -> Reaper:
    """The running event loop's reaper, made now if there is none."""
    reaper = _CURRENT.get()
    if reaper is None:
        reaper = Reaper()
        _CURRENT.set(reaper)
    return reaper


async def leave_reaper(reaper: Reaper) -> None:
    """Close the reaper if the last peer has left; to be called after `gone`."""
    if not reaper.has_peers:
        if _CURRENT.get() is reaper:
            _CURRENT.set(None)
        await reaper.close()
