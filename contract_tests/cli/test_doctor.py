"""`harness doctor`: with a CLI, with an old one, without one."""

from __future__ import annotations

from pathlib import Path

from contract_tests.cli.command import Shell
from contract_tests.requirements import requirement

LOGGED_IN = '{"loggedIn": true, "authMethod": "claude.ai"}'
LOGGED_OUT = '{"loggedIn": false, "authMethod": "none"}'


def cli(directory: Path, version: str, status: str = LOGGED_IN) -> str:
    """The option for a program that tells this version and this login."""
    program = directory / f"claude-{version}"
    program.write_text(f"""#!/bin/sh
case "$1" in
  --version) echo "{version} (Claude Code)" ;;
  auth) echo '{status}' ;;
esac
""")
    program.chmod(0o700)
    return f"command={program}"


@requirement("doctor:finds")
def test_a_cli_that_is_there_is_ready_with_version_path_and_login(shell: Shell) -> None:
    program = cli(shell.directory, "2.1.332")
    done = shell.run("doctor", "--connector", "claude", "-O", program, "-o", "json")
    assert done.code == 0, done.err
    found = done.json
    assert (found["state"], found["version"], found["tested"]) == ("ready", "2.1.332", True)
    assert found["program"] == program.removeprefix("command=")
    assert (found["logged_in"], found["login"], found["canary"]) == (True, "a subscription", "not flown yet")


@requirement("doctor:finds")
def test_a_newer_cli_is_told_to_be_untested(shell: Shell) -> None:
    done = shell.run("doctor", "--connector", "claude", "-O", cli(shell.directory, "2.9.9"))
    assert done.code == 0
    assert "2.9.9; not among the tested versions" in done.out


@requirement("doctor:remedy")
def test_what_is_missing_is_said_with_the_remedy_and_exit_code_3(shell: Shell) -> None:
    old = shell.run("doctor", "--connector", "claude", "-O", cli(shell.directory, "2.1.100"))
    assert (old.code, "wrong_version" in old.out, "type: pip install" in old.out) == (3, True, True), old.out
    missing = shell.run("doctor", "--connector", "claude", "-O", "command=/no/such/claude")
    assert (missing.code, "not_installed" in missing.out, "type: pip install" in missing.out) == (3, True, True)
    out = shell.run("doctor", "--connector", "claude", "-O", cli(shell.directory, "2.1.332", LOGGED_OUT))
    assert (out.code, "not_logged_in" in out.out, "type: claude /login" in out.out) == (3, True, True), out.out


@requirement("doctor:remedy")
def test_every_connector_is_looked_at_and_fake_alone_is_not_enough(shell: Shell) -> None:
    done = shell.run("doctor", "-o", "json", OLLAMA_HOST="http://127.0.0.1:9")
    found = {line["connector"]: line for line in done.lines}
    assert {"claude", "fake", "ollama", "openai"} <= set(found)
    assert found["fake"]["state"] == "ready"
    assert "type: export OPENAI_API_KEY=..." in found["openai"]["problem"]
    others = [line for name, line in found.items() if name != "fake" and line["state"] == "ready"]
    assert done.code == (0 if others else 3)


@requirement("doctor:finds")
def test_a_connector_that_needs_no_program_is_ready_by_name(shell: Shell) -> None:
    assert shell.run("doctor", "--connector", "fake").code == 0


@requirement("doctor:finds", "agents:login")
def test_agents_are_listed_one_by_one_with_version_login_and_remedy(shell: Shell) -> None:
    programs = shell.directory / "agents"
    programs.mkdir()
    for name, version in {"codex": "0.171.0", "copilot": "1.0.102", "gemini": "0.99.0"}.items():
        program = programs / name
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o700)
    path = f"{programs}:/usr/bin:/bin"
    found = {line["connector"]: line for line in shell.run("doctor", "-o", "json", PATH=path).lines}
    assert "acp" not in found
    told = {name: (found[name]["state"], found[name]["version"], found[name]["tested"]) for name in found}
    assert told["codex"] == ("not_logged_in", "0.171.0", True)
    assert told["copilot"] == ("not_logged_in", "1.0.102", True)
    assert told["acp:gemini"] == ("not_logged_in", "0.99.0", False)
    assert told["acp:opencode"][0] == "not_installed"
    assert "type: copilot login" in found["copilot"]["problem"]
    assert "type: npm install -g opencode-ai" in found["acp:opencode"]["problem"]
    text = shell.run("doctor", PATH=path).out
    assert all(line.startswith(name) for line, name in zip(text.splitlines(), found, strict=True))
