"""Events of the Responses API that the scripted model does not make: hosted tools, failures, other servers' habits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connectors.openai.config import OpenAiConfig
from connectors.openai.responses_protocol import ORIGIN, request_body
from connectors.openai.responses_reader import ResponsesReader
from contract_tests.connectors.heard import Listener
from contract_tests.requirements import requirement
from harness.contract import Delegation, HostResponse, TextBlock, ToolSourceDescriptor
from harness.errors import ContextOverflow, ProviderError
from harness.model_loop import AssistantMessage, ModelAnswer, ModelRequest, Said, ToolMessage, UserMessage

MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
APPROVAL = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "roll", "arguments": "{}", "server_label": "dice"}


def read(*events: dict[str, Any], limit: int | None = None, listener: Listener | None = None) -> ModelAnswer:
    reader = ResponsesReader(listener or Listener(), limit, "the server")
    for event in events:
        reader.receive(event)
    return reader.answer()


def done(*items: dict[str, Any], status: str = "completed", **more: Any) -> list[dict[str, Any]]:
    """The items, each told whole, and the end of the response."""
    response = {"id": "resp_1", "status": status, "output": list(items), **more}
    told = [{"type": "response.output_item.done", "item": item} for item in items]
    return [*told, {"type": f"response.{status}", "response": response}]


@requirement("openai:responses:events")
def test_the_order_of_items_is_kept_for_passing_back_also_with_a_call_before_a_text() -> None:
    answer = read(*done(REASONING, CALL, MESSAGE))
    assert answer.native == {"id": "resp_1", "items": [REASONING, CALL, MESSAGE]}
    assert ([call.call_id for call in answer.calls], answer.said) == (["c1"], (Said("hi"),))


@requirement("openai:responses:events")
def test_phases_of_messages_are_told() -> None:
    first = {**MESSAGE, "phase": "commentary"}
    answer = read(*done(first, {**MESSAGE, "id": "msg_2", "phase": "final_answer"}))
    assert [said.phase for said in answer.said] == ["commentary", "final"]


@requirement("openai:responses:events")
def test_deltas_belong_to_their_message() -> None:
    listener = Listener()
    read(
        {"type": "response.output_item.added", "item": {"type": "message", "id": "a"}},
        {"type": "response.output_text.delta", "item_id": "a", "delta": "one"},
        {"type": "response.output_item.added", "item": {"type": "message", "id": "b"}},
        {"type": "response.output_text.delta", "delta": "two"},
        {"type": "response.output_text.delta", "item_id": "a", "delta": "more"},
        *done(MESSAGE),
        listener=listener,
    )
    assert listener.texts == [(0, "one"), (1, "two"), (0, "more")]


@requirement("openai:responses:events")
@pytest.mark.parametrize(
    ("events", "reason"),
    [
        ([{"type": "error", "code": "server_error", "message": "boom"}], "server"),
        ([{"type": "error", "error": {"code": "rate_limit_exceeded", "message": "boom"}}], "rate_limit"),
        (
            [{"type": "response.failed", "response": {"error": {"code": "server_error", "message": "boom"}}}],
            "server",
        ),
        (done(MESSAGE)[:-1], "network"),
        ([], "network"),
    ],
)
def test_failures_and_cut_streams_are_errors(events: list[dict[str, Any]], reason: str) -> None:
    with pytest.raises(ProviderError) as caught:
        read(*events)
    assert caught.value.detail["reason"] == reason
    assert reason == "network" or "boom" in caught.value.message


@requirement("openai:responses:events")
def test_an_overflow_in_the_stream_is_an_overflow() -> None:
    with pytest.raises(ContextOverflow):
        read({"type": "error", "code": "context_length_exceeded", "message": "too long"})


@requirement("openai:responses:events")
@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "max_tokens"), ("content_filter", "refusal"), ("steered", "max_tokens")]
)
def test_incomplete_reasons(reason: str, stop: str) -> None:
    assert read(*done(MESSAGE, status="incomplete", incomplete_details={"reason": reason})).stop == stop


@requirement("openai:responses:events")
def test_a_call_cut_off_is_neither_run_nor_passed_back_nor_is_the_reasoning_before_it() -> None:
    cut = {**CALL, "arguments": '{"a', "status": "incomplete"}
    answer = read(
        *done(MESSAGE, REASONING, cut, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    )
    assert (answer.calls, answer.stop) == ((), "max_tokens")
    assert answer.native == {"id": "resp_1", "items": [MESSAGE]}


@requirement("openai:responses:llama-server")
def test_a_cut_answer_called_completed_is_found_by_its_length() -> None:
    cut = {**CALL, "arguments": '{"a'}
    answer = read(*done(cut, usage={"input_tokens": 5, "output_tokens": 20}), limit=20)
    assert (answer.calls, answer.stop) == ((), "max_tokens")
    assert answer.usage is not None and answer.usage.reasoning_tokens is None


@requirement("openai:responses:llama-server")
def test_events_without_numbers_and_calls_open_at_once_are_read_by_their_items() -> None:
    second = {**CALL, "id": "fc_2", "call_id": "c2"}
    answer = read(
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.output_item.added", "item": {**CALL, "arguments": ""}},
        {"type": "response.output_item.added", "item": {**second, "arguments": ""}},
        {"type": "response.function_call_arguments.delta", "item_id": "fc_1", "delta": "{}"},
        *[{"type": "response.output_item.done", "item": item} for item in (CALL, second)],
        {"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}},
    )
    assert [call.call_id for call in answer.calls] == ["c1", "c2"]


@requirement("openai:responses:llama-server")
def test_reasoning_that_other_servers_refuse_is_left_out_for_them() -> None:
    open_reasoning = {"type": "reasoning", "id": "rs_2", "content": [{"type": "reasoning_text", "text": "hm"}]}
    native = {"id": "r", "items": [REASONING, open_reasoning, MESSAGE]}
    request = ModelRequest(
        model="m",
        system="",
        messages=(
            UserMessage((TextBlock(text="?"),)),
            AssistantMessage((Said("hi"),), native=native, origin=ORIGIN),
            AssistantMessage((Said("seeded"),)),
        ),
    )
    full = request_body(request, OpenAiConfig(), "openai")
    assert [item["type"] for item in full["input"]] == ["message", "reasoning", "reasoning", "message", "message"]
    body = request_body(request, OpenAiConfig(), "llama-server")
    assert body["input"][1:3] == [open_reasoning, MESSAGE] and "include" not in body
    assert body["input"][3]["content"] == [{"type": "output_text", "text": "seeded", "annotations": []}]


@requirement("openai:responses:hosted-tools")
def test_web_search_and_remote_tools_are_shown_as_the_providers_own() -> None:
    listener = Listener()
    search = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    call = {"type": "mcp_call", "id": "mcp_1", "name": "roll", "server_label": "dice", "output": "4", "error": None}
    failed = {**call, "id": "mcp_2", "output": None, "error": {"type": "http_error", "message": "gone"}}
    begun = [{"type": "response.output_item.added", "item": item} for item in (search, call, failed)]
    answer = read(*begun, *done(search, call, failed, MESSAGE), listener=listener)
    fields = [dict(event.fields) for event in listener.shown]
    assert [(one["tool_name"], one["source"]) for one in fields[:3]] == [
        ("web_search", None),
        ("roll", "dice"),
        ("roll", "dice"),
    ]
    assert [(one["call_id"], one["result"], one["result_text"]) for one in fields[3:]] == [
        ("ws_1", "ok", None),
        ("mcp_1", "ok", "4"),
        ("mcp_2", "failed", "gone"),
    ]
    assert answer.native == {"id": "resp_1", "items": [search, call, failed, MESSAGE]}


@requirement("openai:responses:hosted-tools")
@pytest.mark.parametrize(("selected", "approve"), [("allow_once", True), ("deny", False), (None, False)])
def test_an_approval_of_a_remote_tool_is_asked_and_answered(selected: str | None, approve: bool) -> None:
    answer = read(*done(CALL, APPROVAL))
    (ask,) = answer.asks
    assert (ask.kind, ask.tool_name, ask.target, ask.peer_request_id) == ("approval", "roll", "dice", "mcpr_1")
    response = HostResponse(request_id="a1", selected_option=selected, reason="because")
    said = AssistantMessage((), answer.calls, answer.native, ORIGIN)
    request = ModelRequest(model="m", system="", messages=(said, ToolMessage((), ((ask, response),))))
    assert request_body(request, OpenAiConfig(), "openai")["input"][-1] == {
        "type": "mcp_approval_response",
        "approval_request_id": "mcpr_1",
        "approve": approve,
        "reason": "because",
    }


@requirement("openai:responses:hosted-tools")
def test_secrets_of_a_delegated_source_are_sent_only_when_it_may_share_them() -> None:
    header = {"name": "Authorization", "value": "secret"}
    for share in (False, True):
        source = ToolSourceDescriptor.model_validate(
            {
                "name": "dice",
                "kind": "mcp_http",
                "url": "https://dice.example",
                "headers": [header],
                "tool_names": ["roll"],
                "share_secrets": share,
            }
        )
        request = ModelRequest(model="m", system="", messages=())
        body = request_body(
            request,
            OpenAiConfig(),
            "openai",
            internal_tools=["web_search"],
            delegation=Delegation(tool_sources=[source]),
        )
        search, tool = body["tools"]
        assert search == {"type": "web_search"}
        assert (tool["server_url"], tool["allowed_tools"], tool["require_approval"]) == (
            "https://dice.example",
            ["roll"],
            "always",
        )
        assert ("secret" in json.dumps(body)) is share


@requirement("openai:responses:events")
def test_unknown_events_are_told_and_harm_nothing() -> None:
    listener = Listener()
    answer = read({"type": "response.new_thing", "x": 1}, *done(MESSAGE), listener=listener)
    assert listener.unknown_kinds == ["response.new_thing"] and answer.said == (Said("hi"),)
