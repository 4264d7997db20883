"""Policies at the command line: files, layers, trust, and what the commands say about them."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contract_tests.cli.command import Shell, fake, line_with, rest_of
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT
from harness.cli.app import build_app
from harness.cli.configuration import read_configuration
from harness.errors import ConfigError, HarnessError


def asked(command: str) -> dict[str, Any]:
    return {"approval": {"tool": "Bash", "arguments": {"command": command}}}


def config(shell: Shell, text: str) -> Path:
    file = shell.directory / ".config" / "level2-harness" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def project(shell: Shell, text: str) -> Path:
    file = shell.directory / ".harness" / "policy.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def refusals(shell: Shell, *commands: str, options: tuple[str, ...] = ()) -> list[str | None]:
    """What became of approvals for these commands, without anybody at a terminal."""
    steps = [asked(command) for command in commands]
    done = shell.run("run", "Go.", *fake(*steps, {"text": "done"}), *options, "-o", "json")
    assert done.code == 0, done.err
    return [call.get("refusal_kind") for call in done.json["calls"]]


@requirement("cli:policy:layers")
def test_layers_from_the_strongest_to_the_default(shell: Shell) -> None:
    commands = ("make", "ls", "rm x")
    nobody = "approval_unavailable"
    assert refusals(shell, *commands) == [nobody, nobody, nobody]
    config(shell, '[policy]\nallow = ["Bash(make)"]\ndeny = ["Bash(rm *)"]')
    assert refusals(shell, *commands) == [None, nobody, "denied"]
    # a project may deny and ask; what it would allow does not count
    project(shell, 'deny = ["Bash(make)"]\nallow = ["Bash"]\nmode = "bypass"')
    done = shell.run("run", "Go.", *fake(asked("ls"), {"text": "done"}), "-o", "json")
    assert "harness policy trust" in done.err
    assert refusals(shell, *commands) == ["denied", nobody, "denied"]
    # with --policy the project's rules do not decide, and its denials stay
    (shell.directory / "mine.toml").write_text('mode = "bypass"')
    assert refusals(shell, *commands, options=("--policy", "mine.toml")) == ["denied", None, "denied"]


@requirement("cli:policy:trust")
def test_trust_holds_for_one_directory_and_one_content(shell: Shell) -> None:
    file = project(shell, 'allow = ["Bash(ls)"]')
    assert refusals(shell, "ls") == ["approval_unavailable"]
    told = shell.run("policy", "trust", ".")
    assert (told.code, told.out.splitlines()[1:]) == (0, ["mode: default", "allow: Bash(ls)"])
    assert refusals(shell, "ls") == [None]
    elsewhere = shell.directory / "elsewhere" / ".harness"
    elsewhere.mkdir(parents=True)
    (elsewhere / "policy.toml").write_bytes(file.read_bytes())
    assert refusals(shell, "ls", options=("--cwd", "elsewhere")) == ["approval_unavailable"]
    file.write_text('allow = ["Bash"]')
    assert refusals(shell, "ls") == ["approval_unavailable"]


@requirement("cli:config")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[polcy]", "'polcy': expected one of policy, limits, prices, advisor"),
        ('[policy]\nalow = ["Bash"]', "'policy.alow': expected one of mode, deny, ask, allow, questions"),
        ("[limits]\nmax_rounds = 3", "'limits.max_rounds': expected one of max_turns"),
        ("[limits]\nmax_turns = 0", "'limits.max_turns': expected a number above 0"),
        ('[prices."x"]\ninput = "1"', "'prices.x.input': expected USD"),
        ('[prices."x"]\ninput = 1', "'prices.x': expected both 'input' and 'output'"),
        ("[policy", "config.toml: "),
    ],
)
def test_configuration_that_cannot_be_used_names_file_key_and_what_was_expected(
    tmp_path: Path, text: str, told: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_configuration(file)
    assert raised.value.message.startswith(f"{file}: ")
    assert told in raised.value.message


@requirement("cli:config")
def test_other_configuration_is_used_instead_and_must_exist(shell: Shell) -> None:
    file = config(shell, "[polcy]")
    done = shell.run("run", "Go.", *fake())
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert done.err.startswith(f"harness: {file}: 'polcy': expected one of policy, limits, prices, advisor")
    (shell.directory / "other.toml").write_text('[policy]\nallow = ["Bash"]\n[limits]\nmax_turns = 3')
    assert refusals(shell, "ls", options=("--config", "other.toml")) == [None]
    done = shell.run("run", "Go.", *fake(), "--config", "missing.toml")
    assert (done.code, "missing.toml: No such file" in done.err) == (2, True)


@requirement("cli:config", "limits:budget")
def test_limits_and_prices_come_from_the_configuration(shell: Shell) -> None:
    config(shell, '[limits]\ncost_budget_usd = 0.5\n[prices."s*"]\ninput = 1\noutput = 2')
    usage = {"usage": {"output_tokens": 400_000}}
    done = shell.run("run", "Go.", "-m", "small", *fake({"text": "a"}, usage, {"text": "b"}), "-o", "json")
    assert (done.code, done.json["stop_reason"], done.json["usage"]["cost_usd"]) == (4, "budget", 0.8)


@requirement("cli:policy:test")
@pytest.mark.parametrize(
    ("rules", "call", "verdict", "reason"),
    [
        ("allow Bash(git diff *)", "Bash(git diff HEAD)", "allow", "allowed by the rule Bash(git diff *)"),
        ("allow Bash(git diff *)", "Bash(git diff; rm x)", "ask", "no rule speaks about it"),
        ("allow Bash; deny Bash(rm *)", "Bash(ls; rm x)", "deny", "denied by the rule Bash(rm *)"),
        ("allow Bash(a; b)", "Bash(a; b)", "allow", "allowed by the rule Bash(a; b)"),
        ("mode read_only", "Bash(ls)", "deny", "the mode 'read_only' allows nothing that may change something"),
        (
            "allow Write(./**)",
            '{"tool": "Write", "arguments": {"file_path": "../x"}}',
            "ask",
            "no rule speaks about it",
        ),
    ],
)
def test_decision_is_explained(rules: str, call: str, verdict: str, reason: str) -> None:
    done = CliRunner().invoke(build_app(), ["policy", "test", rules, call, "-o", "json"])
    told = json.loads(done.stdout)
    assert (done.exit_code, told["verdict"], told["reason"]) == (0, verdict, reason)
    assert CliRunner().invoke(build_app(), ["policy", "test", rules, call]).stdout.endswith(f"{reason}\n")


@requirement("cli:policy:test")
def test_decision_of_a_file_is_explained(shell: Shell) -> None:
    (shell.directory / "rules.toml").write_text('deny = [{ tool = "Bash", reason = "not here" }]')
    done = shell.run("policy", "test", "rules.toml", "Bash(ls)")
    assert (done.code, done.out) == (0, "denied: denied by the rule Bash: not here\n")
    unread = shell.run("policy", "test", "missing.toml", "Bash")
    assert (unread.code, unread.err) == (2, "harness: missing.toml: No such file or directory\n")


@requirement("cli:policy:test")
@pytest.mark.parametrize(
    ("rules", "call", "told"),
    [
        ("alow Bash", "Bash", "'alow Bash' is no rule"),
        ("allow Bash(", "Bash", "'Bash(' is no rule"),
        ("allow Bash", "Bash()", "is no call"),
    ],
)
def test_what_cannot_be_read_says_so(rules: str, call: str, told: str) -> None:
    done = CliRunner().invoke(build_app(), ["policy", "test", rules, call])
    assert isinstance(done.exception, HarnessError)
    assert told in done.exception.message


@requirement("policy:house", "cli:requests")
def test_server_answers_by_its_policy_and_the_rest_waits_in_the_inbox(shell: Shell) -> None:
    (shell.directory / "server.toml").write_text('deny = ["Bash(rm *)"]\nallow = ["Bash(ls)"]')
    question = {"questions": [{"id": "colour", "text": "Which?", "options": [{"id": "b", "label": "Blue"}]}]}
    steps = (asked("rm x"), asked("ls"), asked("make"), {"question": question}, {"text": "done"})
    with shell.started("serve", *fake(*steps), "--policy", "server.toml") as server:
        url = line_with(server, "listening on ").removeprefix("listening on ").strip()
        with shell.started("run", "Go.", "--url", url, "--approve", "wait", "-o", "jsonl") as run:
            for answer in (("allow_once", "--arguments", '{"command": "make all"}'), ("--reply", "colour=Blue")):
                line_with(run, '"type":"request"')
                listed = shell.run("requests", "list", "--url", url, "-o", "json")
                [one] = listed.json
                name = f"{one['conversation_id']}/{one['turn_id']}/{one['request']['request_id']}"
                assert name in shell.run("requests", "list").out  # the only server of this user
                wrong = shell.run("requests", "answer", f"{name}x", "deny", "--url", url)
                assert (wrong.code, name in wrong.err) == (1, True)
                told = shell.run("requests", "answer", name, *answer, "--url", url)
                assert told.code == 0, told.err
            rest, _ = rest_of(run)
        with shell.started("serve", *fake()) as another:
            line_with(another, "listening on ")
            several = shell.run("requests", "list")
        assert (several.code, several.out, url in several.err) == (2, "", True)
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == 0
    none = shell.run("requests", "list")
    assert (none.code, "harness serve" in none.err) == (2, True)
    last = json.loads(rest.splitlines()[-1])
    outcomes = [(call["outcome"], call.get("refusal_kind")) for call in last["calls"]]
    assert outcomes == [("refused", "denied"), ("ok", None), ("ok", None), ("ok", None)]


@requirement("cli:run:approve")
def test_person_sees_what_an_edit_changes_and_may_change_the_call(shell: Shell) -> None:
    (shell.directory / "notes.txt").write_text("one\ntwo\n")
    write = {"tool": "Write", "arguments": {"file_path": "notes.txt", "content": "one\nthree\n"}, "id": "a"}
    with shell.at_terminal("run", "Go.", *fake({"approval": write}, {"text": "heard {{results.a}}"})) as screen:
        screen.until("(a reason may follow): ")
        assert "-two" in screen.shown and "+three" in screen.shown
        assert f"in {shell.directory}" in screen.shown
        screen.type("e\n")
        screen.until("(empty: back): ")
        screen.type("nonsense\n")
        screen.until("(empty: back): ")
        screen.type('{"file_path": "other.txt", "content": ""}\n')
        assert screen.end() == 0
    assert "heard allow_once" in screen.shown


@requirement("cli:run:approve", "orchestrator:policy:always")
def test_person_allows_a_call_for_the_whole_conversation(shell: Shell) -> None:
    (shell.directory / "mine.toml").write_text('ask = ["say"]')
    call = {"calls": [{"name": "say", "arguments": {"text": "hi"}}]}
    options = ("--tools", "tools.py", "--policy", "mine.toml")
    with shell.at_terminal("run", "Go.", *fake(call, call, {"text": "done"}), *options) as screen:
        screen.until("(a reason may follow): ")
        assert "The model wants to run your tool 'say'" in screen.shown
        assert "to be asked by the rule say" in screen.shown
        screen.type("a\n")
        assert screen.end() == 0
    assert screen.shown.count("(a reason may follow)") == 1


@requirement("cli:config")
def test_examples_of_the_documentation_can_be_used(tmp_path: Path) -> None:
    policy, limits = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "policy.md").read_text(), re.DOTALL)
    file = tmp_path / "config.toml"
    file.write_text(f"{limits}\n[policy]\n{policy}")
    read = read_configuration(file)
    assert read.policy is not None
    assert (len(read.policy.allow), read.limits.cost_budget_usd, read.prices[0].model) == (4, 2, "gpt-5*")
