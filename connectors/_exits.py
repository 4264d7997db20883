"""Waiting for the end of a process without taking its number away from it."""

import os
import subprocess
import sys
from collections.abc import Callable

import anyio

_LOOK_AGAIN_SECONDS = 0.02


async def until_exit(pid: int, is_living: Callable[[], bool]) -> None:
    """Return when the process, a child of ours or not, has ended. Nothing is reaped: a child stays a zombie."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):
        # An old kernel, a container that forbids it, another system: there is no event to wait for.
        while is_living():
            await anyio.sleep(_LOOK_AGAIN_SECONDS)
        return
    try:
        if is_living():  # looked at after the descriptor was opened: the number is not somebody else's
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def exit_code(child: "subprocess.Popen[bytes]") -> int | None:
    """The child's exit code, negative for a signal, None while it runs.

    On Linux the child is left a zombie, so that its number, which is also its group's, goes to nobody else until
    whoever started it calls `wait`.
    """
    if sys.platform != "linux" or child.returncode is not None:
        return child.poll()
    try:
        end = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # the host program takes the exit codes of all children
        return child.poll()
    if end is None:
        return None
    return end.si_status if end.si_code == os.CLD_EXITED else -end.si_status
