"""The one place where a CLI is started, talked to and ended. POSIX; connectors import it when they open a session.

Ending is a ladder: SIGTERM to the peer's group (only that lets a CLI end its own shells), a grace, SIGKILL to the group
and to everything else the peer started (`_family`). Its stdin stays open until it is gone: at the end of its input a
CLI would finish its turn and call its model again. The ladder runs in a task of its own that no cancellation reaches,
and it is bounded. Should this process die first, the reaper does the same (`_reaper`).
"""

import logging
import os
import secrets
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import PurePath

import anyio
import anyio.lowlevel

from connectors._exits import exit_code, until_exit
from connectors._family import (
    KILL_SECONDS,
    ProcessId,
    ProcessRecord,
    find_family,
    is_living,
    kill_family,
    read_stat,
)
from connectors._lines import DEFAULT_MAX_LINE_BYTES, Framer, LineFramer
from connectors._pipes import Outbox, Tail
from connectors._reaper_link import Reaper, current_reaper, leave_reaper
from connectors._spawn import start_child
from harness.errors import PeerLost, PeerProtocolError

_READ_BYTES = 256 * 1024
_MAX_UNSENT_BYTES = 256 * 1024 * 1024
_GRACE_SECONDS = 3.0
_EXIT_CODE_SECONDS = 0.5
_LAST_WORDS = 300

_logger = logging.getLogger(__name__)


@asynccontextmanager
async def open_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None = None,
    name: str | None = None,
    max_line_bytes: int = DEFAULT_MAX_LINE_BYTES,
    grace_seconds: float = _GRACE_SECONDS,
    framer: Framer | None = None,
) -> AsyncGenerator["PeerProcess"]:
    """Start a CLI; leaving the block, however that happens, ends it and everything it started.

    `env` is its whole environment (see `_environment.base_environment`), `name` is what errors call it, `framer` cuts
    its output where it does not speak in lines. What the block raises leaves it as it is.

    Raises:
        ConnectorUnavailable: the program is missing or cannot be run. One that starts and exits at once is a
            `PeerLost` of the first read or write, with its exit code and last words.
        InvalidArgument: the working directory, an argument or a variable cannot be used.
        LimitExceeded: this machine gives no more processes or files.
    """
    problem: Exception | None = None
    async with anyio.create_task_group() as tasks:
        reaper = current_reaper()
        try:
            # Nothing waits between the start and the task that ends it: no cancellation can fall between them.
            process = PeerProcess(
                argv,
                env=env,
                cwd=cwd,
                name=name or PurePath(argv[0]).name,
                framer=framer or LineFramer(max_line_bytes=max_line_bytes),
                reaper=reaper,
            )
        except Exception as error:
            problem = error
            tasks.start_soon(leave_reaper, reaper)
        else:
            tasks.start_soon(process.live, grace_seconds)
            try:
                yield process
            except Exception as error:
                problem = error
            finally:
                process.end_soon()
    if problem is not None:
        raise problem


class PeerProcess:
    """A running CLI: lines come, bytes go. It ends with the block of the `open_process` that gave it."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        name: str,
        framer: Framer,
        reaper: Reaper,
    ) -> None:
        mark = secrets.token_hex(16)
        try:
            self._child, self._pipes = start_child(
                argv, env=env, cwd=cwd, mark=mark, expect=lambda stdin: reaper.expect(mark, stdin)
            )
        except BaseException:
            reaper.gone(mark)
            raise
        stat = read_stat(self._child.pid)
        self.record = ProcessRecord(mark, self._child.pid, stat.start_time if stat else 0)
        reaper.started(self.record)
        self.name = name
        self._reaper = reaper
        self._framer = framer
        self._outbox = Outbox(self._pipes.stdin)
        self._stderr = Tail(self._pipes.stderr)
        self._returncode: int | None = None
        self._read_without_waiting = False
        self._exited = anyio.Event()
        self._ending = anyio.Event()
        self._gone = anyio.Event()

    @property
    def pid(self) -> int:
        return self.record.pid

    @property
    def mark(self) -> str:
        """What the peer and everything it starts carry; with `pid` and `start_time` enough to find them later."""
        return self.record.mark

    @property
    def start_time(self) -> int:
        return self.record.start_time

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; None while the peer runs."""
        return self._returncode

    @property
    def unsent_bytes(self) -> int:
        """What the peer has not taken yet."""
        return self._outbox.unsent_bytes

    @property
    def stderr_tail(self) -> str:
        """The end of what the peer wrote to stderr, at most 64 KiB."""
        return self._stderr.text

    # --- to the peer ------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Hand bytes to the peer: at once as far as its pipe takes them, the rest follows in order.

        Raises:
            PeerLost: it has ended or reads no more.
            PeerProtocolError: it has let 256 MiB lie unread.
        """
        if self._outbox.is_broken or self._exited.is_set() or self._ending.is_set():
            raise self._lost()
        if self.unsent_bytes + len(data) > _MAX_UNSENT_BYTES:
            raise PeerProtocolError(f"'{self.name}' does not read its input: {self.unsent_bytes} bytes wait for it")
        self._outbox.put(data)
        if self._outbox.is_broken:
            raise self._lost()

    async def drain(self) -> None:
        """Return when the peer's pipe has taken everything, or never will."""
        await self._outbox.drain()

    # --- from the peer ----------------------------------------------------------------------------------------------

    async def lines(self) -> AsyncIterator[list[bytes]]:
        """The peer's lines, those of one read together, until we end it.

        Raises:
            PeerLost: it ended by itself, or closed its output.
            PeerProtocolError: a line is longer than allowed.
        """
        with suppress(anyio.EndOfStream):
            while True:
                yield await self.receive()

    async def receive(self) -> list[bytes]:
        """The lines that the next reads complete, at least one. Cancelled while it waits, it loses nothing.

        Raises:
            EndOfStream: we are ending the peer.
            PeerLost: it ended by itself, or closed its output. What it had written before was given out first.
            PeerProtocolError: a line is longer than allowed.
        """
        while True:
            lines = self._framer.feed(await self._read())
            if lines:
                return lines

    async def _read(self) -> bytes:
        self._framer.feed(b"")  # raises what the last read kept back
        if self._read_without_waiting:
            # In a flood there is always something to read: others get their turn here.
            self._read_without_waiting = False
            await anyio.lowlevel.checkpoint()
        waited = False
        while not self._ending.is_set():
            try:
                data = os.read(self._pipes.stdout, _READ_BYTES)
            except BlockingIOError:
                if self._exited.is_set():  # no end of file comes while a grandchild holds the pipe
                    raise self._lost() from None
                with suppress(anyio.ClosedResourceError):  # woken to look at the two events
                    await anyio.wait_readable(self._pipes.stdout)
                waited = True
                continue
            if data:
                self._read_without_waiting = not waited
                return data
            with anyio.move_on_after(_EXIT_CODE_SECONDS):
                await self._exited.wait()
            raise self._lost()
        raise anyio.EndOfStream

    # --- its end ----------------------------------------------------------------------------------------------------

    async def wait(self) -> int | None:
        """Wait for the peer's own end and give its exit code; None when another part of this program took it."""
        await self._exited.wait()
        return self._returncode

    def end_soon(self) -> None:
        """Have the peer ended; `end` waits for it."""
        self._ending.set()

    async def end(self) -> None:
        """End the peer and everything it started: SIGTERM, grace, SIGKILL. Output that still comes is dropped."""
        self.end_soon()
        await self._gone.wait()

    async def live(self, grace_seconds: float) -> None:
        """Keep the pipes moving until the end is asked for, then climb the ladder. `open_process` runs this."""
        with anyio.CancelScope(shield=True):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._watch_exit)
                tasks.start_soon(self._stderr.pump)
                tasks.start_soon(self._outbox.pump)
                await self._ending.wait()
                await self._stop_reader()
                tasks.start_soon(self._drop_output)
                await self._end_family(grace_seconds)
                tasks.cancel_scope.cancel()
            self._close()
            await leave_reaper(self._reaper)

    async def _watch_exit(self) -> None:
        await until_exit(self.pid, lambda: exit_code(self._child) is None)
        self._returncode = exit_code(self._child)
        self._exited.set()
        self._outbox.give_up()
        anyio.notify_closing(self._pipes.stdout)

    async def _stop_reader(self) -> None:
        anyio.notify_closing(self._pipes.stdout)
        await anyio.lowlevel.checkpoint()  # it has left the descriptor when this returns

    async def _drop_output(self) -> None:
        """A peer that cannot write its last words may not come to its end."""
        with suppress(anyio.ClosedResourceError):
            while True:
                await anyio.wait_readable(self._pipes.stdout)
                if not os.read(self._pipes.stdout, _READ_BYTES):
                    return

    async def _end_family(self, grace_seconds: float) -> None:
        family = find_family((self.mark,), (self.record.leader,))
        self._signal_group(signal.SIGTERM)
        with anyio.move_on_after(grace_seconds):
            await self._exited.wait()
            # The real CLI behind a wrapper got the same signal and may need longer to end its shells.
            await _until_ended(process for process, stat in family.living.items() if stat.group == self.pid)
        with anyio.move_on_after(KILL_SECONDS) as limit:
            while True:
                self._signal_group(signal.SIGKILL)
                family = kill_family((self.mark,), family.noted)
                if not family.living:
                    break
                await _until_ended(family.living)
            await self._exited.wait()
        if limit.cancelled_caught:
            left = ", ".join(str(process.pid) for process in family.living)
            _logger.error("'%s' could not be ended: SIGKILL had no effect on %s", self.name, left or self.pid)

    def _signal_group(self, number: int) -> None:
        # The leader is our child and stays unreaped until the ladder is climbed: its number is nobody else's.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _close(self) -> None:
        self._stderr.finish()
        self._gone.set()
        self._child.poll()
        self._pipes.close()
        self._reaper.gone(self.mark)

    def _lost(self) -> PeerLost:
        if self._returncode is None and not self._gone.is_set():
            self._returncode = exit_code(self._child)
        code = self._returncode
        if self._ending.is_set():
            what = "was ended"
        elif code is None:
            what = "reads no more" if self._outbox.is_broken else "closed its output"
        elif code < 0:
            what = f"was killed by signal {-code} ({signal.strsignal(-code)})"
        else:
            what = f"exited with code {code}"
        if self._framer.unfinished_bytes:
            what += f" in the middle of a line ({self._framer.unfinished_bytes} bytes of it came)"
        tail = self.stderr_tail
        last_words = next((line.strip() for line in reversed(tail.splitlines()) if line.strip()), "")
        message = f"'{self.name}' {what}" + (f": {last_words[:_LAST_WORDS]}" if last_words else "")
        return PeerLost(message, exit_code=code, stderr_tail=tail)


async def _until_ended(processes: Iterable[ProcessId]) -> None:
    for process in processes:
        await until_exit(process.pid, lambda process=process: is_living(process))
