"""`harness run` at a terminal: what a person sees and types."""

from __future__ import annotations

import re

import pytest

from contract_tests.cli.command import Shell, fake
from contract_tests.requirements import requirement

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
APPROVAL = {
    "approval": {"tool": "Bash", "arguments": {"command": "rm -rf /tmp/x\x1b[8m"}, "title": "Run a command", "id": "a"}
}


def seen(shown: str) -> list[str]:
    """The lines on the screen, without colours."""
    return ESCAPE.sub("", shown).replace("\r\n", "\n").splitlines()


@requirement("cli:terminal:live", "cli:run:activity")
def test_text_streams_with_the_activity_beside_it(shell: Shell) -> None:
    steps = (
        {"text": ["I ", "look."]},
        {"calls": [{"name": "say", "arguments": {"text": "hi"}, "id": "s"}]},
        {"text": ["It is "]},
        {"calls": [{"name": "forever"}]},
    )
    with shell.at_terminal("run", "Go.", *fake(*steps), "--tools", "tools.py", "--show-usage") as screen:
        # the tool never returns: this is seen while the turn goes on
        screen.until("forever()")
        lines = seen(screen.shown)
        assert lines[:2] == ["I look.", '→ say(text="hi")']
        assert re.fullmatch(r'✓ say\(text="hi"\): answered by the host in \d+ ms', lines[2])
        assert lines[3:] == ["It is ", "→ forever()"]
        assert "\x1b[36m" in screen.shown
        screen.type("\x03")
        assert screen.end() == 130
    assert seen(screen.shown)[-2:] == ["usage: not reported", "harness: The turn was cancelled."]


@requirement("cli:terminal:neutral")
def test_nothing_that_is_said_is_obeyed(shell: Shell) -> None:
    wild = "a\x1b[2J\x1b]0;title\x07\r\x9b31mz\u202e"
    call = {"calls": [{"name": f"t{wild}", "arguments_json": f'{{"x": "{wild}"'}]}
    steps = (
        {"thinking": wild},
        {"notice": {"code": "retry", "text": wild}},
        call,
        {"text": [wild, "\n"]},
        {"error": {"code": "provider_error", "message": wild}},
    )
    with shell.at_terminal("run", "Go.", *fake(*steps), "--show-thinking") as screen:
        assert screen.end() == 1
    rest = ESCAPE.sub("", screen.shown).replace("\r\n", "")
    assert rest.count("␛[2J␛]0;title␇␍<U+009B>31mz<U+202E>") >= 5
    assert [char for char in rest if not char.isprintable() and char != "\n"] == []


@requirement("cli:terminal:plain")
@pytest.mark.parametrize(("arguments", "environment"), [(("--plain",), {}), ((), {"NO_COLOR": "1"})])
def test_plain_has_no_escape_sequences_and_the_answer_at_the_end(
    shell: Shell, arguments: tuple[str, ...], environment: dict[str, str]
) -> None:
    steps = ({"text": "I look.\n"}, {"calls": [{"name": "say", "arguments": {"text": "hi"}}]}, {"message": "Done."})
    options = (*fake(*steps), "--tools", "tools.py", *arguments)
    with shell.at_terminal("run", "Go.", *options, **environment) as screen:
        assert screen.end() == 0
    assert "\x1b" not in screen.shown
    lines = seen(screen.shown)
    assert lines[0] == '→ say(text="hi")'
    assert lines[-1] == "Done."


@requirement("cli:run:approve")
def test_a_person_refuses_with_a_reason_and_answers_questions(shell: Shell) -> None:
    options = [{"id": "r", "label": "Red"}, {"id": "b", "label": "Blue", "description": "like the sky"}]
    questions = [
        {"id": "colour", "header": "Colour", "text": "Which?", "options": options},
        {"id": "more", "text": "Which ones?", "options": options, "multi_select": True, "allow_free_text": True},
        {"id": "pin", "text": "PIN?", "allow_free_text": True, "secret": True},
    ]
    steps = (APPROVAL, {"question": {"id": "q", "questions": questions}}, {"text": "{{results.a}}, {{results.q}}"})
    with shell.at_terminal("run", "Go.", *fake(*steps)) as screen:
        screen.until("(a reason may follow): ")
        asked = seen(screen.shown)
        assert '? Run a command: Bash(command="rm -rf /tmp/x\\u001b[8m")' in asked
        assert [line for line in asked if re.match(r"  \d", line)] == [
            "  1  allow once",
            "  2  allow always",
            "  3  deny",
        ]
        screen.type("what\n")
        screen.until("(a reason may follow): ")
        screen.type("n too dangerous\n")
        screen.until("a number: ")
        assert "  2  Blue: like the sky" in seen(screen.shown)
        screen.type("2\n")
        screen.until("or your own words: ")
        screen.type("1, 2\n")
        screen.until("your answer: ")
        screen.type("1234\n")
        assert screen.end() == 0
    assert "deny, b; r, b; 1234" in seen(screen.shown)[-1]
    assert screen.shown.count("1234") == 1  # the peer's echo of it, not the keyboard's


@requirement("cli:run:approve")
@pytest.mark.parametrize(("keys", "heard"), [("y\n", "allow_once"), ("2\n", "allow_always"), ("\x04", "deny")])
def test_a_person_allows_or_leaves(shell: Shell, keys: str, heard: str) -> None:
    with shell.at_terminal("run", "Go.", *fake(APPROVAL, {"text": "heard {{results.a}}"})) as screen:
        screen.until("(a reason may follow): ")
        screen.type(keys)
        assert screen.end() == 0
    assert seen(screen.shown)[-1] == f"heard {heard}"


@requirement("cli:run:approve")
def test_a_question_that_is_withdrawn_waits_for_nobody(shell: Shell) -> None:
    raised = {**APPROVAL, "wait": False}
    with shell.at_terminal("run", "Go.", *fake(raised, {"delay_seconds": 0.2}, {"withdraw": "a"})) as screen:
        assert screen.end() == 0
    assert any("withdrawn by the peer" in line for line in seen(screen.shown))


@requirement("cli:run:prompt")
def test_without_a_prompt_nobody_waits_for_the_keyboard(shell: Shell) -> None:
    with shell.at_terminal("run", *fake()) as screen:
        assert screen.end() == 2
    assert seen(screen.shown) == ["harness: no prompt: give it as an argument, or on stdin"]
