"""Whether Copilot would find credentials, as far as that can be seen without starting it and without any traffic."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from connectors.copilot.agent import COPILOT_ACP, HOW_TO_LOG_IN
from connectors.copilot.config import CopilotOptions
from harness.connector import Login

_SOMEBODY = re.compile(
    r'"(?:lastLoggedInUser"\s*:\s*[{"]|(?:loggedInUsers"\s*:\s*\[|copilotTokens"\s*:\s*\{)\s*[^\]}\s])'
)
"""Of its settings: the token itself lies in the system's keychain, or beside."""


def login_of(copilot: CopilotOptions, environ: Mapping[str, str], home: Path) -> Login:
    """`home` is what Copilot gets as its own directory where it does not use the user's."""
    if copilot.base_url is not None:
        return Login(True, "a provider of your own")
    name = next((name for name in COPILOT_ACP.variables if environ.get(name) or copilot.env.get(name)), None)
    if name is not None:
        return Login(True, f"the token in {name}")
    user_home = Path(environ["HOME"]) if environ.get("HOME") else None
    is_own = copilot.isolated_home or copilot.home is not None
    directory = home if is_own else user_home / ".copilot" if user_home is not None else None
    if directory is not None and _has_user(directory / "config.json"):
        return Login(True, "the login of 'copilot login'")
    # it also asks GitHub's own command line program for a token
    hosts = Path(environ.get("XDG_CONFIG_HOME") or f"{user_home}/.config") / "gh" / "hosts.yml"
    if shutil.which("gh", path=environ.get("PATH")) is not None and hosts.is_file():
        return Login(None, "perhaps that of 'gh auth login'")
    return Login(False, "nobody is logged in", HOW_TO_LOG_IN)


def _has_user(settings: Path) -> bool:
    try:
        return _SOMEBODY.search(settings.read_text(encoding="utf-8")) is not None
    except (OSError, UnicodeDecodeError):
        return False
