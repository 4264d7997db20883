"""The CLI's wire, line by line: what each brings, and what we answer."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.claude.protocol import ClaudeProtocol
from contract_tests.connectors.claude import wire
from contract_tests.connectors.claude.wire import PREFIX, Wire, shown
from contract_tests.requirements import requirement
from harness.contract import AudioBlock, HostResponse, ImageBlock, TextBlock
from harness.contract.options import SystemPromptMode
from harness.errors import ConnectorUnavailable, ContentNotSupported, HarnessError, PeerProtocolError
from harness.turn import Turn
from harness.turn.events import RequestWithdrawn, TurnEnded, TurnFailed, UsageReported

LOOK = PREFIX + "look"


def answer(wire_: Wire, number: int, text: str) -> None:
    request = wire_.requests[number]
    wire_.protocol.respond(request, HostResponse(request_id="r", content=[TextBlock(text=text)]))


# --- the start -------------------------------------------------------------------------------------------------------


@requirement("claude:prompt:system")
@pytest.mark.parametrize(
    ("prompt", "mode", "sent"),
    [
        (None, SystemPromptMode.REPLACE, {"systemPrompt": [""]}),
        ("Be terse.", SystemPromptMode.REPLACE, {"systemPrompt": ["Be terse."]}),
        (None, SystemPromptMode.APPEND, {}),
        ("Be terse.", SystemPromptMode.APPEND, {"appendSystemPrompt": "Be terse."}),
    ],
)
def test_the_system_prompt_goes_through_the_first_request(
    prompt: str | None, mode: SystemPromptMode, sent: dict[str, Any]
) -> None:
    protocol = ClaudeProtocol(wire.setting([]))
    protocol.initialize(prompt, mode)
    request = json.loads(protocol.data_to_send())["request"]
    assert request == {"subtype": "initialize", "hooks": None, **sent}


@requirement("claude:tools:only-ours")
def test_the_tools_are_told_in_advance_and_again_to_those_who_ask() -> None:
    protocol = ClaudeProtocol(wire.setting())
    protocol.initialize(None, SystemPromptMode.REPLACE)
    request = json.loads(protocol.data_to_send())["request"]
    told = request["sdkMcpServerManifests"]["host"]["toolsListResult"]["tools"]
    assert request["sdkMcpServers"] == ["host"]
    assert [tool["name"] for tool in told] == ["look", "save"]

    # before the answer to our request, as the CLI does
    protocol.receive(wire.encoded(wire.mcp("U1", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})))
    protocol.receive(wire.encoded(wire.mcp("U2", {"jsonrpc": "2.0", "method": "notifications/initialized"})))
    listed, noted = (json.loads(line)["response"] for line in protocol.data_to_send().splitlines())
    assert listed["request_id"] == "U1"
    assert listed["response"]["mcp_response"] == {"jsonrpc": "2.0", "id": 1, "result": {"tools": told}}
    assert noted["response"] == {"mcp_response": {"jsonrpc": "2.0", "result": {}}}


@requirement("claude:start:not-logged-in")
def test_a_cli_without_credentials_is_not_logged_in() -> None:
    wire_ = Wire(begins=False)
    with pytest.raises(ConnectorUnavailable) as refused:
        wire_.feed(wire.ready(tokenSource="none", apiProvider="firstParty"))
    assert refused.value.detail["reason"] == "not_logged_in"


@requirement("claude:start:not-logged-in")
@pytest.mark.parametrize(
    "account", [{"tokenSource": "claude.ai"}, {"tokenSource": "none", "apiProvider": "bedrock"}, {"other": "x"}]
)
def test_any_other_credentials_are_left_to_the_cli(account: dict[str, str]) -> None:
    wire_ = Wire(begins=False)
    wire_.feed(wire.ready(**account))
    assert wire_.protocol.ready is not None and wire_.protocol.ready.version == (2, 1, 332)


@requirement("claude:start:refused")
def test_a_cli_that_refuses_to_start_breaks_the_protocol() -> None:
    refusal = {"subtype": "error", "request_id": "initialize", "error": "no \ud800"}
    with pytest.raises(PeerProtocolError, match="no"):
        Wire(begins=False).feed({"type": "control_response", "response": refusal})


@requirement("R-E1")
def test_a_turn_without_our_tools_is_refused_and_others_than_asked_for_are_told() -> None:
    wire_ = Wire(begins=False)
    wire_.feed(wire.ready(version=None))
    wire_.protocol.start_turn([TextBlock(text="Go.")], "u-1")
    with pytest.raises(ConnectorUnavailable, match="mcp__host__save") as refused:
        wire_.feed(wire.init(LOOK))
    assert refused.value.detail["reason"] == "tools_unavailable"

    events = wire_.feed(wire.init(LOOK, PREFIX + "save", "Bash"))
    assert shown(events) == [("notice", "surplus_tools", None)]
    assert wire_.protocol.session_id == "s-1"
    assert wire_.protocol.ready is not None and wire_.protocol.ready.version == (2, 1, 332)


# --- messages --------------------------------------------------------------------------------------------------------


@requirement("claude:turn:text")
def test_a_message_streams_and_is_told_once_when_its_end_says_what_it_was() -> None:
    wire_ = Wire()
    events = wire_.feed(
        wire.message_start("m1"),
        *wire.text_block(0, "Hello ", "there")[:-1],
        wire.assistant("m1", {"type": "text", "text": "Hello there"}),
        wire.event("content_block_stop", index=0),
    )
    assert shown(events) == [("text_delta", "Hello ", "m1"), ("text_delta", "there", "m1")]
    assert shown(wire_.feed(*wire.message_end("end_turn"))) == [("message", (["Hello there"], "final"), "m1")]


@requirement("claude:turn:text")
def test_the_way_the_lines_are_read_makes_no_difference() -> None:
    lines = [
        wire.message_start("m1"),
        *wire.text_block(0, "I look."),
        *wire.call_block(1, "t1", LOOK, '{"a":', "1}"),
        wire.tools_call("U1", 2, "t1", arguments={"a": 1}),
        *wire.message_end("tool_use"),
        wire.result(),
        wire.state("idle"),
    ]
    together, apart = Wire(), Wire()
    together.feed(*lines)
    for line in lines:
        apart.feed(line)
    assert together.events == apart.events
    assert together.sent() == apart.sent()


@requirement("claude:turn:text")
def test_words_before_a_call_are_commentary_even_if_the_call_comes_first() -> None:
    wire_ = Wire()
    wire_.feed(wire.message_start("m1"), *wire.text_block(0, "I look."), *wire.call_block(1, "t1", LOOK, "{}"))
    wire_.feed(wire.tools_call("U1", 2, "t1"))
    wire_.feed(*wire.message_end("tool_use"))
    assert [entry[0] for entry in shown(wire_.events)] == ["text_delta", "RequestRaised", "message"]
    assert shown(wire_.events)[-1] == ("message", (["I look."], "commentary"), "m1")


@requirement("claude:turn:restarted-message")
@pytest.mark.parametrize("next_id", ["m2", "m1"])
def test_a_message_that_starts_again_is_discarded_under_its_own_name(next_id: str) -> None:
    wire_ = Wire()
    wire_.feed(wire.message_start("m1"), *wire.text_block(0, "half")[:-1])
    wire_.feed(wire.message_start(next_id), *wire.text_block(0, "whole"), *wire.message_end("end_turn"))
    item_id = "m2" if next_id == "m2" else "m1~2"
    assert shown(wire_.events) == [
        ("text_delta", "half", "m1"),
        ("item_discarded", "restarted", "m1"),
        ("text_delta", "whole", item_id),
        ("message", (["whole"], "final"), item_id),
    ]


@requirement("claude:turn:restarted-message")
def test_a_message_that_came_without_streaming_replaces_the_dropped_one() -> None:
    wire_ = Wire()
    wire_.feed(wire.message_start("m1"), *wire.text_block(0, "half")[:-1])
    wire_.feed(wire.assistant("m2", {"type": "text", "text": "I look."}))
    wire_.feed(wire.assistant("m2", {"type": "tool_use", "id": "t1", "name": LOOK, "input": {"n": 1}}))
    wire_.feed(wire.tools_call("U1", 2, "t1", arguments={"n": 1}))
    wire_.feed(wire.assistant("m3", {"type": "text", "text": "Done."}), wire.result(), wire.state("idle"))
    assert [entry for entry in shown(wire_.events) if entry[0] != "UsageReported"] == [
        ("text_delta", "half", "m1"),
        ("item_discarded", "restarted", "m1"),
        ("text_delta", "I look.", "m2"),
        ("RequestRaised",),
        ("message", (["I look."], "commentary"), "m2"),
        ("text_delta", "Done.", "m3"),
        ("message", (["Done."], "final"), "m3"),
        ("TurnEnded",),
    ]
    assert wire_.requests[0].arguments_json == '{"n":1}'


@requirement("claude:turn:subagents")
def test_what_a_subagent_says_names_the_call_it_belongs_to() -> None:
    wire_ = Wire(internal_tools=["Agent"])
    wire_.feed(wire.message_start("m1"), *wire.text_block(0, "main")[:-1])
    sub = [*wire.text_block(0, "sub", parent="t0"), *wire.call_block(1, "t1", LOOK, "{}", parent="t0")]
    wire_.feed(wire.message_start("s1", "t0"), *sub, *wire.message_end("tool_use", "t0"))
    wire_.feed(wire.tools_call("U1", 2, "t1"))
    wire_.feed(*wire.message_end("end_turn"))
    fields = [event.fields for event in wire_.events if hasattr(event, "fields")]  # type: ignore[attr-defined]
    assert [(f["item_id"], f["parent_call_id"]) for f in fields] == [
        ("m1", None),
        ("s1", "t0"),
        ("s1", "t0"),
        ("m1", None),
    ]
    assert wire_.requests[0].parent_call_id == "t0"


@requirement("R-J3")
def test_half_characters_are_joined_over_deltas_and_replaced_where_the_other_half_never_comes() -> None:
    wire_ = Wire()
    wire_.feed(wire.message_start("m1"), *wire.text_block(0, "a\ud83d", "\ude00b", "c\ud83d"))
    wire_.feed(*wire.message_end("end_turn"))
    assert shown(wire_.events) == [
        ("text_delta", "a", "m1"),
        ("text_delta", "\U0001f600b", "m1"),
        ("text_delta", "c", "m1"),
        ("text_delta", "\ufffd", "m1"),
        ("notice", "surrogates_replaced", None),
        ("message", (["a\U0001f600bc\ufffd"], "final"), "m1"),
    ]


# --- calls -----------------------------------------------------------------------------------------------------------


@requirement("claude:call:exact")
@pytest.mark.parametrize(
    ("written", "delivered", "shown_as"),
    [
        ('{"n": 9007199254740993}', {"n": 9007199254740992}, '{"n": 9007199254740993}'),
        ('{"x": 1.10, "s": "\\ud800"}', {"x": 1.1, "s": "\ud800"}, '{"x": 1.10, "s": "\\ud800"}'),
        ("", {}, "{}"),
        ('{"command": "rm"}', {"command": "ls"}, '{"command":"ls"}'),
        ('{"s": "\ud800"}', {"s": "\ud800"}, '{"s": "\\ud800"}'),
    ],
)
def test_arguments_are_the_models_text_unless_the_cli_changed_them(
    written: str, delivered: dict[str, Any], shown_as: str
) -> None:
    wire_ = Wire()
    half = len(written) // 2
    wire_.feed(wire.message_start("m1"), *wire.call_block(0, "t1", LOOK, written[:half], written[half:]))
    wire_.feed(wire.tools_call("U1", 2, "t1", arguments=delivered))
    assert wire_.requests[0].arguments_json == shown_as


@requirement("claude:call:exact")
def test_each_answer_goes_back_to_the_request_it_belongs_to() -> None:
    wire_ = Wire()
    blocks = [*wire.call_block(0, "t1", LOOK, "{}"), *wire.call_block(1, "t2", LOOK, "{}")]
    wire_.feed(wire.message_start("m1"), *blocks)
    wire_.feed(wire.tools_call("U1", 2, "t1"), wire.tools_call("U2", 3, "t2"))
    assert [(r.call_id, r.peer_request_id, r.order) for r in wire_.requests] == [("t1", "t1", 0), ("t2", "t2", 1)]
    answer(wire_, 1, "two")
    answer(wire_, 0, "one")
    answer(wire_, 0, "again")
    responses = wire_.responses()
    assert list(responses) == ["U2", "U1"]
    assert responses["U1"]["mcp_response"] == {
        "jsonrpc": "2.0",
        "id": 2,
        "result": {"content": [{"type": "text", "text": "one"}]},
    }


@requirement("bridge:mcp:delivered-twice")
def test_a_call_delivered_twice_is_one_request() -> None:
    wire_ = Wire()
    wire_.feed(wire.message_start("m1"), *wire.call_block(0, "t1", LOOK, "{}"))
    wire_.feed(wire.tools_call("U1", 2, "t1"), wire.tools_call("U2", 3, "t1"))
    answer(wire_, 0, "once")
    wire_.feed(wire.tools_call("U3", 4, "t1"))
    assert len(wire_.requests) == 1
    assert list(wire_.responses()) == ["U1", "U2", "U3"]


@requirement("claude:call:exact")
def test_a_call_without_an_id_gets_one_that_says_so() -> None:
    wire_ = Wire()
    wire_.feed(wire.tools_call("U1", 2, None, arguments={"a": [1]}))
    [request] = wire_.requests
    assert request.call_id == request.peer_request_id
    assert (request.call_id_source, request.order, request.arguments_json) == ("made_up", None, '{"a":[1]}')


@requirement("R-H5")
@pytest.mark.parametrize("how", ["notification", "control"])
def test_a_withdrawn_call_is_withdrawn_and_a_late_answer_goes_nowhere(how: str) -> None:
    wire_ = Wire()
    wire_.feed(wire.message_start("m1"), *wire.call_block(0, "t1", LOOK, "{}"), wire.tools_call("U1", 2, "t1"))
    params = {"requestId": 2, "reason": "AbortError"}
    cancelled = wire.mcp("U2", {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    events = wire_.feed(cancelled if how == "notification" else {"type": "control_cancel_request", "request_id": "U1"})
    assert events == [RequestWithdrawn("t1")]
    answer(wire_, 0, "late")
    assert "U1" not in wire_.responses()


@requirement("R-H1")
def test_after_an_interrupt_no_call_is_raised_and_all_are_closed_with_the_turn() -> None:
    wire_ = Wire()
    blocks = [*wire.call_block(0, "t1", LOOK, "{}"), *wire.call_block(1, "t2", LOOK, "{}")]
    wire_.feed(wire.message_start("m1"), *blocks, wire.tools_call("U1", 2, "t1"))
    wire_.sent()
    wire_.protocol.interrupt()
    assert [line["request"] for line in wire_.sent()] == [{"subtype": "interrupt"}]

    assert wire_.feed(wire.tools_call("U2", 3, "t2")) == []
    assert wire_.responses() == {}
    aborted = wire.result(
        subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools", errors=["[ede_diagnostic]"]
    )
    wire_.feed(aborted)
    assert not wire_.protocol.turn_is_over
    events = wire_.feed(wire.state("idle"))
    assert events[-1] == TurnEnded("cancelled")
    answers = wire_.responses()
    assert list(answers) == ["U1", "U2"]
    assert all(reply["mcp_response"]["result"]["isError"] for reply in answers.values())
    wire_.protocol.interrupt()
    assert wire_.sent() == []


@requirement("claude:call:between-turns")
def test_between_turns_the_cli_is_answered_and_nothing_is_shown() -> None:
    wire_ = Wire()
    wire_.feed(wire.result(), wire.state("idle"))
    wire_.sent()
    late = [*wire.text_block(0, "late"), wire.result(), wire.state("idle"), wire.tools_call("U1", 2, "t1"), b"noise"]
    assert wire_.feed(*late, wire.control("U2", "can_use_tool", tool_name="Bash", input={})) == []
    answers = wire_.responses()
    assert answers["U1"]["mcp_response"]["result"]["isError"] is True
    assert answers["U2"]["behavior"] == "deny"


# --- the tools of the CLI, and what else it asks ---------------------------------------------------------------------


@requirement("R-D9")
def test_every_other_request_gets_a_valid_answer_and_an_unknown_one_is_told_once() -> None:
    wire_ = Wire()
    wire_.feed(wire.control("U1", "hook_callback", callback_id="h"))
    wire_.feed(wire.control("U3", "new_thing"), wire.control("U4", "new_thing"), wire.mcp("U5", {}, server="other"))
    answers = wire_.responses()
    assert answers["U1"] == {}
    assert "new_thing" in answers["U3"] and "new_thing" in answers["U4"] and "other" in answers["U5"]
    assert shown(wire_.events) == [("notice", "unknown_peer_event", None)]


@requirement("claude:internal-tools:shown")
@pytest.mark.parametrize(
    ("is_error", "decision", "outcome"),
    [(False, "accept", "ok"), (True, "accept", "failed"), (True, "reject", "refused")],
)
def test_an_internal_tool_is_shown_with_what_became_of_it(is_error: bool, decision: str, outcome: str) -> None:
    wire_ = Wire(internal_tools=["Bash"])
    use = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    wire_.feed(
        wire.message_start("m1"), *wire.call_block(0, "t1", "Bash", '{"command": "ls"}'), wire.assistant("m1", use)
    )
    content = [{"type": "text", "text": "out"}]
    wire_.feed(wire.tool_result("t1", content, is_error=is_error, decision=decision))
    started, finished = (event.fields for event in wire_.events if hasattr(event, "fields"))  # type: ignore[attr-defined]
    assert (started["tool_name"], started["arguments_json"], started["source"]) == (
        "Bash",
        '{"command": "ls"}',
        "claude",
    )
    assert (finished["call_id"], finished["result"], finished["result_text"]) == ("t1", outcome, "out")


@requirement("R-B9")
def test_unknown_lines_are_told_once_per_kind_and_never_end_a_turn() -> None:
    wire_ = Wire()
    strange = [
        {"type": "brand_new"},
        {"type": "system", "subtype": "odd"},
        {"type": "brand_new"},
        [],
        "x",
        b"{not",
        b"",
    ]
    wire_.feed(*strange, wire.message_start("m1"), *wire.text_block(0, "ok"), *wire.message_end("end_turn"))
    told = [event.fields["text"] for event in wire_.events if hasattr(event, "fields") and "code" in event.fields]  # type: ignore[attr-defined]
    assert len(told) == 3
    assert "'brand_new'" in told[0] and "'system/odd'" in told[1] and "no JSON object" in told[2]
    wire_.feed(wire.result(), wire.state("idle"))
    assert isinstance(wire_.events[-1], TurnEnded)


@requirement("R-L2")
def test_retries_and_fallbacks_are_told() -> None:
    wire_ = Wire()
    retry = {"type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 2, "retry_delay_ms": 535}
    wire_.feed({**retry, "error_status": 429, "error": "rate_limit"}, {**retry, "error_status": None})
    wire_.feed({"type": "system", "subtype": "model_fallback", "content": "Switched to Haiku"})
    wire_.feed({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}})
    wire_.feed({"type": "rate_limit_event", "rate_limit_info": {"status": "rejected", "resetsAt": 1}})
    assert [entry[1] for entry in shown(wire_.events)] == ["rate_limit", "retry", "fallback", "rate_limit"]


# --- the end ---------------------------------------------------------------------------------------------------------


@requirement("claude:turn:ends-idle")
def test_the_turn_ends_when_the_session_is_idle_and_counts_what_a_second_result_adds() -> None:
    wire_ = Wire()
    used = {"m": wire.USAGE}
    assert wire_.feed(wire.message_start("m1"), wire.result(model_usage_since_last_result=used)) == []
    events = wire_.feed(wire.message_start("m2"), wire.result(model_usage_since_last_result=used), wire.state("idle"))
    [usage] = [event.usage for event in events if isinstance(event, UsageReported)]
    assert (usage.input_tokens, usage.output_tokens, usage.model_calls, usage.cost_usd) == (30, 10, 2, 1.0)
    assert events[-1] == TurnEnded("end_turn")


@requirement("claude:turn:ends-idle")
def test_a_cli_that_tells_no_state_ends_its_turn_with_the_result() -> None:
    wire_ = Wire(begins=False)
    wire_.feed(wire.ready())
    wire_.protocol.start_turn([TextBlock(text="Go.")], "u-1")
    assert wire_.feed(wire.result())[-1] == TurnEnded("end_turn")
    assert wire_.protocol.turn_is_over


@requirement("claude:turn:ends-idle")
def test_a_session_that_is_idle_without_a_result_has_failed_its_turn() -> None:
    [failed] = Wire().feed(wire.state("idle"))
    assert isinstance(failed, TurnFailed) and isinstance(failed.error, PeerProtocolError)


@requirement("R-L1")
def test_totals_of_the_process_become_differences_of_the_turn() -> None:
    wire_ = Wire()
    totals: dict[str, Any] = {"m": wire.USAGE}
    wire_.feed(wire.result(modelUsage=totals, model_usage_since_last_result=None), wire.state("idle"))
    wire_.begin()
    doubled = {name: value * 3 for name, value in wire.USAGE.items()}
    totals = {"m": doubled, "n": wire.USAGE}
    wire_.feed(wire.result(modelUsage=totals, model_usage_since_last_result=None), wire.state("idle"))
    first, second = (event.usage for event in wire_.events if isinstance(event, UsageReported))
    assert (first.input_tokens, first.cached_input_tokens, first.cache_write_tokens, first.cost_usd) == (15, 3, 2, 0.5)
    assert (second.input_tokens, second.output_tokens, second.cost_usd) == (45, 15, 1.5)
    assert [(model.model, model.input_tokens) for model in second.by_model] == [("m", 30), ("n", 15)]
    assert first.reasoning_tokens is None


@requirement("R-L1")
def test_while_the_turn_runs_each_message_counts_once_and_the_result_has_the_last_word() -> None:
    wire_ = Wire()
    begun = wire.message_start("m1")
    begun["event"]["message"]["usage"] = {"input_tokens": 7, "cache_read_input_tokens": 3, "output_tokens": 1}
    ended = wire.event(
        "message_delta", delta={"stop_reason": "tool_use"}, usage={"output_tokens": 9, "input_tokens": 0}
    )
    wire_.feed(begun, *wire.text_block(0, "a"), ended, begun, ended)
    wire_.feed(wire.result(model_usage_since_last_result={"m": wire.USAGE}), wire.state("idle"))
    seen = [event.usage for event in wire_.events if isinstance(event, UsageReported)]
    assert [(one.input_tokens, one.output_tokens, one.model_calls) for one in seen] == [
        (10, 9, 1),
        (20, 18, 2),
        (15, 5, 2),
    ]


_ERROR = {"is_error": True, "terminal_reason": "api_error", "stop_reason": "stop_sequence"}


@requirement("claude:turn:stop-reasons")
@pytest.mark.parametrize(
    ("fields", "error", "stop_reason", "expected"),
    [
        ({}, None, "end_turn", "end_turn"),
        ({"terminal_reason": "brand_new"}, None, "end_turn", "end_turn"),
        (_ERROR, "max_output_tokens", "max_tokens", "max_tokens"),
        (_ERROR | {"terminal_reason": "completed"}, "max_output_tokens", "max_tokens", "max_tokens"),
        (
            {"subtype": "error_max_turns", "is_error": True, "terminal_reason": "max_turns"},
            None,
            "tool_use",
            "max_turns",
        ),
        ({"subtype": "error_max_budget_usd", "is_error": True, "terminal_reason": None}, None, "tool_use", "budget"),
        (_ERROR | {"stop_reason": "refusal"}, "invalid_request", "refusal", "refusal"),
        (
            {"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_streaming"},
            None,
            None,
            "cancelled",
        ),
    ],
)
def test_each_way_to_end_has_its_stop_reason(
    fields: dict[str, Any], error: str | None, stop_reason: str | None, expected: str
) -> None:
    wire_ = Wire()
    wire_.feed(wire.message_start("m1"), *wire.message_end(stop_reason))
    if error is not None:
        wire_.feed(wire.api_error(error, "API Error: something"))
    events = wire_.feed(wire.result(**fields, errors=["[ede_diagnostic]"]), wire.state("idle"))
    assert events[-1] == TurnEnded(expected)
    assert "API Error" not in str(shown(wire_.events))


@requirement("claude:turn:provider-errors")
@pytest.mark.parametrize(
    ("fields", "error", "stop_reason", "code", "reason"),
    [
        ({"api_error_status": 429}, "rate_limit", None, "provider_error", "rate_limit"),
        ({"api_error_status": 529}, "server_error", None, "provider_error", "overloaded"),
        ({"api_error_status": 500}, "server_error", None, "provider_error", "server"),
        ({"api_error_status": 401}, "authentication_failed", None, "provider_error", "auth"),
        ({"api_error_status": 400}, "billing_error", None, "provider_error", "billing"),
        ({"api_error_status": 404}, "model_not_found", None, "provider_error", "request"),
        ({"api_error": "connection_failed"}, "server_error", None, "provider_error", "network"),
        ({"api_error_status": 400}, "unknown", None, "provider_error", "request"),
        (
            {"result": "API Error: The model has reached its context window limit."},
            "max_output_tokens",
            None,
            "context_overflow",
            None,
        ),
        ({"terminal_reason": "prompt_too_long"}, "invalid_request", None, "context_overflow", None),
        ({"result": "Prompt is too long"}, "invalid_request", None, "context_overflow", None),
        ({}, "max_output_tokens", "model_context_window_exceeded", "context_overflow", None),
        (
            {"result": "Not logged in · Please run /login"},
            "authentication_failed",
            None,
            "connector_unavailable",
            "not_logged_in",
        ),
        (
            {"subtype": "error_during_execution", "terminal_reason": "odd", "result": ""},
            None,
            None,
            "provider_error",
            "server",
        ),
    ],
)
def test_each_failure_has_its_kind_and_never_shows_diagnostics(
    fields: dict[str, Any], error: str | None, stop_reason: str | None, code: str, reason: str | None
) -> None:
    wire_ = Wire()
    wire_.feed(wire.message_start("m1"), *wire.message_end(stop_reason))
    if error is not None:
        wire_.feed(wire.api_error(error, "API Error: something"))
    line = wire.result(**{**_ERROR, "result": "API Error: something", "errors": ["[ede_diagnostic]"], **fields})
    failed = wire_.feed(line, wire.state("idle"))[-1]
    assert isinstance(failed, TurnFailed)
    assert (failed.error.code, failed.error.detail.get("reason")) == (code, reason)
    assert failed.error.message
    assert "ede_diagnostic" not in failed.error.message


# --- prompts ---------------------------------------------------------------------------------------------------------


@requirement("claude:prompt:exact")
def test_a_message_is_sent_as_the_callers_own_text() -> None:
    wire_ = Wire(begins=False)
    wire_.protocol.start_turn([TextBlock(text="/compact @x \u2028")], "u-1")
    [line] = wire_.sent()
    assert line["message"] == {"role": "user", "content": "/compact @x \u2028"}
    assert (line["client_composed"], line["uuid"]) == (True, "u-1")


@requirement("claude:images")
def test_blocks_keep_their_order_and_what_cannot_be_carried_is_refused_before_anything_is_sent() -> None:
    wire_ = Wire(begins=False)
    image = ImageBlock(data="aGk=", media_type="image/png")
    wire_.protocol.start_turn([image, TextBlock(text="What?")], "u-1")
    [line] = wire_.sent()
    assert [block["type"] for block in line["message"]["content"]] == ["image", "text"]
    with pytest.raises(ContentNotSupported, match="'audio'"):
        wire_.protocol.start_turn([AudioBlock(data="", media_type="audio/wav")], "u-2")
    assert wire_.sent() == []


@requirement("claude:raw")
def test_raw_lines_are_shown_when_asked_for() -> None:
    line = {"type": "brand_new", "a": 1}
    assert shown(Wire(wants_raw=True).feed(line))[0] == ("raw", json.dumps(line), None)


# --- anything at all -------------------------------------------------------------------------------------------------

_WORDS = st.sampled_from(
    [
        *("assistant", "content", "id", "input", "message", "model", "name", "result", "subtype", "text", "tool_use"),
        *("type", "user", "m1", "t1", "uuid", "\ud800"),
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**60) | st.floats(allow_nan=False) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=8,
)


def _shapes() -> list[dict[str, Any]]:
    return [
        wire.state("idle"),
        wire.init(),
        wire.message_start("m1"),
        *wire.text_block(0, "a"),
        *wire.call_block(1, "t1", LOOK, "{}"),
        *wire.message_end("end_turn"),
        wire.assistant("m1", {"type": "tool_use", "id": "t2", "name": "Bash", "input": {}}),
        wire.api_error("rate_limit", "slow"),
        wire.tool_result("t1", "x"),
        wire.result(modelUsage={"m": wire.USAGE}, model_usage_since_last_result=None),
        wire.control("U1", "can_use_tool", tool_name="Bash", input={}),
        wire.can_use_tool("U3", "t9", "AskUserQuestion", {"questions": [wire.QUESTION]}),
        wire.elicitation("U4", {"type": "object", "properties": {"n": {"enum": ["text"]}}}),
        wire.tools_call("U2", 2, "t1"),
        wire.ready(),
        {"type": "control_cancel_request", "request_id": "U2"},
        {"type": "system", "subtype": "api_retry"},
        {"type": "rate_limit_event", "rate_limit_info": {"status": "x"}},
        {"type": "system", "subtype": "informational", "content": "x"},
    ]


def _replaced(value: Any, path: list[int], new: Any) -> Any:
    """The same value with one member, found by walking `path`, replaced."""
    if not path or not isinstance(value, dict | list) or not value:
        return new
    if isinstance(value, list):
        index = path[0] % len(value)
        return [_replaced(member, path[1:], new) if at == index else member for at, member in enumerate(value)]
    key = list(value)[path[0] % len(value)]
    return {name: _replaced(member, path[1:], new) if name == key else member for name, member in value.items()}


_LINES = st.lists(
    st.builds(_replaced, st.sampled_from(_shapes()), st.lists(st.integers(0, 5), min_size=1, max_size=5), _VALUES)
    | st.sampled_from(_shapes())
    | _VALUES,
    max_size=12,
)


@requirement("R-B9")
@given(_LINES)
def test_whatever_a_cli_writes_only_errors_of_ours_come_of_it(lines: list[Any]) -> None:
    wire_, turn = Wire(), Turn(at=0)
    for line in lines:
        try:
            events = wire_.feed(line)
        except HarnessError:
            continue
        turn.receive(*events, at=1)
    turn.state().to_json()
    wire_.sent()
