"""Which processes are alive: each holds an OS lock on a file of its own, which is gone when the process is."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import IO
from uuid import uuid4

if sys.platform == "win32":
    import msvcrt

    def _try_lock(file: IO[str]) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(file: IO[str]) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Holder:
    """This process as a holder of conversations; `holder_id` names its lock file."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self.holder_id = uuid4().hex
        self._path = directory / f"{self.holder_id}.lock"
        self._file = self._path.open("w", encoding="utf-8")
        self._path.chmod(0o600)
        if not _try_lock(self._file):
            raise OSError(f"cannot lock '{self._path}'")
        self._file.write(f"process {os.getpid()} ({Path(sys.argv[0]).name or 'python'})")
        self._file.flush()

    def is_alive(self, holder_id: str) -> bool:
        """Whether the process of that lock file still holds it; the file of a dead one is removed."""
        if holder_id == self.holder_id:
            return True
        path = self._directory / f"{holder_id}.lock"
        try:
            with path.open("r+", encoding="utf-8") as file:
                if not _try_lock(file):
                    return True
        except FileNotFoundError:
            return False
        path.unlink(missing_ok=True)
        return False

    def name_of(self, holder_id: str) -> str:
        """The process as its lock file describes it."""
        path = self._directory / f"{holder_id}.lock"
        with contextlib.suppress(OSError):
            return path.read_text(encoding="utf-8") or "another process"
        return "another process"

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()
