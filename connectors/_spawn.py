"""Starts a program with pipes of our own, or says in one line why that cannot be."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from connectors._family import MARK_VARIABLE, put_mark
from connectors._pipes import Pipes
from harness.errors import ConnectorUnavailable, HarnessError, InvalidArgument, LimitExceeded


def start_child(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    mark: str,
    expect: Callable[[int], None],
) -> "tuple[subprocess.Popen[bytes], Pipes]":
    """Start the program in a session of its own; `expect` is called with our end of its stdin just before.

    No await: a cancellation finds the child either not started or in the hands of the caller.

    Raises:
        ConnectorUnavailable: there is no such program, or it cannot be run here.
        InvalidArgument: the working directory, an argument or a variable cannot be used.
        LimitExceeded: this machine gives no more processes or files.
    """
    if sys.platform == "win32" or argv[0].lower().endswith((".cmd", ".bat")):
        raise ConnectorUnavailable(f"'{argv[0]}' cannot be started here: name a native program, on a POSIX system")
    try:
        with ExitStack() as theirs, ExitStack() as ours:
            child_in, stdin = _pipe(reader=theirs, writer=ours)
            stdout, child_out = _pipe(reader=ours, writer=theirs)
            stderr, child_err = _pipe(reader=ours, writer=theirs)
            pipes = Pipes(stdin, stdout, stderr)
            for descriptor in pipes:
                os.set_blocking(descriptor, False)
            expect(stdin)
            child = subprocess.Popen(
                list(argv),
                stdin=child_in,
                stdout=child_out,
                stderr=child_err,
                cwd=cwd,
                env={**env, MARK_VARIABLE: mark},
                start_new_session=True,
            )
            ours.pop_all()
            put_mark(child.pid, mark)
            return child, pipes
    except (OSError, ValueError) as error:
        raise _explained(error, argv, cwd) from error


def _pipe(*, reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    read, write = os.pipe()
    reader.callback(os.close, read)
    writer.callback(os.close, write)
    return read, write


def _explained(error: OSError | ValueError, argv: Sequence[str], cwd: str | os.PathLike[str] | None) -> HarnessError:
    program = argv[0]
    if isinstance(error, ValueError):  # a null byte
        return InvalidArgument(f"'{program}' cannot be started: an argument or variable is not possible text ({error})")
    if cwd is not None and not Path(cwd).is_dir():
        return InvalidArgument(f"the working directory '{os.fspath(cwd)}' is not a directory; name one that exists")
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            return ConnectorUnavailable(
                f"there is no program '{program}', or the interpreter it names is missing; "
                "install it, or give the path of the one you have"
            )
        case errno.EACCES | errno.EPERM:
            return ConnectorUnavailable(f"'{program}' may not be executed; check its permissions (chmod +x)")
        case errno.ENOEXEC:
            return ConnectorUnavailable(f"'{program}' is no program for this system; install the one built for it")
        case errno.E2BIG:
            size = sum(len(os.fsencode(argument)) + 1 for argument in argv)
            return InvalidArgument(f"the command line of '{program}' is too long ({size} bytes); shorten the options")
        case errno.EMFILE | errno.ENFILE | errno.EAGAIN | errno.ENOMEM:
            return LimitExceeded(f"'{program}' cannot be started: {error.strerror}; end other conversations first")
        case _:
            return ConnectorUnavailable(f"'{program}' cannot be started: {error.strerror}")
