"""Ctrl-C, once and twice, wherever the command is."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from contract_tests.cli.command import Shell, fake, line_with, rest_of
from contract_tests.requirements import requirement


@requirement("cli:run:interrupt-once", "cli:run:tool-timeout")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_one_cancels_the_turn_and_prints_the_error_shape(shell: Shell, number: signal.Signals) -> None:
    with shell.started("run", "call forever", *fake(), "--tools", "tools.py", "-o", "jsonl") as process:
        line_with(process, '"type":"request"')
        process.send_signal(number)
        rest, err = rest_of(process)

    last = json.loads(rest.splitlines()[-1])
    assert (process.returncode, last["type"], last["exit_code"]) == (130, "failed", 130)
    assert (last["status"], last["stop_reason"], last["error"]["code"]) == ("cancelled", "cancelled", "cancelled")
    assert [call["outcome"] for call in last["calls"]] == ["unknown"]
    assert "Traceback" not in err


@requirement("cli:run:interrupt-once")
def test_before_there_is_a_turn_it_ends_the_beginning(shell: Shell, tmp_path: Path) -> None:
    # a CLI that is asked for its version and never answers
    cli, fifo = tmp_path / "claude", tmp_path / "fifo"
    os.mkfifo(fifo)
    cli.write_text(f"#!/bin/sh\necho asked > {fifo}\nexec sleep 60\n")
    cli.chmod(0o755)
    options = ("-O", f"command={cli}", "-O", "key=made-up", "-O", f"home={tmp_path}")
    with shell.started("run", "Go.", "--connector", "claude", *options, "-o", "json") as process:
        assert fifo.read_text() == "asked\n"
        process.send_signal(signal.SIGINT)
        out, err = rest_of(process)

    assert (process.returncode, json.loads(out)["error"]["message"]) == (130, "Cancelled before the turn began.")
    assert "Traceback" not in err


@requirement("cli:run:interrupt-once")
def test_while_stdin_is_read_it_ends_the_command(shell: Shell) -> None:
    with shell.at_terminal("run", "-", *fake(), "--verbose") as screen:
        screen.type("no end\n")
        screen.until("no end")
        screen.type("\x03")
        assert screen.end() in (130, -signal.SIGINT)
    assert "Traceback" not in screen.shown


@requirement("cli:run:interrupt-twice")
@pytest.mark.parametrize("tool", ["busy", "forever"])
def test_the_second_one_ends_everything_even_while_a_tool_keeps_the_loop_busy(shell: Shell, tool: str) -> None:
    # the peer neither hears an interrupt nor ends
    (shell.directory / "deaf.yaml").write_text(
        f"ignore_interrupt: true\nturns:\n- - calls: [{{name: {tool}}}]\n    wait: false\n  - hang: true\n"
    )
    options = ("--connector", "fake", "-O", "script=deaf.yaml", "--tools", "tools.py")
    with shell.started("run", "Go.", *options, "-o", "jsonl") as process:
        line_with(process, '"type":"request"')
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert "once more" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(3) == 130
