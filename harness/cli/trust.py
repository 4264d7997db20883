"""Which policy files of projects the user trusts: by directory and content, so that a changed file is a new one."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import cast

from harness.contract.value import JsonValue
from harness.errors import ConfigError
from harness.server_record import APPLICATION


def is_trusted(directory: Path, data: bytes) -> bool:
    """Whether this very content was trusted for this directory."""
    return _known().get(str(directory.resolve())) == _digest(data)


def trust(directory: Path, data: bytes) -> None:
    """From now on this content counts in this directory.

    Raises:
        ConfigError: the record cannot be written.
    """
    record = _record()
    known = {**_known(), str(directory.resolve()): _digest(data)}
    written = record.with_suffix(f".{os.getpid()}")
    try:
        record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        written.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
        written.chmod(0o600)
        written.replace(record)
    except OSError as error:
        raise ConfigError(f"{record}: {error.strerror or error}", file=str(record)) from error


def _record() -> Path:
    from platformdirs import user_state_path

    return user_state_path(APPLICATION) / "trusted-policies.json"


def _known() -> dict[str, JsonValue]:
    """What is not there, or cannot be read, trusts nothing."""
    try:
        value = json.loads(_record().read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast(dict[str, JsonValue], value) if isinstance(value, dict) else {}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
