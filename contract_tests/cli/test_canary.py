"""`harness verify --canary` and `harness serve` with a CLI that passes, and with one that does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contract_tests.cli.command import Shell, line_with, rest_of
from contract_tests.connectors.claude.cli import has_cli
from contract_tests.requirements import requirement
from harness.contract import ConversationOptions
from harness.errors import ConnectorUnavailable
from harness.remote import RemoteHarness

MUTE = """#!/bin/sh
[ "$1" = --version ] && echo "2.1.332 (Claude Code)" && exit
echo "unknown option" >&2
exit 1
"""


def mute_cli(directory: Path) -> Path:
    """A program that says it is a tested CLI and then is none."""
    program = directory / "claude"
    program.write_text(MUTE)
    program.chmod(0o700)
    return program


@requirement("canary:command")
@pytest.mark.live
@pytest.mark.skipif(not has_cli(), reason="no Claude CLI here: install the extra 'claude'")
def test_the_installed_cli_passes_and_its_verdict_is_kept(shell: Shell) -> None:
    done = shell.run("verify", "--connector", "claude", "--canary", "-o", "json")
    assert (done.code, done.json["passed"], done.json["because"]) == (0, True, ""), done.err
    [kept] = (shell.directory / ".local/state/level2-harness/canary").iterdir()
    assert json.loads(kept.read_text())["subject"]["digest"] == done.json["sha256"]


@requirement("canary:command")
def test_a_program_that_does_not_answer_fells_it(shell: Shell) -> None:
    done = shell.run("verify", "--connector", "claude", "--canary", "-O", f"command={mute_cli(shell.directory)}")
    assert done.code == 1
    assert done.out.startswith("claude: FELL, the turn failed: ")


@requirement("canary:serve")
async def test_after_a_canary_that_fell_only_conversations_without_internal_tools_are_served(shell: Shell) -> None:
    program = f"command={mute_cli(shell.directory)}"
    with shell.started("serve", "--connector", "claude", "-O", program, "--print-token") as server:
        url = line_with(server, "listening on ").removeprefix("listening on ").strip()
        token = line_with(server, "token ").removeprefix("token ").strip()
        async with RemoteHarness(url, token=token) as remote:
            with pytest.raises(ConnectorUnavailable, match="failed its canary") as refused:
                await remote.begin_conversation(ConversationOptions(internal_tools=["Bash"]))
            assert refused.value.detail["reason"] == "wrong_version"
            assert await remote.begin_conversation(ConversationOptions())
        server.terminate()
        told = rest_of(server)[1]
    assert "canary for 'claude'" in told
    assert "failed its canary" in told


@requirement("canary:serve")
def test_the_canary_can_be_skipped(shell: Shell) -> None:
    program = f"command={mute_cli(shell.directory)}"
    with shell.started("serve", "--connector", "claude", "-O", program, "--skip-canary") as server:
        line_with(server, "listening on ")
        server.terminate()
        assert rest_of(server)[1] == ""


@requirement("canary:run")
def test_a_run_with_internal_tools_does_not_begin_after_a_canary_that_fell(shell: Shell) -> None:
    program = ("--connector", "claude", "-O", f"command={mute_cli(shell.directory)}", "-O", "key=sk-made-up")
    refused = shell.run("run", "Go.", *program, "--internal-tools", "Bash")
    assert (refused.code, refused.out) == (3, "")
    assert "failed its canary" in refused.err
    for more in (("--internal-tools", "Bash", "--skip-canary"), ()):
        assert "canary" not in shell.run("run", "Go.", *program, *more).err
