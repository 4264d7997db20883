"""What a person reads, line by line."""

from collections.abc import Sequence
from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.cli.activity import Activity, Style, call_text, duration, usage_text
from harness.cli.terminal import printable
from harness.contract import (
    HostRequest,
    InternalToolFinished,
    InternalToolStarted,
    Item,
    Notice,
    Plan,
    PlanEntry,
    Question,
    RequestOpened,
    RequestResolved,
    TextDelta,
    UsageInfo,
)


def told(*items: Item, full: bool = False) -> list[tuple[Style, str]]:
    activity = Activity(full=full)
    return [(line.style, line.text) for item in items for line in activity.lines(item)]


def opened(request_id: str = "r", at: int = 0, **request: Any) -> RequestOpened:
    described = {"kind": "tool_call", "tool_name": "get_weather", "arguments_json": '{"city": "Oslo"}', **request}
    return RequestOpened(sequence_no=1, at=at, request=HostRequest(request_id=request_id, **described))


def resolved(outcome: str, at: int = 1500, *, request_id: str = "r", **more: Any) -> RequestResolved:
    return RequestResolved(sequence_no=2, at=at, request_id=request_id, outcome=outcome, **more)


@requirement("cli:run:activity")
@pytest.mark.parametrize(
    ("end", "line"),
    [
        (resolved("answered", answered_by="host"), (Style.GOOD, "answered by the host in 1.5 s")),
        (
            resolved("answered", answered_by="host", is_error=True),
            (Style.BAD, "failed, answered by the host in 1.5 s"),
        ),
        (resolved("expired", answered_by="deadline"), (Style.BAD, "expired by the deadline after 1.5 s")),
        (resolved("withdrawn", answered_by="peer"), (Style.BAD, "withdrawn by the peer after 1.5 s")),
        (resolved("cancelled"), (Style.BAD, "cancelled after 1.5 s")),
    ],
)
def test_a_call_says_its_arguments_who_answered_and_how_long_it_took(
    end: RequestResolved, line: tuple[Style, str]
) -> None:
    [asked, answered] = told(opened(), end)
    assert asked == (Style.CALL, '→ get_weather(city="Oslo")')
    mark = "✓" if line[0] == Style.GOOD else "✗"
    assert answered == (line[0], f'{mark} get_weather(city="Oslo"): {line[1]}')


def test_identical_calls_are_kept_apart() -> None:
    lines = told(
        opened("a", 0),
        opened("b", 100),
        resolved("answered", 300, request_id="b"),
        resolved("answered", 400, request_id="a"),
    )
    assert [text.rpartition(" in ")[2] for _, text in lines[2:]] == ["200 ms", "400 ms"]


def test_approvals_questions_and_the_peers_own_tools_say_what_they_are() -> None:
    question = [Question(id="q", text="Which one?")]
    lines = told(
        opened("a", kind="approval", tool_name="Bash", arguments_json='{"command": "ls"}'),
        resolved("answered", 20, request_id="a", answered_by="policy"),
        opened("q", kind="user_question", tool_name=None, arguments_json=None, questions=question),
        resolved("refused", 30, request_id="q", answered_by="host"),
        InternalToolStarted(sequence_no=3, at=0, call_id="c", tool_name="Read", arguments_json='{"file": "x"}'),
        InternalToolFinished(sequence_no=4, at=40, call_id="c", result="ok"),
    )
    assert [text for _, text in lines] == [
        '→ approval of Bash(command="ls")',
        '✓ approval of Bash(command="ls"): allowed by the policy in 20 ms',
        "→ question: Which one?",
        "✗ question: Which one?: refused by the host after 30 ms",
        '→ Read(file="x"), run by the peer itself',
        '✓ Read(file="x"): ok after 40 ms',
    ]


def test_notices_and_plans_are_told_and_text_is_not() -> None:
    plan = [PlanEntry(text="look", status="completed"), PlanEntry(text="act"), PlanEntry(text="rest", status="new")]
    items: Sequence[Item] = [
        Notice(sequence_no=1, at=0, code="rate_limit", text="slow down"),
        Plan(sequence_no=2, at=0, entries=plan),
        TextDelta(sequence_no=3, at=0, text="Hello"),
    ]
    texts = [text for _, text in told(*items)]
    assert texts == ["· rate limit: slow down", "  [x] look", "  [ ] act", "  [ ] rest"]


@requirement("cli:run:arguments-cut")
def test_long_arguments_are_cut_unless_they_are_wanted_in_full() -> None:
    long = f'{{"text": "{"x" * 400}"}}'
    [(_, cut)] = told(opened(arguments_json=long))
    [(_, whole)] = told(opened(arguments_json=long), full=True)
    assert len(cut) == len("→ get_weather(") + 300 + len("…)")
    assert "x" * 400 in whole


def test_arguments_that_are_no_object_are_shown_as_they_came() -> None:
    assert call_text("f", "[1]") == "f([1])"
    assert call_text("f", "{broken") == "f({broken)"
    assert call_text("f", None) == "f()"


def test_times_and_figures_are_short() -> None:
    assert [duration(ms) for ms in (7, 1500, 61_000)] == ["7 ms", "1.5 s", "1 min 1 s"]
    usage = UsageInfo(input_tokens=10, output_tokens=0, cost_usd=0.25)
    assert usage_text(usage) == "usage: 10 input tokens, 0 output tokens, 0.2500 USD"
    assert usage_text(UsageInfo()) == usage_text(None) == "usage: not reported"


@requirement("cli:terminal:neutral")
def test_what_a_terminal_would_obey_becomes_visible() -> None:
    assert printable("a\tb\r\nc\n") == "a\tb\nc\n"
    assert printable("\x1b[2J\x07\x7f\r") == "␛[2J␇␡␍"
    assert printable("\x9b31m\u202eoslo") == "<U+009B>31m<U+202E>oslo"
    assert printable("Ærøskøbing 🚲 e\u0301") == "Ærøskøbing 🚲 e\u0301"
