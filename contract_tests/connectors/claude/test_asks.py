"""What the CLI asks of the host, line by line: approvals, questions, and the answers to them."""

import json
from typing import Any

import pytest

from contract_tests.connectors.claude import wire
from contract_tests.connectors.claude.wire import PREFIX, QUESTION, Wire
from contract_tests.requirements import requirement
from harness.contract import Answer, HostResponse, TextBlock
from harness.turn.events import RequestWithdrawn, TurnEnded

TOUCH = {"command": "touch one", "description": "lab"}
RULES = {
    "type": "addRules",
    "rules": [{"toolName": "Bash", "ruleContent": "touch one"}],
    "behavior": "allow",
    "destination": "localSettings",
}
SUGGESTIONS = [
    RULES,
    {"type": "addDirectories", "directories": ["/work"], "destination": "session"},
    {"type": "setMode", "mode": "acceptEdits", "destination": "session"},
]
ABORTED = {"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools"}


def asking(name: str = "Bash", arguments: Any = TOUCH, *, written: str | None = None, **fields: Any) -> Wire:
    """The model has written the call `t1`, and the CLI asks whether it may run."""
    wire_ = Wire(internal_tools=["Bash", "Write", "AskUserQuestion"])
    text = json.dumps(arguments) if written is None else written
    wire_.feed(wire.message_start("m1"), *wire.call_block(0, "t1", name, text))
    wire_.feed(wire.can_use_tool("U1", "t1", name, arguments, **fields))
    return wire_


def answer(wire_: Wire, **fields: Any) -> dict[str, Any]:
    """What the CLI is told when the host answers the last request so."""
    request = wire_.requests[-1]
    wire_.protocol.respond(request, HostResponse(request_id=request.request_id, **fields))
    [(request_id, told)] = wire_.responses().items()
    assert request_id == request.peer_request_id
    return told


# --- approvals -------------------------------------------------------------------------------------------------------


@requirement("claude:approvals:routed")
def test_an_approval_names_the_call_it_gates_and_what_the_cli_offers() -> None:
    [request] = asking(
        permission_suggestions=SUGGESTIONS, description="lab", blocked_path="/work/one", display_name="Bash"
    ).requests
    assert (request.kind, request.call_id, request.call_id_source, request.peer_request_id) == (
        "approval",
        "t1",
        "exact",
        "U1",
    )
    assert (request.tool_name, request.order, request.title, request.description, request.target) == (
        "Bash",
        0,
        "Bash",
        "lab",
        "/work/one",
    )
    assert json.loads(request.arguments_json or "") == TOUCH
    assert [(option.id, option.kind) for option in request.options] == [
        ("allow_once", "allow_once"),
        ("allow_always", "allow_always"),
        ("accept_edits", "other"),
        ("deny", "deny"),
        ("deny_and_interrupt", "deny_and_interrupt"),
    ]
    assert "Bash(touch one)" in (request.options[1].description or "")


@requirement("claude:approvals:routed")
def test_the_arguments_of_an_approval_are_the_models_own_text() -> None:
    exact = '{"command": "head -c 9007199254740993", "n": 9007199254740993}'
    [request] = asking(arguments={"command": "head -c 9007199254740993", "n": 2**53}, written=exact).requests
    assert request.arguments_json == exact


@requirement("claude:approvals:answers")
def test_allowing_once_gives_the_input_back_and_no_rule() -> None:
    told = answer(asking(permission_suggestions=SUGGESTIONS), selected_option="allow_once")
    assert told == {"behavior": "allow", "updatedInput": TOUCH}


@requirement("claude:approvals:no-files")
def test_allowing_always_adds_the_suggested_rules_to_the_session_and_nothing_else() -> None:
    told = answer(asking(permission_suggestions=SUGGESTIONS), selected_option="allow_always")
    assert told["updatedPermissions"] == [{**RULES, "destination": "session"}]


@requirement("claude:approvals:answers")
def test_a_mode_that_lets_more_through_is_an_option_of_its_own_and_never_allow_always() -> None:
    wire_ = asking("Write", {"file_path": "/work/x", "content": ""}, permission_suggestions=SUGGESTIONS[2:])
    assert [o.id for o in wire_.requests[0].options] == ["allow_once", "accept_edits", "deny", "deny_and_interrupt"]
    told = answer(wire_, selected_option="accept_edits")
    assert told["updatedPermissions"] == [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}]


@requirement("claude:approvals:answers")
@pytest.mark.parametrize(
    ("response", "told"),
    [
        (
            {"selected_option": "deny", "reason": "Not on a Sunday."},
            {"behavior": "deny", "message": "Not on a Sunday.", "interrupt": False},
        ),
        (
            {"selected_option": "deny_and_interrupt", "reason": "Stop."},
            {"behavior": "deny", "message": "Stop.", "interrupt": True},
        ),
        (
            {"selected_option": "deny"},
            {"behavior": "deny", "message": "The host denied this tool use.", "interrupt": False},
        ),
        (
            {"selected_option": "allow_once", "updated_arguments_json": '{"command":"ls"}'},
            {"behavior": "allow", "updatedInput": {"command": "ls"}},
        ),
    ],
)
def test_denials_carry_their_reason_and_changed_arguments_replace_the_input(
    response: dict[str, Any], told: dict[str, Any]
) -> None:
    assert answer(asking(), **response) == told


@requirement("claude:approvals:own-tools")
def test_the_hosts_own_tools_are_never_asked_about() -> None:
    wire_ = Wire()
    wire_.feed(wire.can_use_tool("U1", "t1", PREFIX + "look", {"a": 1}))
    assert wire_.requests == []
    assert wire_.responses()["U1"] == {"behavior": "allow", "updatedInput": {"a": 1}}


@requirement("claude:approvals:routed")
def test_several_approvals_wait_at_once_and_are_answered_in_any_order() -> None:
    wire_ = Wire(internal_tools=["Bash"])
    blocks = [*wire.call_block(0, "t1", "Bash", "{}"), *wire.call_block(1, "t2", "Bash", "{}")]
    wire_.feed(wire.message_start("m1"), *blocks)
    wire_.feed(wire.can_use_tool("U1", "t1", "Bash", {}), wire.can_use_tool("U2", "t2", "Bash", {}))
    first, second = wire_.requests
    assert (first.call_id, second.call_id) == ("t1", "t2")
    wire_.protocol.respond(second, HostResponse(request_id="a2", selected_option="allow_once"))
    wire_.protocol.respond(first, HostResponse(request_id="a1", selected_option="deny"))
    assert {key: told["behavior"] for key, told in wire_.responses().items()} == {"U2": "allow", "U1": "deny"}


@requirement("R-H5")
def test_an_approval_that_the_cli_withdraws_is_withdrawn_and_a_late_answer_goes_nowhere() -> None:
    wire_ = asking()
    [request] = wire_.requests
    assert wire_.feed({"type": "control_cancel_request", "request_id": "U1"}) == [RequestWithdrawn("U1")]
    wire_.protocol.respond(request, HostResponse(request_id="a1", selected_option="allow_once"))
    assert wire_.sent() == []


@requirement("R-H1")
def test_after_an_interrupt_no_approval_is_raised_and_all_are_denied_with_the_turn() -> None:
    wire_ = asking()
    wire_.protocol.interrupt()
    wire_.sent()
    assert wire_.feed(wire.can_use_tool("U2", "t2", "Bash", {}), wire.elicitation("U3")) == []
    assert wire_.sent() == []
    events = wire_.feed(wire.result(**ABORTED), wire.state("idle"))
    assert events[-1] == TurnEnded("cancelled")
    told = wire_.responses()
    assert [told["U1"]["behavior"], told["U2"]["behavior"], told["U3"]] == ["deny", "deny", {"action": "cancel"}]


@requirement("claude:approvals:answers")
def test_a_denial_that_stops_ends_the_turn_as_cancelled() -> None:
    wire_ = asking()
    answer(wire_, selected_option="deny_and_interrupt")
    assert wire_.feed(wire.result(**ABORTED), wire.state("idle"))[-1] == TurnEnded("cancelled")


# --- questions -------------------------------------------------------------------------------------------------------

SIZES = {
    "question": "Which sizes?",
    "header": "Size",
    "multiSelect": True,
    "options": [{"label": "S", "description": "small"}, {"label": "L"}],
}
ASKED = {"questions": [QUESTION, SIZES]}


def asking_user() -> Wire:
    return asking("AskUserQuestion", ASKED, requires_user_interaction=True)


@requirement("claude:questions")
def test_a_question_to_the_user_is_a_request_with_all_its_questions() -> None:
    [request] = asking_user().requests
    assert (request.kind, request.call_id, request.options) == ("user_question", "t1", [])
    color, size = request.questions
    assert (color.id, color.header, color.text, color.multi_select, color.allow_free_text) == (
        "q1",
        "Color",
        "Which color?",
        False,
        True,
    )
    assert [(option.id, option.label, option.description) for option in color.options] == [
        ("Red", "Red", "warm"),
        ("Blue", "Blue", "cold"),
    ]
    assert size.multi_select


@requirement("claude:questions")
@pytest.mark.parametrize(
    ("answers", "told"),
    [
        ([("q1", ["Blue"], None), ("q2", ["S", "L"], None)], {"Which color?": "Blue", "Which sizes?": "S, L"}),
        ([("q1", [], "A deep green")], {"Which color?": "A deep green"}),
        ([("q2", ["S"], "and M")], {"Which sizes?": "S, and M"}),
    ],
)
def test_answers_go_back_under_the_questions_own_text(
    answers: list[tuple[str, list[str], str | None]], told: dict[str, str]
) -> None:
    given = [Answer(question_id=id_, selected=selected, text=text) for id_, selected, text in answers]
    assert answer(asking_user(), answers=given) == {"behavior": "allow", "updatedInput": {**ASKED, "answers": told}}


@requirement("claude:questions")
def test_a_text_without_a_question_answers_the_first() -> None:
    told = answer(asking_user(), content=[TextBlock(text="Whatever you like.")])
    assert told["updatedInput"]["answers"] == {"Which color?": "Whatever you like."}


@requirement("R-D11")
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_declined_question_is_refused_with_the_reason_and_never_answered(action: str) -> None:
    told = answer(asking_user(), action=action, reason="Ask me later.")
    assert told == {"behavior": "deny", "message": "Ask me later.", "interrupt": False}


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Name", "description": "How you sign"},
        "age": {"type": "integer"},
        "vip": {"type": "boolean"},
        "tier": {"type": "string", "enum": ["g", "s"], "enumNames": ["Gold", "Silver"]},
        "days": {"type": "array", "items": {"enum": ["mon", "tue"]}},
    },
    "required": ["name"],
}


def eliciting(schema: Any = FORM, **fields: Any) -> Wire:
    wire_ = Wire()
    wire_.feed(wire.elicitation("U1", schema, **fields))
    return wire_


@requirement("claude:questions:elicitation")
def test_a_form_of_a_delegated_server_is_one_question_per_property_with_its_schema() -> None:
    [request] = eliciting().requests
    assert (request.kind, request.call_id, request.description) == ("user_question", None, "Your name?")
    assert "'books'" in (request.title or "")
    assert json.loads(request.answer_schema_json or "") == FORM
    assert [(q.id, q.text, q.allow_free_text, q.multi_select) for q in request.questions] == [
        ("name", "How you sign", True, False),
        ("age", "age", True, False),
        ("vip", "vip", False, False),
        ("tier", "tier", False, False),
        ("days", "days", False, True),
    ]
    assert [(option.id, option.label) for option in request.questions[3].options] == [("g", "Gold"), ("s", "Silver")]


@requirement("claude:questions:elicitation")
def test_answers_to_a_form_have_the_types_that_its_schema_asks_for() -> None:
    given = [
        Answer(question_id="name", text="Ada"),
        Answer(question_id="age", text="36"),
        Answer(question_id="vip", selected=["true"]),
        Answer(question_id="tier", selected=["g"]),
        Answer(question_id="days", selected=["mon", "tue"]),
    ]
    content = {"name": "Ada", "age": 36, "vip": True, "tier": "g", "days": ["mon", "tue"]}
    assert answer(eliciting(), answers=given) == {"action": "accept", "content": content}
    assert answer(eliciting(), structured_content_json='{"name":"Ada","x":null}') == {
        "action": "accept",
        "content": {"name": "Ada", "x": None},
    }


@requirement("claude:questions:elicitation")
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refused_form_is_refused_in_the_protocols_words(action: str) -> None:
    assert answer(eliciting(), action=action) == {"action": action}


@requirement("claude:questions:elicitation")
def test_an_address_to_visit_is_a_question_with_a_target() -> None:
    wire_ = eliciting(None, mode="url", url="https://example.invalid/x", message="Open it")
    [request] = wire_.requests
    assert (request.target, request.questions, request.answer_schema_json) == ("https://example.invalid/x", [], None)
    assert answer(wire_, action="accept") == {"action": "accept"}
