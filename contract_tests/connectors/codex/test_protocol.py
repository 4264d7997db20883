"""The app-server's wire without a process."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.codex.thread import dynamic_tools, thread_config, thread_params
from contract_tests.connectors.codex.wire import Wire, asked, completed, item, notified, said, shown, tool_call, used
from contract_tests.requirements import requirement
from harness.contract import (
    Answer,
    ConversationOptions,
    HostResponse,
    ImageBlock,
    Label,
    Limits,
    ResourceLinkBlock,
    TextBlock,
    ToolDescriptor,
    ToolSourceDescriptor,
    TurnOptions,
)
from harness.contract.options import SystemPromptMode
from harness.errors import ConnectorUnavailable, ContentNotSupported, HarnessError, InvalidArgument, NotSupported
from harness.turn.events import RequestWithdrawn, TurnEnded, TurnFailed, UsageReported

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.text(),
    st.lists(st.integers()),
    st.dictionaries(
        st.sampled_from(["id", "type", "text", "total", "last", "message", "status"]), st.text() | st.none()
    ),
)


def answered(wire: Wire, number: int = 0, **fields: Any) -> dict[str, Any]:
    """Answers the request with this number and gives what Codex is told."""
    request = wire.requests[number]
    wire.protocol.respond(request, HostResponse(request_id=request.request_id, **fields))
    return wire.sent()[0]


def ended(wire: Wire) -> TurnEnded | TurnFailed:
    [end] = [event for event in wire.events if isinstance(event, TurnEnded | TurnFailed)]
    return end


def error(wire: Wire) -> HarnessError:
    end = ended(wire)
    assert isinstance(end, TurnFailed)
    return end.error


# --- start -----------------------------------------------------------------------------------------------------------


@requirement("codex:strict-config")
@pytest.mark.parametrize("summary", ["Invalid configuration; using defaults.", "`feature.x` is ignored"])
def test_codex_must_not_go_on_with_another_configuration(summary: str) -> None:
    with pytest.raises(ConnectorUnavailable, match="does not take its configuration"):
        Wire(begins=False).feed({"method": "configWarning", "params": {"summary": summary, "details": None}})


@requirement("codex:strict-config")
def test_a_warning_about_something_else_is_no_reason_not_to_start() -> None:
    wire = Wire(begins=False)
    wire.feed({"method": "configWarning", "params": {"summary": "Codex could not find bubblewrap on PATH."}})
    wire.open()
    assert wire.protocol.thread is not None


@requirement("codex:tools-closed", "R-E5")
def test_every_tool_of_its_own_is_closed_unless_it_was_asked_for() -> None:
    closed = thread_config([], [])
    assert closed["web_search"] == "disabled"
    assert set(closed["features"].values()) == {False}
    opened = thread_config(["exec_command", "request_user_input"], [])
    on = {name for name, value in opened["features"].items() if value}
    assert on == {"shell_tool", "unified_exec", "default_mode_request_user_input"}


@requirement("codex:tools-closed")
def test_a_caller_without_a_prompt_gets_an_empty_one_and_everything_is_asked_for() -> None:
    params = thread_params(ConversationOptions(), "/work", "workspace-write", [])
    assert (params["baseInstructions"], params["approvalPolicy"], params["sandbox"]) == ("", "untrusted", "read-only")
    appended = ConversationOptions(
        system_prompt="Be brief.", system_prompt_mode=SystemPromptMode.APPEND, internal_tools=["exec_command"]
    )
    params = thread_params(appended, "/work", "workspace-write", [])
    assert "baseInstructions" not in params
    assert (params["developerInstructions"], params["sandbox"]) == ("Be brief.", "workspace-write")


@requirement("R-I2", "R-I4")
def test_schemas_pass_as_they_are_and_a_name_that_codex_keeps_is_refused() -> None:
    schema = '{"type":"object","$defs":{"p":{"anyOf":[{"type":"string"}]}},"properties":{"p":{"$ref":"#/$defs/p"}}}'
    mapped = dynamic_tools([ToolDescriptor(name="a", input_schema_json=schema), ToolDescriptor(name="b")])
    assert json.dumps(mapped.specs[0]["inputSchema"], separators=(",", ":")) == schema
    for name in ("mcp__x", "exec_command"):
        with pytest.raises(InvalidArgument, match=f"'{name}'"):
            dynamic_tools([ToolDescriptor(name=name)])
    with pytest.raises(InvalidArgument, match="tool 'c'"):
        dynamic_tools([ToolDescriptor(name="c", input_schema_json='{"type":"array"}')])


@requirement("codex:delegation")
def test_tool_sources_become_servers_and_their_secrets_only_where_they_are_shared() -> None:
    source = ToolSourceDescriptor(name="s", kind="mcp_stdio", command="run", args=["-x"], tool_names=["a"])
    http = ToolSourceDescriptor(
        name="h", kind="mcp_http", url="http://x", headers=[Label(name="K", value="v")], share_secrets=True
    )
    servers = thread_config([], [source, http])["mcp_servers"]
    assert (servers["s"]["command"], servers["s"]["args"], servers["s"]["enabled_tools"]) == ("run", ["-x"], ["a"])
    assert servers["h"]["http_headers"] == {"K": "v"}
    with pytest.raises(NotSupported, match="'h'"):
        thread_config([], [http.model_copy(update={"share_secrets": False})])


# --- a turn ----------------------------------------------------------------------------------------------------------


@requirement("codex:turn")
def test_what_the_model_says_before_it_acts_is_commentary_and_what_it_says_last_is_final() -> None:
    wire = Wire()
    wire.feed(*said("m1", "I ", "look."))
    wire.feed(item("started", "dynamicToolCall", "c1", tool="look", arguments={}), tool_call(0, "c1"))
    answered(wire, content=[TextBlock(text="ok")])
    wire.feed(item("completed", "dynamicToolCall", "c1", status="completed"), used(10, 10))
    wire.feed(*said("m2", "Done."), used(30, 20), completed())
    assert shown(wire.events) == [
        ("text_delta", "I "),
        ("text_delta", "look."),
        ("message", "I look.", "commentary"),
        ("RequestRaised",),
        ("UsageReported",),
        ("text_delta", "Done."),
        ("UsageReported",),
        ("message", "Done.", "final"),
        ("TurnEnded",),
    ]


@requirement("codex:call", "R-G1", "R-G4")
def test_parallel_calls_keep_their_ids_and_order_and_get_their_own_answers() -> None:
    wire = Wire()
    wire.feed(tool_call(0, "c1", city="Oslo"), tool_call(1, "c2", city="Oslo"))
    first, second = wire.requests
    assert [(one.call_id, one.order, one.arguments_json) for one in (first, second)] == [
        ("c1", 0, '{"city":"Oslo"}'),
        ("c2", 1, '{"city":"Oslo"}'),
    ]
    assert answered(wire, 1, content=[TextBlock(text="two")])["id"] == 1
    told = answered(wire, 0, content=[TextBlock(text="one")])
    assert told == {"id": 0, "result": {"contentItems": [{"type": "inputText", "text": "one"}], "success": True}}
    assert wire.protocol.respond(first, HostResponse(request_id="x", content=[])) == []
    assert wire.sent() == [], "answered once"


@requirement("codex:call", "R-G2")
def test_a_call_is_as_the_model_wrote_it_and_one_that_codex_keeps_back_is_told() -> None:
    wire = Wire()
    for call_id, text in (("c1", '{"b": 1.10, "a": 1}'), ("c2", "{}"), ("c3", "{no json")):
        written = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": text}
        wire.feed(notified("rawResponseItem/completed", item=written))
    wire.feed(tool_call(0, "c2"), tool_call(1, "c1", b=1.1, a=1))
    told = {"type": "function_call_output", "call_id": "c3", "output": "failed to parse function arguments"}
    wire.feed(notified("rawResponseItem/completed", item=told))
    assert [(one.call_id, one.order, one.arguments_json) for one in wire.requests] == [
        ("c2", 1, "{}"),
        ("c1", 0, '{"b": 1.10, "a": 1}'),
    ]
    assert shown(wire.events)[-1] == ("notice", "call_not_delivered")


@requirement("codex:call", "R-G3")
def test_a_failed_call_says_so_in_its_text_because_the_model_sees_nothing_else() -> None:
    wire = Wire()
    wire.feed(tool_call(0, "c1"), tool_call(1, "c2"))
    told = answered(wire, 0, content=[TextBlock(text="disk full")], is_error=True)["result"]
    assert told == {"contentItems": [{"type": "inputText", "text": "Error: disk full"}], "success": False}
    image = ImageBlock(data="AAAA", media_type="image/png")
    told = answered(wire, 1, content=[image], structured_content_json='{"a":1}')["result"]
    assert told["contentItems"] == [
        {"type": "inputImage", "imageUrl": "data:image/png;base64,AAAA"},
        {"type": "inputText", "text": '{"a":1}'},
    ]


@requirement("codex:ends")
@pytest.mark.parametrize(
    ("end", "stop_reason"),
    [
        (completed("interrupted"), "cancelled"),
        (completed("failed", message="Incomplete response returned, reason: max_output_tokens"), "max_tokens"),
        (completed("failed", message="Incomplete response returned, reason: content_filter"), "refusal"),
        (completed(), "end_turn"),
    ],
)
def test_every_end_has_its_stop_reason(end: dict[str, Any], stop_reason: str) -> None:
    wire = Wire()
    wire.feed(end)
    found = ended(wire)
    assert isinstance(found, TurnEnded)
    assert found.stop_reason == stop_reason


@requirement("codex:ends")
def test_a_message_that_began_and_never_came_is_a_refusal() -> None:
    wire = Wire()
    wire.feed(*said("m1", whole=False), completed())
    found = ended(wire)
    assert isinstance(found, TurnEnded)
    assert found.stop_reason == "refusal"


@requirement("codex:ends", "R-L2")
@pytest.mark.parametrize(
    ("info", "code", "reason"),
    [
        ("contextWindowExceeded", "context_overflow", None),
        ("usageLimitExceeded", "provider_error", "billing"),
        ("rateLimitExceeded", "provider_error", "rate_limit"),
        ("serverOverloaded", "provider_error", "overloaded"),
        ("internalServerError", "provider_error", "server"),
        ({"httpConnectionFailed": {"httpStatusCode": 401}}, "provider_error", "auth"),
        ({"responseTooManyFailedAttempts": {"httpStatusCode": 429}}, "provider_error", "rate_limit"),
        ({"somethingNew": {"httpStatusCode": 500}}, "provider_error", "server"),
        ("somethingNew", "provider_error", "request"),
        (None, "provider_error", "request"),
    ],
)
def test_every_failure_of_the_provider_has_its_reason(info: Any, code: str, reason: str | None) -> None:
    wire = Wire()
    wire.feed(completed("failed", message="It broke.", codexErrorInfo=info))
    found = error(wire)
    assert (found.code, found.detail.get("reason"), found.message) == (code, reason, "It broke.")


@requirement("codex:retry")
def test_what_a_repeated_model_call_had_streamed_is_taken_back() -> None:
    wire = Wire()
    wire.feed(*said("m1", "Hel", whole=False))
    retry = {"message": "Reconnecting... 1/1", "codexErrorInfo": {"x": {"httpStatusCode": 429}}}
    wire.feed(notified("error", willRetry=True, error=retry), *said("m2", "Hello"), completed())
    assert shown(wire.events)[1:3] == [("item_discarded", "m1"), ("notice", "rate_limit")]
    assert ("message", "Hello", "final") in shown(wire.events)


@requirement("codex:usage", "R-L1")
def test_usage_is_that_of_the_turn_also_after_a_resume() -> None:
    wire = Wire(begins=False)
    wire.open("thread-1", turns=1)
    wire.begin()
    wire.feed(used(110, 10), used(110, 10), used(140, 30), completed())
    usage = [event.usage for event in wire.events if isinstance(event, UsageReported)][-1]
    assert (usage.input_tokens, usage.model_calls) == (40, 2)
    assert [one.model for one in usage.by_model] == ["gpt-5.4"]


@requirement("codex:model-per-turn")
def test_a_model_for_one_turn_does_not_stay_for_the_next() -> None:
    wire = Wire(begins=False)
    wire.open()
    wire.begin(model="gpt-other")
    assert wire.turn_start["params"]["model"] == "gpt-other"
    wire.feed(completed())
    wire.begin(output_schema_json='{"type":"object"}')
    assert wire.turn_start["params"]["model"] == "gpt-5.4"
    assert wire.turn_start["params"]["outputSchema"] == {"type": "object"}
    wire.feed(*said("m1", '{"a":1}'), completed())
    end = wire.events[-1]
    assert isinstance(end, TurnEnded)
    assert end.structured_output_json == '{"a":1}'


@requirement("codex:content")
def test_a_block_that_cannot_be_carried_is_refused_before_anything_is_sent() -> None:
    wire = Wire(begins=False)
    wire.open()
    wire.sent()
    with pytest.raises(ContentNotSupported, match="resource_link"):
        wire.begin([ResourceLinkBlock(uri="file:///x")])
    assert wire.sent() == []


@requirement("R-B9", "R-D9", "codex:generous")
def test_what_is_not_known_is_told_once_and_ends_nothing() -> None:
    wire = Wire()
    wire.feed(notified("something/new"), notified("something/new"), b"no json", item("started", "newThing", "x"))
    wire.feed(asked(0, "item/unheard/of"))
    assert [one for one in shown(wire.events) if one[0] == "notice"] == [("notice", "unknown_peer_event")] * 4
    assert wire.sent() == [{"id": 0, "error": {"code": -32601, "message": "'item/unheard/of' is not supported"}}]
    wire.feed(completed())
    assert isinstance(wire.events[-1], TurnEnded)


@requirement("codex:generous")
def test_a_subagents_thread_and_an_earlier_turn_are_not_this_turn() -> None:
    wire = Wire()
    foreign = notified("item/agentMessage/delta", itemId="m", delta="x")
    wire.feed({**foreign, "params": {**foreign["params"], "threadId": "other"}})
    wire.feed({**foreign, "params": {**foreign["params"], "turnId": "earlier"}})
    assert wire.events == []


@requirement("codex:generous")
@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from(["item", "plan", "tokenUsage", "error", "willRetry"]), VALUES)))
def test_no_message_breaks_the_turn(messages: list[Any]) -> None:
    wire = Wire()
    methods = ("item/started", "item/completed", "turn/plan/updated", "thread/tokenUsage/updated", "error")
    for number, params in enumerate(messages):
        wire.feed({"method": methods[number % len(methods)], "params": params})
    wire.feed(completed())
    assert wire.protocol.turn_is_over


# --- approvals and questions -----------------------------------------------------------------------------------------


@requirement("codex:approvals")
@pytest.mark.parametrize(
    ("selected", "decision"),
    [
        ("accept", "accept"),
        ("allow_once", "accept"),
        ("acceptForSession", "acceptForSession"),
        ("deny", "decline"),
        ("cancel", "cancel"),
    ],
)
def test_a_command_is_asked_for_and_the_decision_is_the_hosts(selected: str, decision: str) -> None:
    wire = Wire(internal_tools=["exec_command"])
    wire.feed(item("started", "commandExecution", "x1", command="touch a", cwd="/work", status="inProgress"))
    wire.feed(asked(0, "item/commandExecution/requestApproval", itemId="x1", command="touch a", reason="Needed."))
    [request] = wire.requests
    assert (request.kind, request.call_id, request.tool_name) == ("approval", "x1", "exec_command")
    assert (request.target, request.description) == ("touch a", "Needed.")
    assert answered(wire, selected_option=selected) == {"id": 0, "result": {"decision": decision}}


@requirement("codex:approvals")
def test_an_allowance_with_other_arguments_is_a_denial_that_is_told() -> None:
    wire = Wire()
    wire.feed(asked(0, "item/commandExecution/requestApproval", itemId="x1", command="touch a"))
    [request] = wire.requests
    response = HostResponse(request_id="", selected_option="accept", updated_arguments_json='{"command":"ls"}')
    assert shown(wire.protocol.respond(request, response)) == [("notice", "arguments_not_changed")]
    assert wire.sent() == [{"id": 0, "result": {"decision": "decline"}}]


@requirement("codex:approvals")
def test_a_change_of_files_shows_what_would_change() -> None:
    wire = Wire()
    changes = [{"path": "a.txt", "kind": "add", "diff": "+hi"}]
    wire.feed(item("started", "fileChange", "x1", changes=changes, status="inProgress"))
    wire.feed(asked(0, "item/fileChange/requestApproval", itemId="x1", reason=None))
    [request] = wire.requests
    assert (request.tool_name, request.target) == ("apply_patch", "a.txt")
    assert json.loads(request.arguments_json or "") == {"changes": changes}
    assert answered(wire, selected_option="decline")["result"] == {"decision": "decline"}


@requirement("codex:approvals", "codex:delegation")
def test_permission_for_a_delegated_tool_is_an_approval_and_a_servers_question_a_question() -> None:
    wire = Wire()
    meta = {"codex_approval_kind": "mcp_tool_call", "tool_name": "boom", "tool_params": {"a": 1}}
    schema = {"type": "object", "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}}
    elicit = "mcpServer/elicitation/request"
    wire.feed(asked(0, elicit, serverName="s", message="Allow?", requestedSchema={"properties": {}}, _meta=meta))
    wire.feed(asked(1, elicit, serverName="s", message="Which?", requestedSchema=schema, _meta=None))
    approval, question = wire.requests
    assert (approval.kind, approval.tool_name, approval.target) == ("approval", "boom", "s")
    assert answered(wire, 0, selected_option="accept")["result"]["action"] == "accept"
    assert (question.kind, [one.id for one in question.questions[0].options]) == ("user_question", ["red", "blue"])
    told = answered(wire, 1, action="accept", answers=[Answer(question_id="colour", selected=["blue"])])
    assert told["result"] == {"action": "accept", "content": {"colour": "blue"}, "_meta": None}


@requirement("codex:questions", "R-D11")
def test_a_question_of_the_model_is_answered_by_its_labels_or_declined() -> None:
    wire = Wire(internal_tools=["request_user_input"])
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    question = {"id": "q1", "header": "Colour", "question": "Which?", "options": options, "isOther": True}
    for number in range(2):
        wire.feed(asked(number, "item/tool/requestUserInput", itemId=f"u{number}", questions=[question]))
    first = wire.requests[0]
    assert (first.kind, first.call_id, first.questions[0].allow_free_text) == ("user_question", "u0", True)
    given = [Answer(question_id="q1", selected=["Blue"], text="dark")]
    told = answered(wire, 0, action="accept", answers=given)
    assert told["result"] == {"answers": {"q1": {"answers": ["Blue", "dark"]}}}
    assert answered(wire, 1, action="decline")["result"] == {"answers": {}}


@requirement("codex:withdrawn", "R-H5")
def test_a_request_that_codex_takes_back_is_withdrawn_and_a_late_answer_says_nothing() -> None:
    wire = Wire()
    wire.feed(asked(7, "item/commandExecution/requestApproval", itemId="x1", command="ls"))
    [request] = wire.requests
    assert wire.feed(notified("serverRequest/resolved", requestId=7)) == [RequestWithdrawn("7")]
    wire.protocol.respond(request, HostResponse(request_id="", selected_option="accept"))
    assert wire.sent() == []


# --- cancel and limits -----------------------------------------------------------------------------------------------


@requirement("codex:cancel", "R-G1", "R-H1")
def test_a_cancel_asks_once_and_closes_what_is_open_with_the_turn() -> None:
    wire = Wire()
    wire.feed(tool_call(0, "c1"))
    wire.protocol.interrupt()
    [interrupt] = wire.sent()
    assert (interrupt["method"], interrupt["params"]) == (
        "turn/interrupt",
        {"threadId": "thread-1", "turnId": "turn-1"},
    )
    assert wire.feed(tool_call(1, "c2")) == [], "not opened"
    wire.feed(completed("interrupted"))
    assert [one["id"] for one in wire.sent()] == [0, 1]
    wire.feed(tool_call(2, "c3"))
    assert wire.sent()[0]["result"]["success"] is False


@requirement("codex:cancel")
def test_a_cancel_before_codex_has_named_the_turn_follows_as_soon_as_it_has() -> None:
    wire = Wire(begins=False)
    wire.open()
    wire.sent()
    wire.protocol.start_turn([TextBlock(text="Go.")], TurnOptions())
    [start] = wire.sent()
    wire.protocol.interrupt()
    assert wire.sent() == []
    wire.feed({"id": start["id"], "result": {"turn": {"id": "turn-1"}}})
    assert [one["method"] for one in wire.sent()] == ["turn/interrupt"]


@requirement("codex:max-turns")
def test_the_last_answer_that_the_limit_allows_goes_with_the_interrupt() -> None:
    wire = Wire(limits=Limits(max_turns=1))
    wire.feed(*(item("started", "dynamicToolCall", one, tool="look") for one in ("c1", "c2")))
    wire.feed(tool_call(0, "c1"), tool_call(1, "c2"))
    answered(wire, 0, content=[])
    wire.feed(item("completed", "dynamicToolCall", "c1", status="completed"), used(10, 10))
    request = wire.requests[1]
    wire.protocol.respond(request, HostResponse(request_id="", content=[]))
    assert [one.get("method", "answer") for one in wire.sent()] == ["answer", "turn/interrupt"]
    wire.feed(completed("interrupted"))
    found = ended(wire)
    assert isinstance(found, TurnEnded)
    assert found.stop_reason == "max_turns"


# --- resume ----------------------------------------------------------------------------------------------------------


@requirement("codex:resume", "R-F1", "R-F2", "R-F4")
def test_a_thread_is_resumed_by_its_id_and_is_told_where_it_is_gone() -> None:
    wire = Wire(begins=False)
    wire.protocol.open_thread({"cwd": "/work"}, "thread-9")
    wire.feed({"id": 1, "result": {"userAgent": "x/0.171.0"}})
    resume = wire.sent()[-1]
    assert (resume["method"], resume["params"]) == ("thread/resume", {"cwd": "/work", "threadId": "thread-9"})
    wire.feed({"id": 2, "error": {"code": -32600, "message": "no rollout found"}})
    assert wire.protocol.resume_failed
