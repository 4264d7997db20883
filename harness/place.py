"""Where a conversation's paths are looked up: on this machine, or nowhere we could look."""

from __future__ import annotations

import os
from pathlib import Path

from harness.policy import Place


def place_here(cwd: str | None) -> Place:
    """A working directory on this machine; without one ours."""
    return Place(str(Path(cwd or ".").absolute()), home=str(Path.home()), resolve=os.path.realpath)


def place_elsewhere(cwd: str | None) -> Place:
    """On another machine: where a path leads there nobody here knows, so no allow rule about paths matches."""
    return Place(cwd or "/")
