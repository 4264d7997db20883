"""The examples run as they stand, with the connector `fake` and no key."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from contract_tests.cli.command import Shell, line_with
from contract_tests.requirements import requirement
from contract_tests.source_tree import ROOT

EXAMPLES = ROOT / "examples"


def run(shell: Shell, example: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / example), *arguments],
        cwd=shell.directory,
        env=shell.environment_of_commands(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@requirement("examples:run")
def test_ask_takes_a_connector_or_a_server_and_so_do_strangers(shell: Shell) -> None:
    done = run(shell, "ask.py", "fake")
    assert (done.returncode, done.stdout, done.stderr) == (0, "get_weather: 3 °C and rain in Oslo\n", "")

    with shell.started("serve", "--connector", "fake", "--print-token") as server:
        url = line_with(server, "listening on ").removeprefix("listening on ").strip()
        token = line_with(server, "token ").removeprefix("token ").strip()
        asked = run(shell, "ask.py", url)
        stranger = run(shell, "stranger_client.py", url, token)
        openai_sdk = run(shell, "openai_sdk.py", url, token)
    assert (asked.returncode, asked.stdout, asked.stderr) == (0, done.stdout, "")
    assert (openai_sdk.returncode, openai_sdk.stdout, openai_sdk.stderr) == (0, done.stdout, "")
    assert (stranger.returncode, stranger.stdout) == (0, "get_weather: 3 degrees and rain in Oslo\n"), stranger.stderr


@requirement("examples:run")
def test_a_stranger_says_why_a_turn_failed(shell: Shell) -> None:
    steps = '[{"error": {"code": "provider_error", "message": "the model is down"}}]'
    with shell.started("serve", "--connector", "fake", "--print-token", "-O", f"steps={steps}") as server:
        url = line_with(server, "listening on ").removeprefix("listening on ").strip()
        token = line_with(server, "token ").removeprefix("token ").strip()
        stranger = run(shell, "stranger_client.py", url, token)
    assert (stranger.returncode, "the model is down" in stranger.stderr) == (1, True), stranger.stderr


@requirement("examples:run")
def test_the_tools_file_works(shell: Shell) -> None:
    prompt = (
        'call get_weather {"city": "Oslo", "unit": "fahrenheit"}\ncall get_weather {"city": "Ys"}\ncall list_cities'
    )
    done = shell.run("run", prompt, "--connector", "fake", "--tools", str(EXAMPLES / "tools.py"))
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        'get_weather: {"city":"Oslo","temperature":37.4,"unit":"fahrenheit"}',
        "get_weather: LookupError: no station in 'Ys', there is one in each of: Oslo, Rome, Lima",
        'list_cities: ["Lima","Oslo","Rome"]',
    ]


@requirement("examples:run")
@pytest.mark.parametrize(("example", "lines"), [("ask.py", 19), ("openai_sdk.py", 33), ("stranger_client.py", 40)])
def test_the_examples_stay_small(example: str, lines: int) -> None:
    assert len((EXAMPLES / example).read_text().splitlines()) <= lines


@requirement("examples:run")
def test_a_stranger_needs_the_standard_library_only() -> None:
    tree = ast.parse((EXAMPLES / "stranger_client.py").read_text())
    imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names


@requirement("examples:run")
def test_every_example_is_tried_here() -> None:
    tried_here = {"ask.py", "openai_sdk.py", "stranger_client.py", "tools.py"}
    tried_in_test_kit = {"tiny_connector.py", "try_tiny_connector.py"}
    assert {file.name for file in EXAMPLES.glob("*.py")} == tried_here | tried_in_test_kit
