"""`harness tools`, and tool sources of `harness run`, as a user types them."""

from __future__ import annotations

import json
import sys

from contract_tests.cli.command import Shell
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT

ROUGH = str(ROOT / "contract_tests" / "peers" / "mcp_rough.py")


def write_config(shell: Shell, **members: object) -> None:
    entry = {"command": sys.executable, "args": [ROUGH], **members}
    (shell.directory / "mcp.json").write_text(json.dumps({"mcpServers": {"rough": entry}}))


@requirement("cli:tools")
def test_list_shows_what_a_model_would_be_told(shell: Shell) -> None:
    write_config(shell, prefix="r_", tools=["echo"])
    done = shell.run("tools", "list", "--tools", "tools.py:get_weather", "--mcp-config", "mcp.json")
    assert done.code == 0, done.err
    assert [line.split() for line in done.out.splitlines()] == [
        ["get_weather", "reads", "The", "weather", "in", "a", "city."],
        ["r_echo", "writes"],
    ]
    shown = shell.run("tools", "list", "--tools", "tools.py:get_weather", "--json").json
    assert shown[0]["input_schema"]["required"] == ["city"]


@requirement("cli:tools")
def test_call_gives_the_result_on_stdout_and_an_error_as_exit_code(shell: Shell) -> None:
    done = shell.run("tools", "call", "get_weather", "city=Oslo", "--tools", "tools.py")
    assert (done.code, done.out) == (0, "3 °C in Oslo\n")
    assert "a tool may print" in done.err
    failed = shell.run("tools", "call", "boom", '{"x": 1}', "--tools", "tools.py", "--json")
    assert (failed.code, failed.json["is_error"]) == (1, True)
    assert "ValueError: no way" in failed.json["content"][0]["text"]
    unfit = shell.run("tools", "call", "boom", "x=y", "--tools", "tools.py")
    assert unfit.code == 1 and "do not fit" in unfit.out


@requirement("cli:tools")
def test_call_of_a_tool_of_an_mcp_server(shell: Shell) -> None:
    write_config(shell)
    done = shell.run("tools", "call", "echo", "text=hi", "--mcp-config", "mcp.json")
    assert (done.code, done.out) == (0, '{"text": "hi"}\n'), done.err


@requirement("cli:tools")
def test_mistake_is_one_line(shell: Shell) -> None:
    write_config(shell, command="/no/such/program")
    for arguments, words in (
        (("list",), "no tools: give --tools"),
        (("list", "--mcp-config", "nothing.json"), "cannot read the MCP configuration 'nothing.json'"),
        (("list", "--mcp-config", "mcp.json"), "MCP server 'rough'"),
        (("call", "nothing", "--tools", "tools.py"), "no tool 'nothing'"),
        (("list", "--openapi", "http://127.0.0.1:9/x.json"), "cannot be reached"),
    ):
        done = shell.run("tools", *arguments)
        assert done.code in (2, 3), done
        assert done.out == ""
        assert words in done.err
        assert done.err.count("\n") == 1, done.err


@requirement("cli:run:sources")
def test_run_uses_servers_and_says_who_runs_them(shell: Shell) -> None:
    write_config(shell, delegate="never")
    steps = 'steps=[{"calls": [{"name": "echo", "arguments": {"a": 1}}]}, {"message": "done"}]'
    common = ("--connector", "fake", "-O", steps, "--mcp-config", "mcp.json")
    done = shell.run("run", "go", *common, "-o", "jsonl", "-v")
    assert done.code == 0, done.err
    assert done.lines[0] == {
        "type": "source",
        "source": "rough",
        "route": "routed",
        "reason": "the caller wants it routed",
    }
    [result] = [line for line in done.lines if line["type"] == "response"]
    assert result["response"]["content"] == [{"type": "text", "text": '{"a": 1}'}]
    assert "source 'rough' is routed: the caller wants it routed" in done.err
    quiet = shell.run("run", "go", *common)
    assert "rough" not in quiet.err


@requirement("cli:run:advisor")
def test_advisor_of_the_configuration_is_a_tool_of_the_run(shell: Shell) -> None:
    config = shell.directory / "advised.toml"
    config.write_text('[advisor]\nconnector = "fake"\n[advisor.options]\nsteps = [{message = "Look again."}]\n')
    steps = 'steps=[{"calls": [{"name": "ask_advisor", "arguments": {}}]}, {"message": "done"}]'
    common = ("run", "go", "--connector", "fake", "-O", steps, "-o", "json", "--full")
    done = shell.run(*common, "--config", str(config))
    assert (done.code, done.json["calls"][0]["result"]) == (0, [{"type": "text", "text": "Look again."}]), done.err
    without = shell.run(*common)
    assert "There is no tool 'ask_advisor'" in without.json["calls"][0]["result"][0]["text"]
    config.write_text("[advisor]\nmodel = 'x'\n")
    wrong = shell.run(*common, "--config", str(config))
    assert wrong.code == 2 and "advisor.connector" in wrong.err


@requirement("cli:run:sources")
def test_dry_run_tells_the_decision_and_starts_nothing(shell: Shell) -> None:
    write_config(shell, command="/no/such/program")
    done = shell.run("run", "go", "--connector", "fake", "--mcp-config", "mcp.json", "--dry-run")
    assert done.json["sources"] == [
        {"source": "rough", "route": "delegated", "reason": "the peer takes it and reaches it"}
    ]
