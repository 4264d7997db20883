"""Where Copilot's native program is on this machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from connectors.copilot.agent import HOW_TO_INSTALL
from connectors.copilot.config import CopilotOptions
from harness.errors import ConnectorUnavailable


def find_program(copilot: CopilotOptions, environ: Mapping[str, str]) -> Path:
    """The option `command`, else the native program on PATH; never npm's script, which would start it as a child.

    Raises:
        ConnectorUnavailable: there is none; says what to type.
    """
    if copilot.command is not None:
        return copilot.command
    on_path = shutil.which("copilot", path=environ.get("PATH"))
    if on_path is None:
        raise ConnectorUnavailable(f"Copilot is not installed; {HOW_TO_INSTALL}")
    program = Path(on_path).resolve()
    if program.suffix != ".js":
        return program
    package = program.parent
    for place in (package.parent, package / "node_modules" / "@github"):
        native = min(place.glob("copilot-*/copilot"), key=lambda path: len(path.as_posix()), default=None)
        if native is not None:
            return native
    raise ConnectorUnavailable(f"'{on_path}' has no program for this machine beside it; {HOW_TO_INSTALL}")
