"""The reaper: a small process beside ours that ends our peers when we are gone, however we went.

`python -I -S -c "...; main(SOCKET, OWNER)"`, in a session of its own. It sleeps until its socket says something, and
leaves with its owner. Standard library only and few imports: it starts with the first peer.
"""

import os
import select
import signal
import socket
from contextlib import suppress

from connectors._family import ProcessRecord, end_family

# Whoever ends the owner politely often signals everything around it too: this program leaves after its owner.
IGNORED_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Reaper:
    """The program's memory: which peers the owner has, and a copy of each one's stdin.

    The copy keeps a peer from seeing the end of its input when the owner dies: at that a CLI would finish its turn and
    call its model again. The owner speaks in lines: `expect MARK` (with the descriptor), `started MARK PID START`,
    `gone MARK`.
    """

    def __init__(self) -> None:
        self.records: dict[str, ProcessRecord] = {}
        self._inputs: dict[str, int] = {}
        self._received: list[int] = []
        self._unfinished = b""

    def receive(self, data: bytes, descriptors: list[int]) -> None:
        self._received += descriptors
        *lines, self._unfinished = (self._unfinished + data).split(b"\n")
        for line in lines:
            self._obey(*line.decode().split(" "))

    def _obey(self, word: str, mark: str, pid: str = "0", start_time: str = "0") -> None:
        if word == "gone":
            self.records.pop(mark, None)
            if (descriptor := self._inputs.pop(mark, None)) is not None:
                os.close(descriptor)
            return
        self.records[mark] = ProcessRecord(mark, int(pid), int(start_time))
        if word == "expect":
            self._inputs[mark] = self._received.pop(0)


def _listen_until_the_owner_ends(owner: socket.socket, owner_pid: int, reaper: _Reaper) -> None:
    poll = select.poll()
    poll.register(owner, select.POLLIN)
    with suppress(OSError, AttributeError):
        # A process that the owner forked without exec keeps our socket open after the owner's death.
        poll.register(os.pidfd_open(owner_pid), select.POLLIN)
    owner_is_gone = os.getppid() != owner_pid
    while True:
        with suppress(BlockingIOError):
            while True:
                data, descriptors, _, _ = socket.recv_fds(owner, 65536, 16)
                if not data:
                    return
                reaper.receive(data, descriptors)
        if owner_is_gone:
            return
        owner_is_gone = any(descriptor != owner.fileno() for descriptor, _ in poll.poll())


def main(owner_socket: int, owner_pid: int) -> None:
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    reaper = _Reaper()
    with socket.socket(fileno=owner_socket) as owner:
        owner.setblocking(False)
        _listen_until_the_owner_ends(owner, owner_pid, reaper)
    if reaper.records:
        end_family(list(reaper.records.values()))
