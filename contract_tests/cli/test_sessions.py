"""`harness sessions`, and `harness run` with a conversation of before."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from contract_tests.cli.command import Shell, fake, line_with
from contract_tests.requirements import requirement
from harness.orchestrator.completion import Completion

ROUND = ({"calls": [{"name": "gate", "id": "c1"}]}, {"text": "It was: {{results.c1}}"})
KEYS = ["id", "status", "connector", "model", "created", "updated", "turns", "first_message", "pending_requests"]


def sessions(shell: Shell, *arguments: str) -> list[dict[str, Any]]:
    done = shell.run("sessions", "list", "-o", "json", *arguments)
    assert done.code == 0, done.err
    return done.json


@requirement("cli:sessions:list")
def test_without_a_conversation_the_list_is_empty(shell: Shell) -> None:
    assert sessions(shell) == []
    done = shell.run("sessions", "list")
    assert (done.code, done.out) == (0, "")


@requirement("cli:sessions:list")
def test_a_run_leaves_its_conversation_in_the_list_most_recent_first(shell: Shell) -> None:
    for number in range(3):
        assert shell.run("run", f"message {number}", *fake()).code == 0
    found = sessions(shell)
    assert [one["first_message"] for one in found] == ["message 2", "message 1", "message 0"]
    assert list(found[0]) == KEYS
    assert found[0]["connector"] == "fake"
    assert (found[0]["model"], found[0]["turns"], found[0]["pending_requests"]) == (None, 1, 0)
    for key in ("created", "updated"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found[0][key])
    assert [one["first_message"] for one in sessions(shell, "--limit", "1")] == ["message 2"]
    text = shell.run("sessions", "list").out.splitlines()
    assert len(text) == 3 and text[0].startswith(found[0]["id"]) and text[0].endswith("message 2")


@requirement("cli:sessions:private")
def test_the_journal_is_the_users_alone_and_can_be_elsewhere_or_nowhere(shell: Shell) -> None:
    shell.run("run", "hello", *fake())
    [journal] = shell.directory.rglob("journal.db")
    assert journal.stat().st_mode & 0o077 == 0
    assert "state" in journal.parts
    shell.run("run", "nowhere", *fake(), "--store", "memory")
    shell.run("run", "elsewhere", *fake(), "--store", "other.db")
    assert [one["first_message"] for one in sessions(shell)] == ["hello"]
    assert [one["first_message"] for one in sessions(shell, "--store", "other.db")] == ["elsewhere"]
    (shell.directory / "config.toml").write_text('[journal]\nstore = "other.db"\ndurability = "power"\n')
    assert [one["first_message"] for one in sessions(shell, "--config", "config.toml")] == ["elsewhere"]
    refused = shell.run("sessions", "list", "--store", "memory")
    assert refused.code == 2 and "no journal" in refused.err


@requirement("cli:sessions:private")
@pytest.mark.parametrize("text", ['store = ""', 'durability = "always"', "days = 3"])
def test_a_wrong_journal_setting_is_named(shell: Shell, text: str) -> None:
    (shell.directory / "config.toml").write_text(f"[journal]\n{text}\n")
    done = shell.run("run", "hello", *fake(), "--config", "config.toml")
    assert (done.code, done.out) == (2, "")
    assert f"journal.{text.partition(' ')[0]}" in done.err


@requirement("cli:sessions:show")
def test_show_and_export_give_the_whole_conversation(shell: Shell) -> None:
    steps = ({"text": ["I look. "]}, {"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "c"}]})
    assert shell.run("run", "weather?", *fake(*steps, {"text": "Cold."}), "--tools", "tools.py").code == 0
    [found] = sessions(shell)

    shown = shell.run("sessions", "show", found["id"]).out
    assert shown.startswith("> weather?\n")
    places = [shown.index(text) for text in ("I look.", 'get_weather(city="Oslo")', "Cold.")]
    assert places == sorted(places)

    markdown = shell.run("sessions", "export", found["id"]).out
    assert markdown.startswith("# weather?\n")
    assert "## Turn t1" in markdown and "Cold." in markdown
    written = shell.run("sessions", "export", found["id"], "--file", "talk.md")
    assert (written.code, written.out) == (0, "")
    assert (shell.directory / "talk.md").read_text() == markdown

    lines = shell.run("sessions", "show", found["id"], "--format", "jsonl").lines
    assert [line["type"] for line in lines[:2]] == ["conversation", "turn"]
    items = [line["item"] for line in lines[2:]]
    assert [item["sequence_no"] for item in items] == list(range(1, len(items) + 1))
    assert items[-1]["kind"] == "turn_ended"

    for command in ("show", "export"):
        done = shell.run("sessions", command, "c_nope")
        assert (done.code, done.out) == (1, "")
        assert "no conversation 'c_nope'" in done.err


@requirement("cli:sessions:delete")
def test_delete_forgets_and_says_so_or_says_why_not(shell: Shell) -> None:
    for number in range(3):
        shell.run("run", f"message {number}", *fake())
    ids = [one["id"] for one in sessions(shell)]
    done = shell.run("sessions", "delete", ids[0], "-o", "json")
    assert (done.code, done.json) == (0, {"deleted": [ids[0]]})
    failed = shell.run("sessions", "delete", ids[1], ids[0], "-o", "json")
    assert failed.code == 1
    assert failed.json["error"]["code"] == "unknown_conversation"
    assert (failed.json["deleted"], failed.json["exit_code"]) == ([ids[1]], 1)
    assert shell.run("sessions", "delete", ids[2]).out == f"deleted {ids[2]}\n"
    assert sessions(shell) == []


@requirement("cli:sessions:prune")
def test_prune_forgets_what_is_old_or_too_much_and_can_only_say_what(shell: Shell) -> None:
    for number in range(3):
        shell.run("run", f"message {number} {'x' * 20_000}", *fake({"text": "short"}))
    ids = [one["id"] for one in sessions(shell)]
    assert shell.run("sessions", "prune").code == 2
    kept = shell.run("sessions", "prune", "--older-than", "30d", "-o", "json")
    assert kept.json == {"deleted": [], "dry_run": False}
    planned = shell.run("sessions", "prune", "--max-size", "30k", "--dry-run", "-o", "json")
    assert planned.json == {"deleted": ids[:0:-1], "dry_run": True}
    assert len(sessions(shell)) == 3
    assert shell.run("sessions", "prune", "--max-size", "30k").out.splitlines() == [
        f"deleted {one}" for one in ids[:0:-1]
    ]
    assert [one["id"] for one in sessions(shell)] == ids[:1]
    assert shell.run("sessions", "prune", "--older-than", "1ms").out == f"deleted {ids[0]}\n"


@requirement("cli:run:continue")
def test_continue_goes_on_with_the_latest_conversation_of_this_directory(shell: Shell) -> None:
    turns = json.dumps(
        [[{"calls": [{"name": "say", "arguments": {"text": "Ada"}, "id": "c"}]}], [{"text": "{{results.c}}"}]]
    )
    first = shell.run("run", "I am Ada", "--connector", "fake", "-O", f"turns={turns}", "--tools", "tools.py")
    assert first.code == 0, first.err
    elsewhere = Shell(shell.directory / "sub", {"HOME": str(shell.directory)})
    elsewhere.directory.mkdir()
    assert elsewhere.run("run", "not here", *fake()).code == 0
    done = shell.run("run", "--continue", "Who am I?", "--tools", "tools.py", "-o", "json")
    assert (done.code, done.json["content"]) == (0, "Ada")
    assert Completion.model_fields.keys() >= done.json.keys() - {"exit_code"}
    latest, other = sessions(shell)
    assert (latest["turns"], latest["first_message"], other["first_message"]) == (2, "I am Ada", "not here")
    nothing = Shell(shell.directory / "empty", {"HOME": str(shell.directory)})
    nothing.directory.mkdir()
    refused = nothing.run("run", "-c", "hello")
    assert refused.code == 2 and "no conversation was begun in this directory" in refused.err


@requirement("cli:run:resume")
def test_what_is_for_a_new_conversation_is_refused_with_an_earlier_one(shell: Shell) -> None:
    shell.run("run", "hello", *fake())
    [found] = sessions(shell)
    for options in (["--system", "x"], ["-O", "a=1"], ["--max-turns", "3"], ["--continue"], ["--dry-run"]):
        done = shell.run("run", "more", "--resume", found["id"], *options)
        assert done.code == 2, options
    unknown = shell.run("run", "more", "--resume", "c_nope", "-o", "json")
    assert (unknown.code, unknown.json["error"]["code"]) == (1, "unknown_conversation")
    nothing_open = shell.run("run", "--resume", found["id"])
    assert nothing_open.code == 2 and "say how to go on" in nothing_open.err


@requirement("cli:run:fork")
def test_fork_goes_on_in_a_new_conversation_where_the_peer_can(shell: Shell) -> None:
    shell.run("run", "hello", *fake())
    [found] = sessions(shell)
    refused = shell.run("run", "more", "--fork", found["id"])
    assert refused.code == 1 and "cannot fork" in refused.err
    turns = json.dumps(
        [[{"calls": [{"name": "say", "arguments": {"text": "Ada"}, "id": "c"}]}], [{"text": "{{results.c}}"}]]
    )
    options = ("--connector", "fake", "-O", f"turns={turns}", "-O", 'capabilities={"fork": true}')
    assert shell.run("run", "I am Ada", *options, "--tools", "tools.py").code == 0
    origin = sessions(shell)[0]
    for _ in range(2):
        assert shell.run("run", "Who am I?", "--fork", origin["id"]).out == "Ada\n"
    assert [one["turns"] for one in sessions(shell)] == [1, 1, 1, 1]


def killed_in_a_call(shell: Shell, resume: str) -> dict[str, Any]:
    """`kill -9` while the tool runs."""
    os.mkfifo(shell.directory / "gate")
    script = ("-O", f"steps={json.dumps(ROUND)}", "-O", f"resume={resume}")
    arguments = ("run", "Is it open?", "--connector", "fake", *script, "--tools", "tools.py", "-o", "jsonl")
    with shell.started(*arguments) as process:
        line_with(process, '"request"')
        process.send_signal(signal.SIGKILL)
        process.wait()
    [found] = sessions(shell)
    assert (found["status"], found["turns"], found["first_message"]) == ("interrupted", 1, "Is it open?")
    return found


def open_gate(directory: Path, text: str) -> None:
    gate = directory / "gate"
    gate.unlink()
    gate.write_text(text)


@requirement("cli:run:resume")
def test_a_run_that_was_killed_in_a_call_is_finished_by_another(shell: Shell) -> None:
    found = killed_in_a_call(shell, "exact")
    assert found["pending_requests"] == 1
    open_gate(shell.directory, "open")
    early = shell.run("run", "something else", "--resume", found["id"])
    assert early.code == 2 and "has not ended" in early.err
    done = shell.run("run", "--resume", found["id"], "--tools", "tools.py", "-o", "json")
    assert (done.code, done.json["content"]) == (0, "It was: open")
    assert [(call["call_id"], call["outcome"]) for call in done.json["calls"]] == [("c1", "ok")]
    [after] = sessions(shell)
    assert (after["status"], after["turns"]) == ("parked", 1)


@requirement("cli:run:resume")
def test_a_run_whose_peer_died_with_it_is_gone_on_with_by_the_next_message(shell: Shell) -> None:
    found = killed_in_a_call(shell, "continued")
    assert found["pending_requests"] == 0, "its peer is gone: nobody could be answered"
    lost = shell.run("run", "-c")
    assert lost.code == 2 and "say how to go on" in lost.err
    shown = shell.run("sessions", "show", found["id"], "-f", "jsonl").lines
    error = shown[-1]["item"]["error"]
    assert error["code"] == "peer_lost"
    [call] = json.loads(error["detail_json"])["open_requests"]
    assert (call["call_id"], call["outcome"]) == ("c1", "unknown")


@requirement("cli:sessions:in-use", "journal:several-processes")
def test_two_servers_and_a_run_share_one_journal(shell: Shell) -> None:
    os.mkfifo(shell.directory / "gate")
    script = ("-O", f"steps={json.dumps(ROUND)}", "-O", "resume=exact")
    serve = ("serve", "--connector", "fake", *script)
    with shell.started(*serve) as one, shell.started(*serve) as two:
        urls = [line_with(server, "listening on").split()[-1] for server in (one, two)]
        with shell.started("run", "open?", "--url", urls[0], "--tools", "tools.py", "-o", "jsonl") as caller:
            line_with(caller, '"request"')
            [found] = sessions(shell)
            assert (found["status"], found["pending_requests"]) == ("awaiting_host", 1)
            for arguments in (("--url", urls[1]), ()):
                done = shell.run("run", "-r", found["id"], *arguments, "-o", "json")
                assert (done.code, done.json["error"]["code"]) == (1, "conversation_in_use")
                assert f"process {one.pid} " in done.json["error"]["message"]
            refused = shell.run("sessions", "delete", found["id"], "-o", "json")
            assert refused.json["error"]["code"] == "conversation_in_use"
            assert shell.run("sessions", "prune", "--max-size", "0").out == ""

            one.kill()
            one.wait()
            caller.wait()
            open_gate(shell.directory, "open at last")
            done = shell.run("run", "-r", found["id"], "--url", urls[1], "--tools", "tools.py", "-o", "json")
            assert (done.code, done.json["content"]) == (0, "It was: open at last"), done.err
