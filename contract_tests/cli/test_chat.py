"""`harness chat` at a terminal, as a person uses it."""

from __future__ import annotations

import os
import re
import signal
import stat

import pytest

from contract_tests.cli.chat_screen import open_chat, plain
from contract_tests.cli.command import Shell, fake
from contract_tests.requirements import requirement
from harness.cli.chat_input import Draft

APPROVAL = {"approval": {"tool": "Bash", "arguments": {"command": "ls"}, "title": "Run a command", "id": "a"}}
TURNS = "turns:\n"


def script(shell: Shell, text: str) -> tuple[str, ...]:
    (shell.directory / "script.yaml").write_text(text)
    return ("--connector", "fake", "-O", "script=script.yaml")


@requirement("chat:messages")
def test_messages_in_one_conversation_with_tools(shell: Shell) -> None:
    with open_chat(shell, *fake(), "--tools", "tools.py") as chat:
        greeting = chat.at_prompt()
        assert re.search(r"· fake, conversation c_\w+\n· /help tells", greeting)
        assert chat.say("hello there") == ["hello there"]
        told = chat.say('call get_weather {"city": "Oslo"}')
        assert told[0] == '→ get_weather(city="Oslo")'
        assert told[-1] == "get_weather: 3 °C in Oslo"
        assert "2 turn(s), connector 'fake'" in chat.say("/info")[0]
        last = chat.leave()[-1]
    assert re.fullmatch(r"· harness chat --resume c_\w+ goes on", last)


@requirement("chat:messages")
def test_an_answer_streams(shell: Shell) -> None:
    steps = ({"text": ["I ", "look."]}, {"calls": [{"name": "forever"}]})
    with open_chat(shell, *fake(*steps), "--tools", "tools.py") as chat:
        chat.at_prompt()
        chat.screen.type("Go.\n")
        assert "I look.\n→ forever()" in chat.until("forever()")  # while the turn goes on


@requirement("chat:lines")
@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("one\\\ntwo", "one\ntwo"),
        ('"""\none\n  two\n"""', "one\n  two"),
        ('"""one\n\ntwo"""', "one\n\ntwo"),
        ('"""one"""', "one"),
        ('say """ here', 'say """ here'),
        ("a\\\n\\\nb", "a\n\nb"),
    ],
)
def test_a_message_of_several_lines(typed: str, message: str) -> None:
    draft = Draft()
    *before, last = typed.split("\n")
    assert [draft.add(line) for line in before] == [None] * len(before)
    assert draft.add(last) == message


@requirement("chat:lines")
def test_lines_are_typed_at_a_prompt_of_their_own(shell: Shell) -> None:
    with open_chat(shell, *fake()) as chat:
        chat.at_prompt()
        assert chat.say('"""\none\ntwo\n"""') == ["one", "two"]
        assert plain(chat.screen.shown).count("… ") == 3
        assert chat.say("a\\\nb") == ["a", "b"]
        assert chat.say("//slash") == ["/slash"]
        assert chat.say("") == []


@requirement("chat:commands")
def test_commands_tell_and_change(shell: Shell) -> None:
    with open_chat(shell, *fake(), "--tools", "tools.py", "-m", "big") as chat:
        chat.at_prompt()
        told = "\n".join(chat.say("/help"))
        assert all(f"/{name}" in told for name in ("help", "tools", "cost", "approve", "model", "info", "quit"))
        tools = chat.say("/tools")
        assert any("get_weather" in line and line.endswith("The weather in a city. (read-only)") for line in tools)
        assert chat.say("/cost") == ["· this conversation, usage: not reported"]
        chat.say("one two")
        assert chat.say("/cost") == ["· this conversation, usage: 2 input tokens, 2 output tokens, 1 model calls"]
        assert chat.say("/model") == ["· model: big"]
        assert chat.say("/model small") == ["· model: small"]
        assert chat.say("/model -") == ["· model: big"]
        assert chat.say("/nope") == ["harness: no command '/nope'; /help lists them, and //nope is a message"]
        assert chat.say("/approve maybe")[0].startswith("harness: '/approve maybe' is not possible here; possible: ")
        chat.screen.type("/quit\n")
        assert chat.screen.end() == 0


@requirement("chat:commands")
def test_a_connector_that_keeps_its_model_says_so(shell: Shell) -> None:
    with open_chat(shell, *fake(), "-O", 'capabilities={"turn_options": []}') as chat:
        chat.at_prompt()
        assert chat.say("/model small")[0].startswith("harness: this connector keeps its model")
        assert chat.say("hello") == ["hello"]


@requirement("chat:approve")
def test_approvals_are_asked_in_the_chat_or_answered_as_told(shell: Shell) -> None:
    turns = "turns:\n- - approval: {tool: Bash, arguments: {command: ls}, id: a}\n  - text: heard {{results.a}}\n"
    with open_chat(shell, *script(shell, f"repeat: true\n{turns}")) as chat:
        chat.at_prompt()
        chat.screen.type("Go.\n")
        assert '? The peer asks for leave: Bash(command="ls")' in chat.until("(a reason may follow): ")
        chat.screen.type("y\n")
        assert chat.at_prompt().splitlines()[-1] == "heard allow_once"
        assert chat.say("/approve deny") == ["· what the policy leaves open: deny"]
        assert chat.say("Go.")[-1] == "heard deny"
        assert chat.say("/approve allow") == ["· what the policy leaves open: allow"]
        assert chat.say("Go.")[-1] == "heard allow_once"


@requirement("chat:approve")
def test_a_policy_answers_first(shell: Shell) -> None:
    (shell.directory / "policy.toml").write_text('deny = ["Bash(ls)"]\n')
    with open_chat(shell, *fake(APPROVAL, {"text": "heard {{results.a}}"}), "--policy", "policy.toml") as chat:
        chat.at_prompt()
        assert chat.say("Go.")[-1] == "heard deny"


@requirement("chat:interrupt")
def test_ctrl_c_cancels_the_answer_and_the_chat_goes_on(shell: Shell) -> None:
    with open_chat(shell, *fake(), "--tools", "tools.py") as chat:
        chat.at_prompt()
        chat.screen.type("call forever\n")
        chat.until("→ forever()")
        chat.screen.type("\x03")
        told = chat.at_prompt()
        assert "cancelling; once more ends everything at once" in told
        assert told.endswith("harness: The turn was cancelled.\n")
        assert chat.say("still here") == ["still here"]


@requirement("chat:interrupt")
def test_ctrl_c_while_a_question_waits_cancels_too(shell: Shell) -> None:
    with open_chat(shell, *fake(APPROVAL, {"text": "never"})) as chat:
        chat.at_prompt()
        chat.screen.type("Go.\n")
        chat.until("(a reason may follow): ")
        chat.screen.type("\x03")
        assert chat.at_prompt().endswith("harness: The turn was cancelled.\n")


@requirement("chat:interrupt")
def test_ctrl_c_at_the_prompt_drops_the_draft_and_twice_leaves(shell: Shell) -> None:
    with open_chat(shell, *fake()) as chat:
        chat.at_prompt()
        chat.screen.type("wo\x03")
        assert "· once more leaves, and so does Ctrl-D" in chat.at_prompt()
        assert chat.say("hello") == ["hello"]
        chat.screen.type("wo\x03")
        chat.at_prompt()
        chat.screen.type("wo\x03")
        assert chat.screen.end() == 130
    assert "goes on" in plain(chat.screen.shown).splitlines()[-1]


@requirement("chat:interrupt")
def test_a_second_ctrl_c_ends_everything_even_while_a_tool_keeps_the_loop_busy(shell: Shell) -> None:
    deaf = "ignore_interrupt: true\nturns:\n- - calls: [{name: busy}]\n    wait: false\n  - hang: true\n"
    with open_chat(shell, *script(shell, deaf), "--tools", "tools.py") as chat:
        chat.at_prompt()
        chat.screen.type("Go.\n")
        chat.until("→ busy()")
        chat.screen.type("\x03")
        chat.until("once more")
        chat.screen.type("\x03")
        assert chat.screen.end() == 130


@requirement("chat:interrupt")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_polite_end_of_the_process_is_an_end_in_order(shell: Shell, number: signal.Signals) -> None:
    with open_chat(shell, *fake({"text": "I think"}, {"hang": True})) as chat:
        chat.at_prompt()
        chat.screen.type("Go.\n")
        chat.until("I think")
        chat.screen.process.send_signal(number)
        assert chat.screen.end() == 128 + number
    assert "Traceback" not in chat.screen.shown


@requirement("chat:history")
def test_what_was_typed_comes_back_in_the_next_chat_but_no_secret(shell: Shell) -> None:
    with open_chat(shell, *fake(), SHOP_TOKEN="s3cr3t-value") as chat:
        chat.at_prompt()
        for text in ("first", "my token is s3cr3t-value", " private", "last"):
            chat.say(text)
        chat.leave()
    [file] = shell.directory.glob(".local/state/*/chat_history")
    assert file.read_text().splitlines() == ["first", "last"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with open_chat(shell, *fake()) as chat:
        chat.at_prompt()
        chat.screen.type("\x1b[A\x1b[A")  # twice up
        chat.until("first")
        chat.screen.type("\n")
        assert chat.at_prompt().splitlines()[-1] == "first"


@requirement("chat:resume")
def test_continue_and_resume_go_on_with_what_was_said(shell: Shell) -> None:
    turns = (
        "turns:\n- - calls: [{name: say, id: c, arguments: {text: xylophone}}]\n- - text: It was {{results.c}}.\n"
        "- - text: Still {{results.c}}.\n"
    )
    with open_chat(shell, *script(shell, turns), "--tools", "tools.py") as chat:
        chat.at_prompt()
        chat.say("Remember.")
        conversation_id = chat.leave()[-1].split()[4]
    with open_chat(shell, "--continue", "--tools", "tools.py") as chat:
        assert f"conversation {conversation_id}: Remember." in chat.at_prompt()
        assert chat.say("What was it?")[-1] == "It was xylophone."
        chat.leave()
    with open_chat(shell, "--resume", conversation_id, "--tools", "tools.py") as chat:
        chat.at_prompt()
        assert chat.say("And now?")[-1] == "Still xylophone."
        assert "3 turn(s)" in chat.say("/info")[0]


@requirement("chat:resume")
def test_a_chat_in_which_nothing_was_said_leaves_no_conversation(shell: Shell) -> None:
    with open_chat(shell, *fake()) as chat:
        chat.at_prompt()
        chat.leave()
    with shell.at_terminal("chat", "--continue") as screen:
        assert screen.end() == 2
    assert "no conversation was begun in this directory" in screen.shown


@requirement("chat:failures")
def test_a_turn_that_fails_ends_no_chat(shell: Shell) -> None:
    turns = "turns:\n- - error: {code: provider_error, message: Slow down.}\n- - text: Better.\n"
    with open_chat(shell, *script(shell, turns)) as chat:
        chat.at_prompt()
        assert chat.say("Go.") == ["harness: Slow down."]
        assert chat.say("Again.") == ["Better."]


@requirement("chat:failures")
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--connector", "nobody"), "harness: unknown connector 'nobody'"),
        (("--connector", "fake", "-O", "x=1"), "harness: connector option 'x' of 'fake'"),
        (("--resume", "c_none"), "harness: no conversation 'c_none'"),
        (("--connector", "fake", "--tools", "none.py"), "none.py"),
    ],
)
def test_a_chat_that_cannot_begin_says_why(shell: Shell, arguments: tuple[str, ...], told: str) -> None:
    with shell.at_terminal("chat", *arguments) as screen:
        assert screen.end() in (1, 2)
    assert told in screen.shown
    assert "Traceback" not in screen.shown


@requirement("chat:failures")
def test_a_server_that_goes_away_is_told_and_the_chat_stays(shell: Shell) -> None:
    with shell.started("serve", *fake(), "-o", "json") as server:
        assert server.stdout is not None
        url = re.findall(r"http://[\d.:]+", server.stdout.readline())[0]
        with open_chat(shell, "--url", url) as chat:
            chat.at_prompt()
            assert chat.say("hello") == ["hello"]
            server.kill()
            server.wait()
            assert f"the server at '{url}' is gone" in chat.say("hello?")[-1]
            chat.leave()


@requirement("chat:piped")
def test_without_a_terminal_every_line_is_a_message_and_nobody_is_asked(shell: Shell) -> None:
    done = shell.run("chat", *fake(), stdin="one\n/cost\ntwo\\\nthree\n")
    assert (done.code, done.out) == (0, "one\ntwo\nthree\n")
    assert "usage: 1 input tokens" in done.err
    done = shell.run("chat", *fake(APPROVAL, {"text": "heard {{results.a}}"}), stdin="Go.\n")
    assert (done.code, done.out) == (0, "heard deny\n")


@requirement("chat:resume")
def test_a_turn_that_a_killed_chat_left_goes_on_before_the_first_prompt(shell: Shell) -> None:
    os.mkfifo(shell.directory / "gate")
    options = (*fake(), "-O", "resume=exact", "--tools", "tools.py:gate")
    with open_chat(shell, *options) as chat:
        conversation_id = chat.at_prompt().split()[3]
        chat.screen.type("call gate\n")
        chat.until("→ gate()")
        chat.screen.process.kill()
        chat.screen.process.wait()
    with open_chat(shell, "--resume", conversation_id, "--tools", "tools.py:gate") as chat:
        chat.until("→ gate()")
        (shell.directory / "gate").write_text("open")
        assert chat.at_prompt().splitlines()[-1] == "gate: open"
        assert chat.say("hello") == ["hello"]
