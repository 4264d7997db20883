"""What a rule of a delegated policy is about, in the words in which Codex asks. Pure.

Codex shows a command as its shell gets it (`/bin/bash -lc 'git status'`); a rule speaks of what the model wrote.
"""

from __future__ import annotations

import json
import shlex
from pathlib import PurePosixPath

from connectors._json import JsonObject, compact_json, object_in
from connectors._kept_policy import Unasked
from connectors.codex.thread import VIEW_IMAGE, WEB_SEARCH

UNASKED = Unasked(looks=frozenset({VIEW_IMAGE, WEB_SEARCH}))
"""Even under the approval policy `untrusted`; so do tools of delegated servers that call themselves read-only."""

_SHELLS = frozenset({"bash", "dash", "sh", "zsh"})
_PLACES = frozenset({"/bin", "/usr/bin"})
_MERELY_TOLD = frozenset(
    {
        *("threadId", "turnId", "itemId", "kind", "startedAtMs", "environmentId", "command", "cwd"),
        *("commandActions", "proposedExecpolicyAmendment", "availableDecisions"),
    }
)
_MERELY_HOW = frozenset({"cmd", "yield_time_ms", "max_output_tokens", "login", "tty", "shell", "workdir"})
"""What a model may add to a command without asking for more rights."""


def command_in(params: JsonObject) -> str | None:
    """The command of a question about one, as the model wrote it; null where the shell is none that is known."""
    command = params.get("command")
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:
        return None
    if len(words) != 3 or words[1] not in ("-c", "-lc"):
        return None
    shell = PurePosixPath(words[0])
    return words[2] if shell.name in _SHELLS and str(shell.parent) in _PLACES else None


def rule_arguments(params: JsonObject) -> str | None:
    """The arguments that a rule is compared with; null where Codex's own words serve."""
    command = command_in(params)
    return None if command is None else compact_json({"command": command})


def asks_for_more(params: JsonObject, cwd: str, written_arguments_json: str | None) -> bool:
    """Whether more is asked for than to run a command in the working directory: no rule speaks of that."""
    if params.get("kind") not in (None, "command") or params.get("cwd") != cwd or command_in(params) is None:
        return True
    if any(value is not None for name, value in params.items() if name not in _MERELY_TOLD):
        return True
    if written_arguments_json is None:
        return False
    try:
        written = object_in(json.loads(written_arguments_json))
    except ValueError:
        return True
    return written.get("cmd") != command_in(params) or not written.keys() <= _MERELY_HOW
