"""The files of a conversation's working directory, for an agent that asks its client for them: no step leads out.

Links are resolved first; what they lead to must lie in the directory. Then it is opened from there, one name after the
other, following no link: one that comes in between is an error, and not a way out.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from connectors.acp.client_calls import NOT_FOUND, Refusal, Write
from harness.wire.json_rpc import INTERNAL_ERROR, INVALID_PARAMS

MOST_BYTES = 16 * 1024 * 1024
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# a pipe or a device must not make anybody wait
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class ClientFiles:
    """Blocking; everything raises `Refusal` with what the agent is told."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def read(self, path: str, *, line: int | None = None, limit: int | None = None) -> str:
        """The text of a file, or `limit` lines of it from `line` on, which counts from 1."""
        *above, name = self._names(path)
        with _told(path), self._directory(above) as directory:
            file = os.open(name, os.O_RDONLY | _FILE, dir_fd=directory)
            with os.fdopen(file, "rb") as opened:
                size = _regular(path, file).st_size
                data = b"" if size > MOST_BYTES else opened.read(MOST_BYTES + 1)
        if size > MOST_BYTES or len(data) > MOST_BYTES:
            raise Refusal(INTERNAL_ERROR, f"'{path}' is larger than {MOST_BYTES} bytes")
        try:
            text = data.decode()
        except UnicodeDecodeError:
            raise Refusal(INTERNAL_ERROR, f"'{path}' is no UTF-8 text") from None
        if line is None and limit is None:
            return text
        first = max((line or 1) - 1, 0)
        lines = text.split("\n")
        chosen = lines[first:] if limit is None else lines[first : first + max(limit, 0)]
        is_cut = first + len(chosen) < len(lines)
        return "\n".join(chosen) + ("\n" if chosen and is_cut else "")

    def write(self, write: Write) -> None:
        """Makes the file, and the directories above it, where they are not there."""
        path = write.path
        *above, name = self._names(path)
        try:
            data = write.text.encode()
        except UnicodeEncodeError:
            raise Refusal(INVALID_PARAMS, f"what is to be written to '{path}' holds half a character") from None
        with _told(path), self._directory(above, makes=True) as directory:
            file = os.open(name, os.O_WRONLY | os.O_CREAT | _FILE, 0o666, dir_fd=directory)
            with os.fdopen(file, "wb") as opened:
                if _regular(path, file).st_nlink > 1:
                    raise Refusal(INVALID_PARAMS, f"'{path}' has other names, which may lie outside: not written")
                opened.truncate(0)
                opened.write(data)

    def directory(self, path: str | None) -> Path:
        """Where a command may start; by default the working directory itself."""
        names: Sequence[str] = () if path is None else self._parts(path)
        with _told(path or str(self._root)), self._directory(names):
            return self._root.joinpath(*names)

    # inside

    def _names(self, path: str) -> Sequence[str]:
        names = self._parts(path)
        if not names:
            raise Refusal(INVALID_PARAMS, f"'{path}' is the working directory, no file")
        return names

    def _parts(self, path: str) -> Sequence[str]:
        """The names that lead from the working directory to where the path ends, after all links."""
        if not Path(path).is_absolute():
            raise Refusal(INVALID_PARAMS, f"'{path}' is not absolute")
        try:
            resolved = Path(path).resolve()
        except (OSError, RuntimeError, ValueError):  # a ring of links, or no path at all
            raise Refusal(INVALID_PARAMS, f"{path!r} leads nowhere") from None
        if not resolved.is_relative_to(self._root):
            raise Refusal(INVALID_PARAMS, f"'{path}' lies outside the working directory '{self._root}'")
        return resolved.relative_to(self._root).parts

    @contextmanager
    def _directory(self, names: Sequence[str], *, makes: bool = False) -> Generator[int]:
        here = os.open(self._root, _DIRECTORY)
        try:
            for name in names:
                if makes:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=here)
                inner = os.open(name, _DIRECTORY, dir_fd=here)
                os.close(here)
                here = inner
            yield here
        finally:
            os.close(here)


def _regular(path: str, file: int) -> os.stat_result:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode):
        raise Refusal(INVALID_PARAMS, f"'{path}' is no regular file")
    return found


@contextmanager
def _told(path: str) -> Generator[None]:
    try:
        yield
    except FileNotFoundError:
        # agents look for these words, in JSON-RPC's error of a resource that is not there
        raise Refusal(NOT_FOUND, f"Resource not found: ENOENT: no such file or directory, '{path}'") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Refusal(INVALID_PARAMS, f"'{path}' became a link while it was opened: not followed") from None
        raise Refusal(INTERNAL_ERROR, f"'{path}': {error.strerror or 'cannot be opened'}") from None
    except ValueError:  # half a character in the name
        raise Refusal(INVALID_PARAMS, f"{path!r} cannot be the name of a file") from None
