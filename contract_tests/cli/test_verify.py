"""`harness verify` and `harness record` as a user types them."""

from __future__ import annotations

from pathlib import Path

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
def test_recordings_of_providers_are_played_without_one(shell: Shell) -> None:
    done = shell.run("verify", "--replay", "--scenario", "tool-error", "--connector", "openai", "--connector", "ollama")
    assert done.code == 0, done.err
    told = [line for line in done.out.splitlines() if "keeps the contract" in line]
    assert told == [
        "openai (compatible responses) keeps the contract in 1 scenario(s)",
        "ollama (ollama 0.33.0) keeps the contract in 1 scenario(s)",
    ]


@requirement("verify:command")
def test_what_a_connector_says_to_its_provider_is_recorded(shell: Shell, tmp_path: Path) -> None:
    done = shell.run("record", "--connector", "anthropic", "--scenario", "no-tool", "--to", str(tmp_path))
    assert (done.code, done.out) == (0, f"{tmp_path / 'no-tool.jsonl'}\n"), done.err
    refused = shell.run("record", "--connector", "anthropic", "--scenario", "budget", "--to", str(tmp_path))
    assert (refused.code, "is not recorded: refused: reports_cost" in refused.err) == (1, True), refused.err


@requirement("verify:command")
def test_what_cannot_be_tried_is_said(shell: Shell) -> None:
    unknown = shell.run("verify", "--connector", "fake", "--scenario", "nothing")
    assert (unknown.code, "no scenario 'nothing' to verify; known: approval-always" in unknown.err) == (2, True)
    missing = shell.run("verify", "--connector", "claude", "--scenario", "no-tool", "-O", "command=/no/such/claude")
    assert (missing.code, "type: pip install" in missing.err) == (3, True), missing.err
    unrecorded = shell.run("verify", "--replay", "--connector", "fake")
    assert (unrecorded.code, "no recording of 'fake'; without --replay" in unrecorded.err) == (2, True), unrecorded.err
    nothing = shell.run("record", "--connector", "fake", "--scenario", "no-tool")
    assert (nothing.code, "there is nothing to record" in nothing.err) == (1, True), nothing.err
