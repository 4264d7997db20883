"""Answers are judged against what was asked: options by id or kind, questions by their own rules."""

from __future__ import annotations

from typing import Any

import pytest

from contract_tests.requirements import requirement
from harness.contract import (
    Answer,
    HostRequest,
    HostResponse,
    OptionKind,
    Question,
    QuestionOption,
    RequestKind,
    RequestOption,
    TextBlock,
)
from harness.errors import InvalidArgument
from harness.turn import answers


def approval(*options: RequestOption) -> HostRequest:
    return HostRequest(request_id="a1", kind=RequestKind.APPROVAL, options=list(options), expires_at=2000)


def option(id_: str, kind: str) -> RequestOption:
    return RequestOption(id=id_, kind=kind)


YES, ALWAYS, ALWAYS_HERE = option("yes", "allow_once"), option("all", "allow_always"), option("here", "allow_always")
NO, STOP, OTHER = option("no", "deny"), option("stop", "deny_and_interrupt"), option("plan", "other")

FRUIT = [QuestionOption(id="apple", label="Apple"), QuestionOption(id="pear", label="Pear")]
ONE = Question(id="one", text="Which?", options=FRUIT)
MANY = Question(id="many", text="Which ones?", options=FRUIT, multi_select=True, allow_free_text=True)
FREE = Question(id="free", text="Why?")
QUESTIONS = HostRequest(request_id="q1", kind=RequestKind.USER_QUESTION, questions=[ONE, MANY, FREE])
CALL = HostRequest(request_id="c1", kind=RequestKind.TOOL_CALL, tool_name="look")


@requirement("turn:answers:options")
@pytest.mark.parametrize(
    ("selected", "outcome"),
    [
        ("yes", "answered"),
        ("allow_once", "answered"),
        ("all", "answered"),
        ("plan", "answered"),
        ("no", "refused"),
        ("deny", "refused"),
        ("deny_and_interrupt", "refused"),
    ],
)
def test_an_option_is_chosen_by_its_id_or_by_a_kind_that_one_option_has(selected: str, outcome: str) -> None:
    asked = approval(YES, ALWAYS, ALWAYS_HERE, NO, STOP, OTHER)
    assert answers.judge(asked, HostResponse(request_id="a1", selected_option=selected)) == outcome


@requirement("turn:answers:options")
@pytest.mark.parametrize("selected", ["allow_always", "maybe", ""])
def test_a_kind_that_two_options_have_and_an_option_that_was_not_offered_are_refused(selected: str) -> None:
    asked = approval(YES, ALWAYS, ALWAYS_HERE, NO)
    with pytest.raises(InvalidArgument, match=f"option '{selected}' was not offered by 'a1'; offered: 'yes', 'all'"):
        answers.judge(asked, HostResponse(request_id="a1", selected_option=selected))


@requirement("turn:answers:options")
def test_an_id_is_meant_before_a_kind() -> None:
    asked = approval(option("deny", "allow_once"), NO)
    assert answers.judge(asked, HostResponse(request_id="a1", selected_option="deny")) == "answered"


@requirement("turn:answers:options")
def test_an_approval_is_not_answered_by_content() -> None:
    with pytest.raises(InvalidArgument, match="approval 'a1' needs 'selected_option', one of: 'yes', 'no'"):
        answers.judge(approval(YES, NO), HostResponse(request_id="a1", content=[TextBlock(text="ok")]))


@requirement("turn:answers:questions")
@pytest.mark.parametrize(
    "given",
    [
        [Answer(question_id="one", selected=["apple"])],
        [Answer(question_id="many", selected=["apple", "pear"], text="and plums")],
        [Answer(question_id="free", text="because")],
        [Answer(question_id="one", selected=["pear"]), Answer(question_id="free", text="so")],
    ],
)
def test_a_question_takes_what_it_offers(given: list[Answer]) -> None:
    assert answers.judge(QUESTIONS, HostResponse(request_id="q1", action="accept", answers=given)) == "answered"


@requirement("turn:answers:questions")
@pytest.mark.parametrize(
    ("response", "message"),
    [
        ({"answers": [Answer(question_id="two")]}, "'q1' has no question 'two'"),
        ({"answers": [Answer(question_id="one", selected=["plum"])]}, "question 'one' does not offer 'plum'"),
        (
            {"answers": [Answer(question_id="one", selected=["apple", "pear"])]},
            "question 'one' takes one option, not 2",
        ),
        ({"answers": [Answer(question_id="one", text="plum")]}, "question 'one' takes no free text"),
        ({"action": "accept"}, "question 'q1' needs 'answers', or action 'decline'"),
        ({"structured_content_json": "{"}, "'structured_content_json' of 'q1' is not JSON"),
    ],
)
def test_a_question_refuses_what_it_does_not_offer(response: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgument, match=message):
        answers.judge(QUESTIONS, HostResponse(request_id="q1", **response))


@requirement("turn:answers:questions")
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_question_may_be_declined(action: str) -> None:
    assert answers.judge(QUESTIONS, HostResponse(request_id="q1", action=action)) == "refused"


def test_an_error_result_is_an_answer() -> None:
    assert answers.judge(CALL, HostResponse(request_id="c1", is_error=True)) == "answered"


def test_a_tool_call_is_not_answered_by_an_option() -> None:
    with pytest.raises(InvalidArgument, match="'c1' is a tool call: answer it with 'content'"):
        answers.judge(CALL, HostResponse(request_id="c1", selected_option="yes"))


def test_arguments_that_are_not_json_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="'updated_arguments_json' of 'a1' is not JSON"):
        answers.judge(
            approval(YES), HostResponse(request_id="a1", selected_option="yes", updated_arguments_json="{oops")
        )


@requirement("turn:expiry:one-error-result")
@pytest.mark.parametrize(
    ("options", "selected"), [([YES, STOP, NO], "no"), ([YES, STOP], "stop"), ([YES, ALWAYS], None), ([], None)]
)
def test_nobodys_answer_to_an_approval_is_the_mildest_refusal_that_is_offered(
    options: list[RequestOption], selected: str | None
) -> None:
    asked = approval(*options)
    for made_up in (answers.expired(asked), answers.cancelled(asked)):
        assert made_up.selected_option == selected
        assert made_up.reason
        assert not any(
            one.kind in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS)
            for one in asked.options
            if one.id == made_up.selected_option
        )
