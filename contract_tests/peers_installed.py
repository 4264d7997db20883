"""The agents of peers.txt as `make peers` installs them, and the marks of tests that need one.

A missing agent skips its tests with a visible reason; under `make test-live` (HARNESS_TEST_LIVE=1) they fail instead.
Native programs are run directly where there is one, without the script that would look for it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract_tests.source_tree import ROOT

PEERS = ROOT / ".peers"
LIVE_VARIABLE = "HARNESS_TEST_LIVE"
_PROGRAMS = {
    "codex": "@openai/codex-*/vendor/*/bin/codex",
    "copilot": "@github/copilot-*/copilot",
    "opencode": "opencode-*/bin/opencode",
    "gemini": "@google/gemini-cli/bundle/gemini.js",
    "claude-agent-acp": ".bin/claude-agent-acp",
    "codex-acp": ".bin/codex-acp",
    "acpx": ".bin/acpx",
    "mcp-inspector": ".bin/mcp-inspector",
}
_QUICK = frozenset({"claude", "codex", "mcp-inspector"})
"""Takes part in `make test` too; the others would make it slow."""


def pinned_versions() -> dict[str, str]:
    """Name -> version, as peers.txt has them."""
    lines = (ROOT / "peers.txt").read_text(encoding="utf-8").splitlines()
    return {name: version for name, _, version in (line.split() for line in lines if line and line[0] != "#")}


def peer_program(name: str) -> Path | None:
    """The program of this agent, null where it is not installed or not in the pinned version."""
    note = PEERS / name / "installed"
    if not note.is_file() or not note.read_text(encoding="utf-8").strip().endswith(f"@{pinned_versions()[name]}"):
        return None
    found = sorted((PEERS / name / "node_modules").glob(_PROGRAMS[name]), key=lambda path: len(path.as_posix()))
    return found[0] if found else None


def is_quick(name: str) -> bool:
    return name in _QUICK


def path_with_peers(path: str) -> str:
    """A PATH on which the installed agents are found as a user's are, under the names that a user would type."""
    return os.pathsep.join([*(str(PEERS / name / "node_modules" / ".bin") for name in pinned_versions()), path])


def needs_peer(name: str) -> list[pytest.MarkDecorator]:
    """Marks for a module or a parameter whose tests start this agent."""
    is_live = bool(os.environ.get(LIVE_VARIABLE))
    marks = [pytest.mark.live if is_quick(name) else pytest.mark.all_live]
    if peer_program(name) is None and not is_live:
        marks.append(pytest.mark.skip(reason=f"'{name}' is not installed: type: make peers PEERS={name}"))
    return marks


def installed(name: str) -> Path:
    """The program; fails the test where it is missing."""
    program = peer_program(name)
    assert program is not None, f"'{name}' is not installed: type: make peers PEERS={name}"
    return program
