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

    def _try_lock(file: IO[str], *, shared: bool = False) -> bool:
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try_lock(file: IO[str], *, shared: bool = False) -> bool:
        # whoever only looks takes a shared lock: two who look at the same time do not take each other for the holder
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


class Holder:
    """This process as a holder of conversations; `holder_id` names its lock file."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self.holder_id = uuid4().hex
        self._path = self._path_of(self.holder_id)
        # locked before it gets its name: nobody sees it without its lock and takes it for a dead one's
        # (on Windows an open file keeps its name)
        unnamed = self._path if sys.platform == "win32" else self._path.with_suffix(".new")
        self._file = unnamed.open("w", encoding="utf-8")
        unnamed.chmod(0o600)
        if not _try_lock(self._file):
            raise OSError(f"cannot lock '{unnamed}'")
        self._file.write(f"process {os.getpid()} ({Path(sys.argv[0]).name or 'python'})")
        self._file.flush()
        unnamed.rename(self._path)
        self._remove_dead()

    def is_alive(self, holder_id: str) -> bool:
        """Whether the process of that lock file still holds it."""
        if holder_id == self.holder_id:
            return True
        try:
            with self._path_of(holder_id).open("r+", encoding="utf-8") as file:
                return not _try_lock(file, shared=True)
        except FileNotFoundError:
            return False

    def name_of(self, holder_id: str) -> str:
        """The process as its lock file describes it."""
        with contextlib.suppress(OSError):
            return self._path_of(holder_id).read_text(encoding="utf-8") or "another process"
        return "another process"

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()

    def _path_of(self, holder_id: str) -> Path:
        return self._directory / f"{holder_id}.lock"

    def _remove_dead(self) -> None:
        """Lock files of processes that were killed; without its file a process counts as dead, too."""
        for path in self._directory.glob("*.lock"):
            with contextlib.suppress(OSError):
                if not self.is_alive(path.stem):
                    path.unlink()
