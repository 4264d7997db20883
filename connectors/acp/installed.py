"""Where an agent's program is on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from connectors.acp.agent import Agent
from harness.errors import ConnectorUnavailable

_NATIVE = {"opencode": "opencode-*/bin/opencode"}
"""Behind an npm script that would only start it as a child: where it lies, from the folder of packages."""


def find_program(agent: Agent, environ: Mapping[str, str]) -> Path:
    """The agent's program on PATH.

    Raises:
        ConnectorUnavailable: there is none; says what to type.
    """
    on_path = shutil.which(agent.program or "", path=environ.get("PATH"))
    if on_path is None:
        raise ConnectorUnavailable(f"'{agent.name}' is not installed; {agent.remedy}")
    program = Path(on_path)
    pattern = _NATIVE.get(agent.name)
    if pattern is None:
        return program
    package = program.resolve().parent.parent
    for place in (package.parent, package / "node_modules"):
        native = min(place.glob(pattern), key=lambda path: len(path.as_posix()), default=None)
        if native is not None:
            return native
    return program
