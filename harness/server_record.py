"""How programs of the same user find a running server and its token: one file per port in a private directory.

The directory is 0700, the files are 0600, and both must belong to this user: a token that another user planted or
could read is no token.
"""

from __future__ import annotations

import os
import stat
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from harness.contract.value import Value
from harness.errors import ConfigError, HarnessError
from harness.wire.json_text import read_json, write_json

APPLICATION = "level2-harness"
MAX_TOKEN_FILE_BYTES = 4096


class ServerRecord(Value):
    url: str
    pid: int
    token: str


def runtime_directory(*, create: bool = False) -> Path:
    """Where the records of this user are; it may not exist yet.

    Raises:
        ConfigError: another user could write to it or to a directory above.
    """
    from platformdirs import user_runtime_path

    with warnings.catch_warnings():
        # without XDG_RUNTIME_DIR there is a fallback, which is checked like the first choice
        warnings.simplefilter("ignore")
        try:
            return user_runtime_path(APPLICATION, ensure_exists=create)
        except PermissionError as error:
            raise ConfigError(f"no private directory for the server's token: {error}", key="XDG_RUNTIME_DIR") from error


@contextmanager
def recorded(url: str, token: str) -> Generator[Path]:
    """The record of the server at `url`, while the context lasts.

    Raises:
        ConfigError: the directory is not private to this user.
    """
    directory = runtime_directory(create=True)
    _check_private(directory.lstat(), directory)
    path = directory / _file_name(url)
    path.unlink(missing_ok=True)  # of a server that was killed; the port is ours now
    record = ServerRecord(url=url, pid=os.getpid(), token=token)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(write_json(record))
    try:
        yield path
    finally:
        # another server may have the port, and the file, by now
        if _read_record(path) == record:
            path.unlink(missing_ok=True)


def find_local_token(url: str) -> str | None:
    """The token of the server at this loopback URL; null when this user runs none there.

    Raises:
        ConfigError: there is a record, but others than this user could have written or read it.
    """
    if not is_loopback(urlsplit(url).hostname or ""):
        return None
    directory = runtime_directory()
    path = directory / _file_name(url)
    try:
        _check_private(directory.lstat(), directory)
        _check_private(path.lstat(), path)
    except FileNotFoundError:
        return None
    record = _read_record(path)
    # whoever listens there after its server died must not be given the token
    return record.token if record is not None and _is_alive(record.pid) else None


def running_servers() -> list[str]:
    """The loopback URLs of the servers that this user runs on this machine.

    Raises:
        ConfigError: there are records, but others than this user could have written or read them.
    """
    records = (_read_record(path) for path in sorted(runtime_directory().glob("*.json")))
    return [record.url for record in records if record is not None and find_local_token(record.url) is not None]


def read_token_file(path: Path) -> str:
    """The token in a file that the user gave.

    Raises:
        ConfigError: it cannot be read, others may read it, or there is no token in it.
    """
    try:
        with path.open("rb") as file:
            # owned by root and readable by one group is how secrets are mounted into containers
            _check_private(os.fstat(file.fileno()), path, forbidden=0o027, owners=(0,))
            data = file.read(MAX_TOKEN_FILE_BYTES + 1)
    except OSError as error:
        problem = f"cannot read the token file '{path}': {error.strerror}"
        raise ConfigError(problem, file=str(path), key="token-file") from error
    token = data.decode("ascii", "replace").strip()
    if not token or not token.isprintable() or not token.isascii() or len(data) > MAX_TOKEN_FILE_BYTES or " " in token:
        expected = f"one token of printable ASCII, at most {MAX_TOKEN_FILE_BYTES} bytes"
        raise ConfigError(f"the token file '{path}' must hold {expected}", file=str(path), key="token-file")
    return token


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _file_name(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.port or (443 if parts.scheme == 'https' else 80)}.json"


def _read_record(path: Path) -> ServerRecord | None:
    with suppress(OSError, HarnessError):
        return read_json(ServerRecord, path.read_bytes())
    return None


def _check_private(status: os.stat_result, path: Path, *, forbidden: int = 0o077, owners: tuple[int, ...] = ()) -> None:
    if sys.platform == "win32":
        return  # the user's profile is private there
    if status.st_uid not in (os.getuid(), *owners):
        raise ConfigError(f"'{path}' belongs to another user; remove it, or give a token file", file=str(path))
    if stat.S_IMODE(status.st_mode) & forbidden:
        wanted = "700" if stat.S_ISDIR(status.st_mode) else "600"
        raise ConfigError(f"others can reach '{path}'; type: chmod {wanted} '{path}'", file=str(path))


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # there a signal 0 would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
