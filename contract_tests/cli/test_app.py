"""The command as a whole: help, version, wrong usage."""

import pytest

from contract_tests.cli.command import Shell
from contract_tests.requirements import requirement


@requirement("cli:help")
@pytest.mark.parametrize("arguments", [["--help"], []])
def test_help_names_every_command(shell: Shell, arguments: list[str]) -> None:
    told = shell.run(*arguments)
    shown = told.out + told.err
    for text in ("run", "chat", "demo", "serve", "scripted-model", "Examples:", "harness run "):
        assert text in shown
    assert told.code == (0 if arguments else 2)


@requirement("cli:help")
@pytest.mark.parametrize("command", ["run", "chat", "demo", "serve", "scripted-model"])
def test_the_help_of_a_command_has_examples(shell: Shell, command: str) -> None:
    told = shell.run(command, "--help")
    assert told.code == 0
    assert f"Examples:\n    harness {command}" in told.out
    assert "\x1b" not in told.out


@requirement("cli:usage")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["fly"], "No such command 'fly'"),
        (["run", "--fly"], "No such option: --fly"),
        (["run", "hi", "--approve", "maybe"], "'maybe'"),
        (["run", "hi", "--max-turns", "0"], "--max-turns"),
        (["run", "hi", "--timeout", "soon"], "harness: --timeout: 'soon' is no duration; write 90s, 10m, 2h"),
        (["run", "hi", "-O", "x"], "harness: --option: 'x' is no KEY=VALUE"),
        (["run", "hi", "--connector", "fake", "-O", "x=1"], "harness: connector option 'x' of 'fake'"),
        (["run", "hi", "--approve", "wait"], "harness: --approve wait: needs --url"),
        (["run", "hi", "--connector", "nobody"], "harness: unknown connector 'nobody'; known: "),
        (["run", "hi", "--connector", "fake:nothing"], "harness: connector 'fake' has no variant 'nothing'"),
        (["run", "hi", "--connector", "fake", "--cwd", "nowhere"], "harness: --cwd: 'nowhere' is no directory"),
        (["run", "hi", "--url", "127.0.0.1:80"], "harness: '127.0.0.1:80' is no server's URL"),
        (["run", "hi", "--connector", "fake", "--approve", "ask"], "harness: --approve ask: there is no terminal"),
        (["run", " ", "--connector", "fake"], "harness: the prompt is empty"),
        (["run", "--connector", "fake"], "harness: the prompt is empty"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_what_is_wrong(shell: Shell, arguments: list[str], told: str) -> None:
    done = shell.run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "Traceback" not in done.err
    if told.startswith("harness:"):
        assert len(done.err.splitlines()) == 1
