"""`harness verify` and `harness record` as a user types them."""

from __future__ import annotations

from contract_tests.cli.command import Shell
from contract_tests.requirements import requirement


@requirement("verify:command")
def test_a_scenario_is_told_with_its_verdict(shell: Shell) -> None:
    done = shell.run("verify", "--connector", "fake", "--scenario", "one-call", "--scenario", "budget", "-o", "json")
    assert (done.code, done.err) == (0, "")
    assert [(line["connector"], line["scenario"], line["verdict"]) for line in done.lines] == [
        ("fake", "one-call", "supported"),
        ("fake", "budget", "supported"),
    ]


@requirement("verify:command")
def test_recordings_are_played_without_a_cli(shell: Shell) -> None:
    done = shell.run("verify", "--replay", "--connector", "claude", "--scenario", "approval-denied")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1] == "claude (claude-code 2.1.332) keeps the contract in 1 scenario(s)"


@requirement("verify:command")
def test_what_cannot_be_tried_is_said(shell: Shell) -> None:
    unknown = shell.run("verify", "--connector", "fake", "--scenario", "nothing")
    assert (unknown.code, "no scenario 'nothing' to verify; known: approval-always" in unknown.err) == (2, True)
    missing = shell.run("verify", "--connector", "claude", "--scenario", "no-tool", "-O", "command=/no/such/claude")
    assert (missing.code, "type: pip install" in missing.err) == (3, True), missing.err
    nothing = shell.run("record", "--connector", "fake", "--scenario", "no-tool")
    assert (nothing.code, "there is nothing to record" in nothing.err) == (1, True), nothing.err
