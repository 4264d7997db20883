"""Finds and ends everything a peer started, whatever it did to get away. Linux; elsewhere nothing is found.

A CLI puts its shells into sessions of their own, wrappers leave the real program behind, a child may be started with
an empty environment: a process group does not hold them together. So each peer carries a random *mark* in two places:

* `HARNESS_PROCESS_MARK` in its environment, there from the first instruction on;
* the soft limit of its CPU time under real-time scheduling (RLIMIT_RTTIME), set to a number made from the mark: tens of
  thousands of years, so without effect. Every descendant inherits it, also one with an empty environment and a parent
  that is gone.

To them come the descendants by parent process id and the sessions these lead, noted before the first signal. A process
is signalled only through a descriptor of itself and when its start time is the noted one: never by name, never by a
number that another process may have by now.

Standard library only and light to import: the reaper lives on this.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

if sys.platform == "linux":
    import resource

MARK_VARIABLE = "HARNESS_PROCESS_MARK"
GRACE_SECONDS = 1.0
KILL_SECONDS = 2.0
_NEVER_OURS = frozenset((0, 1))


class ProcessId(NamedTuple):
    """One process for ever: the number alone is given to another one later."""

    pid: int
    start_time: int  # clock ticks since the machine started


class ProcessRecord(NamedTuple):
    """What is enough to find a peer and all it started, also from another process of ours."""

    mark: str
    pid: int
    start_time: int

    @property
    def leader(self) -> ProcessId:
        return ProcessId(self.pid, self.start_time)


class Stat(NamedTuple):
    parent: int
    group: int
    session: int
    start_time: int
    is_dead: bool  # a zombie still owns its number, but there is nothing to end


class Family(NamedTuple):
    """The live processes that belong to some peers, and all numbers to remember for the next look."""

    living: dict[ProcessId, Stat]
    noted: frozenset[ProcessId]


def read_stat(pid: int) -> Stat | None:
    """The process's row of the process table, or None when there is no such process (or no such table)."""
    try:
        fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    state, parent, group, session = fields[0], *map(int, fields[1:4])
    return Stat(parent, group, session, start_time=int(fields[19]), is_dead=state in b"ZX")


def put_mark(pid: int, mark: str) -> None:
    """Give a process that has just been started the mark that an empty environment does not take away."""
    if sys.platform == "linux":
        with suppress(OSError, ValueError):
            _, hard = resource.prlimit(pid, resource.RLIMIT_RTTIME)
            resource.prlimit(pid, resource.RLIMIT_RTTIME, (_limit(mark), hard))


def carries_mark(pid: int, marks: Collection[str]) -> bool:
    if sys.platform == "linux":
        with suppress(OSError):
            if resource.prlimit(pid, resource.RLIMIT_RTTIME)[0] in map(_limit, marks):
                return True
    try:
        environment = _read(f"/proc/{pid}/environ")
    except OSError:
        return False
    _, found, rest = (b"\0" + environment).partition(f"\0{MARK_VARIABLE}=".encode())
    return bool(found) and rest.partition(b"\0")[0].decode(errors="replace") in marks


def find_family(marks: Collection[str], noted: Iterable[ProcessId] = ()) -> Family:
    """Everything that carries one of the marks, was noted, descends from such a process, or is in a session of one."""
    table = {pid: stat for pid in _all_pids() if (stat := read_stat(pid)) is not None}
    known = frozenset(noted)
    oldest = min((process.start_time for process in known), default=0)
    strangers = _NEVER_OURS | {os.getpid(), os.getppid()}
    members = {
        pid
        for pid, stat in table.items()
        if pid not in strangers
        and stat.start_time >= oldest  # nothing is older than the peer it descends from
        and (ProcessId(pid, stat.start_time) in known or carries_mark(pid, marks))
    }
    while found := set(_relatives(table, members)) - strangers:
        members |= found
    everyone = {ProcessId(pid, table[pid].start_time): table[pid] for pid in members}
    living = {process: stat for process, stat in everyone.items() if not stat.is_dead}
    return Family(living, known | everyone.keys())


def _relatives(table: dict[int, Stat], members: set[int]) -> Iterator[int]:
    # A peer starts in a session of its own, so a member's session holds nothing but the family. Session 0 is the
    # kernel's, and in a container that of everything which came from outside.
    sessions = {table[pid].session for pid in members} - {0, os.getsid(0)}
    for pid, stat in table.items():
        if pid not in members and (stat.parent in members or stat.session in sessions):
            yield pid


def send_signal(process: ProcessId, number: int) -> None:
    """Signal exactly this process, if it still exists."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):  # an old kernel, or a container that forbids it
        if _is_still(process):
            with suppress(OSError):
                os.kill(process.pid, number)
        return
    try:
        # Opened first, looked at then: the descriptor cannot pass to another process.
        if _is_still(process):
            with suppress(OSError):
                signal.pidfd_send_signal(descriptor, number)
    finally:
        os.close(descriptor)


def kill_family(marks: Collection[str], noted: Iterable[ProcessId]) -> Family:
    """One round of SIGKILL. Rounds go on until nothing is living: a process may start another one meanwhile."""
    family = find_family(marks, noted)
    for process in family.living:
        send_signal(process, signal.SIGKILL)
    return family


def reap_stale(records: Iterable[ProcessRecord], *, grace_seconds: float = GRACE_SECONDS) -> int:
    """End what peers of an earlier, dead process of ours left behind, and give how many processes that were.

    Only what carries the mark of a record is touched: after a restart of the machine the same number and even the
    same start time may be somebody else's. Blocks for at most `grace_seconds` and the time that killing takes.
    """
    found = [
        record if carries_mark(record.pid, (record.mark,)) else ProcessRecord(record.mark, 0, 0) for record in records
    ]
    return end_family(found, grace_seconds=grace_seconds)


def resident_bytes(records: Collection[ProcessRecord]) -> int:
    """What is resident of the peers and all they started; 0 when none of them lives."""
    family = find_family({record.mark for record in records})
    return sum(_resident_bytes(process.pid) for process in family.living)


def end_family(records: Collection[ProcessRecord], *, grace_seconds: float = GRACE_SECONDS) -> int:
    """SIGTERM to the peers, grace, SIGKILL to everything that is left. Gives how many processes there were."""
    marks = {record.mark for record in records}
    family = find_family(marks, [record.leader for record in records if record.pid])
    ended = set(family.living)
    _wait_for_ends(_terminate(records, family), grace_seconds)
    deadline = time.monotonic() + KILL_SECONDS
    while time.monotonic() < deadline:
        family = kill_family(marks, family.noted)
        if not family.living:
            break
        ended |= family.living.keys()
        _wait_for_ends(family.living, 0.2)
    return len(ended)


def _terminate(records: Collection[ProcessRecord], family: Family) -> list[ProcessId]:
    """SIGTERM, and whom to wait for. What a peer keeps outside its group is left to the peer, which ends it itself."""
    groups = {record.pid for record in records if record.pid and _is_still(record.leader)}
    # The group of a leader that is gone cannot be told from a later one of the same number: one by one there.
    leaderless = {record.mark for record in records if record.pid not in groups}
    alone = [process for process in family.living if leaderless and carries_mark(process.pid, leaderless)]
    for group in groups:
        with suppress(OSError):
            os.killpg(group, signal.SIGTERM)
    for process in alone:
        send_signal(process, signal.SIGTERM)
    return alone + [process for process, stat in family.living.items() if stat.group in groups]


def _wait_for_ends(processes: Iterable[ProcessId], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for process in processes:
        _wait_for_end(process, deadline)


def _wait_for_end(process: ProcessId, deadline: float) -> None:
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):
        # No event to wait for on this system: look again, in steps a person would not notice.
        while is_living(process) and time.monotonic() < deadline:
            time.sleep(0.02)
        return
    try:
        if _is_still(process):
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
    finally:
        os.close(descriptor)


def is_living(process: ProcessId) -> bool:
    stat = read_stat(process.pid)
    return stat is not None and stat.start_time == process.start_time and not stat.is_dead


def _is_still(process: ProcessId) -> bool:
    """Whether the number is still this process's, be it a zombie."""
    stat = read_stat(process.pid)
    return stat is not None and stat.start_time == process.start_time


def _resident_bytes(pid: int) -> int:
    try:
        pages = int(_read(f"/proc/{pid}/statm").split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _limit(mark: str) -> int:
    return (1 << 60) | int(mark[:15], 16)


def _all_pids() -> list[int]:
    try:
        with os.scandir("/proc") as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit()]
    except OSError:
        return []


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return b"".join(iter(lambda: os.read(descriptor, 65536), b""))
    finally:
        os.close(descriptor)
