"""Where Codex's native program is on this machine, and whose login it has."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from connectors.codex.config import CodexOptions
from connectors.codex.versions import HOW_TO_INSTALL
from harness.errors import ConnectorUnavailable

_NATIVE = "codex-*/vendor/*/bin/codex"
_LOGIN = "auth.json"


def find_program(codex: CodexOptions, environ: Mapping[str, str]) -> Path:
    """The option `command`, else the native program on PATH; never npm's script, which would start it as a child.

    Raises:
        ConnectorUnavailable: there is none; says what to type.
    """
    if codex.command is not None:
        return codex.command
    on_path = shutil.which("codex", path=environ.get("PATH"))
    if on_path is None:
        raise ConnectorUnavailable(f"Codex is not installed; {HOW_TO_INSTALL}")
    program = Path(on_path).resolve()
    if program.suffix != ".js":
        return program
    # <modules>/@openai/codex/bin/codex.js; the native package lies beside it or below it
    package = program.parent.parent
    for place in (package.parent, package / "node_modules" / "@openai"):
        native = next(iter(sorted(place.glob(_NATIVE))), None)
        if native is not None:
            return native
    raise ConnectorUnavailable(f"'{on_path}' has no program for this machine beside it; {HOW_TO_INSTALL}")


def user_login(environ: Mapping[str, str]) -> Path | None:
    """The file in which the user's own Codex keeps its login."""
    home = environ.get("CODEX_HOME") or (f"{environ['HOME']}/.codex" if environ.get("HOME") else None)
    login = Path(home) / _LOGIN if home is not None else None
    return login if login is not None and login.is_file() else None


def link_login(login: Path, home: Path) -> None:
    """Has our CODEX_HOME use the user's login, and nothing else of the user's: refreshed tokens stay in one place."""
    link = home / _LOGIN
    if link.is_symlink() and link.readlink() == login:
        return
    link.unlink(missing_ok=True)
    link.symlink_to(login)
