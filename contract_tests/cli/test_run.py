"""`harness run` with the connector `fake`: what goes in, what comes out, how it ends."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from contract_tests.cli.command import HARNESS, Shell, fake, line_with, rest_of
from contract_tests.requirements import requirement
from harness.orchestrator import schemas

WEATHER = 'call get_weather {"city": "Oslo"}'


def fits(name: str, value: Any) -> bool:
    """Whether the value is as the checked-in schema describes it."""
    schema = json.loads((schemas.DIRECTORY / name).read_text())
    Draft202012Validator(schema).validate(value)
    return True


@requirement("cli:run:prompt")
@pytest.mark.parametrize(("arguments", "stdin"), [(["Hello 🚲\n"], ""), ([], "Hello 🚲\n"), (["-"], "Hello 🚲\n")])
def test_the_prompt_is_the_argument_or_stdin(shell: Shell, arguments: list[str], stdin: str) -> None:
    done = shell.run("run", *arguments, *fake(), stdin=stdin)
    assert (done.code, done.out, done.err) == (0, "Hello 🚲\n", "")


@requirement("cli:run:prompt")
def test_a_prompt_that_is_no_utf8_is_refused(shell: Shell) -> None:
    done = shell.run("run", *fake(), stdin=b"caf\xe9")
    assert (done.code, done.err) == (2, "harness: the prompt is not UTF-8\n")


@requirement("cli:run:json", "cli:run:stdout-is-data")
def test_json_tells_the_answer_and_every_call(shell: Shell) -> None:
    prompt = f'{WEATHER}\ncall boom {{"x": 1}}\ncall boom {{"x": "one"}}'
    done = shell.run("run", prompt, *fake(), "--tools", "tools.py", "-o", "json")

    assert done.code == 0
    assert fits("completion.json", done.json)
    assert len(done.out.splitlines()) == 1
    told = done.json
    assert told["content"].startswith("get_weather: 3 °C in Oslo\nboom: ValueError: no way\nboom: ")
    assert (told["status"], told["stop_reason"]) == ("completed", "end_turn")
    assert (told["tool_calls"], told["failed_tool_calls"], told["refused_tool_calls"]) == (3, 2, 0)
    first, second, third = told["calls"]
    assert (first["tool"], first["arguments"], first["outcome"]) == ("get_weather", '{"city": "Oslo"}', "ok")
    assert first["call_id"] == first["request_id"]
    assert (second["outcome"], "refusal_kind" in second) == ("failed", False)
    assert (third["outcome"], third["refusal_kind"]) == ("failed", "invalid_arguments")
    assert "result" not in first
    assert {"error", "exit_code", "thinking"} & told.keys() == set()
    assert "a tool may print" in done.err
    assert "and so may a program" in done.err


@requirement("cli:run:jsonl", "cli:run:stdout-is-data")
def test_jsonl_has_a_line_for_everything_as_it_happens(shell: Shell) -> None:
    # the tool never returns: what is read before the end was written before the end
    waiting = {"calls": [{"name": "forever", "id": "f"}], "wait": False}
    steps = ({"text": ["I ", "look."]}, {"calls": [{"name": "get_weather", "arguments": {"city": "Oslo"}}]}, waiting)
    with shell.started(
        "run", "Go.", *fake(*steps, {"hang": True}), "--tools", "tools.py", "-o", "jsonl", "--timeout", "2"
    ) as process:
        assert process.stdout is not None
        early = [json.loads(process.stdout.readline()) for _ in range(2)]
        last_request = json.loads(line_with(process, '"type":"request","request":{"request_id":"f"'))
        rest, _ = rest_of(process)
    late = [json.loads(line) for line in rest.splitlines()]

    for line in (*early, last_request, *late):
        assert fits("line.json", line)
    assert early[0].keys() == {"type", "conversation_id", "turn_id"}
    assert early[0]["type"] == "started"
    assert early[1]["item"] == {**early[1]["item"], "sequence_no": 1, "kind": "text_delta", "text": "I "}
    assert last_request["request"]["tool_name"] == "forever"
    assert late[-1]["type"] == "failed"
    assert late[-1]["error"]["code"] == "turn_timeout"
    assert process.returncode == late[-1]["exit_code"] == 124


@requirement("cli:run:jsonl")
def test_jsonl_shows_requests_and_the_answers_given_to_them(shell: Shell) -> None:
    done = shell.run("run", WEATHER, *fake(), "--tools", "tools.py", "-o", "jsonl")
    kinds = [line["type"] for line in done.lines]
    assert (kinds[0], kinds[-1], kinds.count("finished")) == ("started", "finished", 1)
    [request] = [line["request"] for line in done.lines if line["type"] == "request"]
    [response] = [line["response"] for line in done.lines if line["type"] == "response"]
    assert response["request_id"] == request["request_id"]
    assert response["content"] == [{"type": "text", "text": "3 °C in Oslo"}]
    numbers = [line["item"]["sequence_no"] for line in done.lines if line["type"] == "item"]
    assert numbers == list(range(1, len(numbers) + 1))


@requirement("cli:run:arguments-cut")
def test_arguments_are_cut_unless_everything_is_wanted(shell: Shell) -> None:
    text = "x" * 1000
    arguments = ("run", f'call say {{"text": "{text}"}}', *fake(), "--tools", "tools.py:say", "-o", "json")
    [cut] = shell.run(*arguments).json["calls"]
    [full] = shell.run(*arguments, "--full").json["calls"]
    assert len(cut["arguments"]) == 300
    assert "result" not in cut
    assert json.loads(full["arguments"]) == {"text": text}
    assert full["result"] == [{"type": "text", "text": text}]


@requirement("cli:run:exit-codes")
@pytest.mark.parametrize(
    ("step", "code", "status"),
    [
        ({"end": "end_turn"}, 0, "completed"),
        ({"end": "max_tokens"}, 4, "completed"),
        ({"end": "refusal"}, 5, "completed"),
        ({"error": {"code": "provider_error", "message": "overloaded"}}, 1, "failed"),
        ({"error": {"code": "connector_unavailable", "message": "not logged in"}}, 3, "failed"),
        ({"error": {"code": "turn_stalled", "message": "silent"}}, 124, "failed"),
        ({"error": {"code": "invalid_argument", "message": "the peer's own affair"}}, 1, "failed"),
        ({"die": "now"}, 1, "failed"),
    ],
)
def test_the_exit_code_tells_how_the_turn_ended(shell: Shell, step: dict[str, Any], code: int, status: str) -> None:
    done = shell.run("run", "Go.", *fake({"text": "Half."}, step), "-o", "json")
    assert fits("completion.json", done.json)
    assert (done.code, done.json["status"], done.json["content"]) == (code, status, "Half.")
    if status == "failed":
        assert done.json["exit_code"] == code
        assert done.json["error"]["message"] in done.err
        assert len(done.err.splitlines()) == 1


@requirement("cli:usage", "cli:run:json", "cli:run:jsonl")
@pytest.mark.parametrize(("output", "schema"), [("json", "completion.json"), ("jsonl", "line.json")])
def test_wrong_usage_has_the_error_shape_too(shell: Shell, output: str, schema: str) -> None:
    done = shell.run("run", "Go.", "--connector", "nobody", "-o", output)
    assert fits(schema, done.json)
    assert (done.code, done.json["exit_code"], done.json["error"]["code"]) == (2, 2, "invalid_argument")


@requirement("cli:run:tools-file")
@pytest.mark.parametrize(
    ("source", "spec", "told"),
    [
        (None, "none.py", "harness: no tools file 'none.py'"),
        ("x = 1\ndef f(:", "t.py", "harness: tools file 't.py', line 2: syntax error"),
        ("import nothing_of_that_name", "t.py", "harness: tools file 't.py', line 1: ModuleNotFoundError"),
        ("raise SystemExit(3)", "t.py", "harness: tools file 't.py', line 1: SystemExit"),
        ("x = 1", "t.py", "harness: tools file 't.py' defines no public function"),
        ("def f(): ...", "t.py:g", "harness: tools file 't.py' has no function 'g'; it has: 'f'"),
        ("class C: ...\ndef f(c: C): ...", "t.py", "harness: "),
    ],
)
def test_a_tools_file_that_cannot_be_used_is_one_line(shell: Shell, source: str | None, spec: str, told: str) -> None:
    if source is not None:
        (shell.directory / "t.py").write_text(source)
    done = shell.run("run", "Go.", *fake(), "--tools", spec)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(told)
    assert len(done.err.splitlines()) == 1


@requirement("cli:run:tool-timeout")
def test_a_tool_that_never_returns_is_given_up_and_the_command_ends(shell: Shell) -> None:
    done = shell.run("run", "call forever", *fake(), "--tools", "tools.py", "--tool-timeout", "200ms", "-o", "json")
    assert (done.code, done.json["status"]) == (0, "completed")
    [call] = done.json["calls"]
    assert (call["outcome"], call["refusal_kind"]) == ("failed", "timed_out")
    assert "gave no result within 0.2 s" in done.json["content"]


@requirement("cli:run:connector-choice")
def test_the_environment_names_the_connector_and_the_option_goes_before_it(shell: Shell) -> None:
    assert shell.run("run", "Hello.", HARNESS_CONNECTOR="fake").out == "Hello.\n"
    assert shell.run("run", "Hello.", *fake(), HARNESS_CONNECTOR="nobody").out == "Hello.\n"


@requirement("cli:run:dry-run")
def test_a_dry_run_shows_what_would_be_started(shell: Shell) -> None:
    done = shell.run("run", "--dry-run", *fake(), "--tools", "tools.py:get_weather")
    assert (done.code, done.err) == (0, "")
    assert done.json["connector"] == "fake"
    [tool] = done.json["tools"]
    assert tool == {**tool, "name": "get_weather", "description": "The weather in a city.", "read_only": True}
    assert tool["input_schema"]["required"] == ["city"]

    remote = shell.run("run", "--dry-run", "--url", "http://127.0.0.1:9")
    assert remote.json == {"url": "http://127.0.0.1:9", "tools": []}


@requirement("cli:run:approve")
@pytest.mark.parametrize(
    ("approve", "outcome"),
    [
        ((), {"outcome": "refused", "refusal_kind": "approval_unavailable"}),
        (("--approve", "deny"), {"outcome": "refused", "refusal_kind": "denied"}),
        (("--approve", "allow"), {"outcome": "ok"}),
    ],
)
def test_approvals_without_a_person_are_allowed_or_denied(
    shell: Shell, approve: tuple[str, ...], outcome: dict[str, str]
) -> None:
    asked = {"approval": {"tool": "Bash", "arguments": {"command": "ls"}}}
    done = shell.run("run", "Go.", *fake(asked, {"text": "done"}), *approve, "-o", "json")
    [call] = done.json["calls"]
    assert (done.code, call["kind"], call["tool"]) == (0, "approval", "Bash")
    assert {name: call.get(name) for name in outcome} == outcome


@requirement("cli:run:activity", "cli:terminal:plain")
def test_verbose_tells_each_call_on_stderr(shell: Shell) -> None:
    thinking = {"thinking": ["Let me ", "think."]}
    steps = (thinking, {"calls": [{"name": "say", "arguments": {"text": "hi"}}]}, {"text": "\x1b[31mdone"})
    done = shell.run("run", "Go.", *fake(*steps), "--tools", "tools.py", "-v", "--show-thinking", "--show-usage")
    assert done.out == "\x1b[31mdone\n"  # a file gets exactly what the model said
    lines = done.err.splitlines()
    assert lines[:2] == ["thinking: Let me think.", '→ say(text="hi")']
    assert lines[2].startswith('✓ say(text="hi"): answered by the host in ')
    assert lines[-1] == "usage: not reported"


@requirement("cli:run:stdout-is-data")
def test_a_reader_that_goes_away_ends_the_command_quietly(shell: Shell) -> None:
    os.mkfifo(shell.directory / "gate")
    steps = ({"calls": [{"name": "gate"}]}, {"text": "More."}, {"hang": True})
    with shell.started("run", "Go.", *fake(*steps), "--tools", "tools.py", "-o", "jsonl") as process:
        line_with(process, '"type":"request"')
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        (shell.directory / "gate").write_text("open")
        process.wait(20)
        assert (process.returncode, process.stderr.read()) == (1, "")


@requirement("cli:run:prompt")
def test_closed_standard_streams_do_no_harm(shell: Shell) -> None:
    command = [HARNESS, "run", "Hello.", *fake()]
    quoted = shlex.join(command)
    closed = f"{quoted} <&- 2>&-; {quoted} <&- >&- || exit 7; {quoted} 2>&-"
    done = subprocess.run(
        ["sh", "-c", closed],
        cwd=shell.directory,
        env=shell.environment_of_commands(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello.\nHello.\n", "")
