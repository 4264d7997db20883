"""The pure half: what is told fits the protocol's schema, and what the protocol has no word for is still told."""

from __future__ import annotations

from typing import Any

import pytest
from acp import schema
from pydantic import TypeAdapter

from contract_tests.requirements import requirement
from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ImageBlock, ResourceBlock, ResourceLinkBlock, TextBlock
from harness.contract.delegation import RequestPolicy
from harness.contract.output import OutputItem, StopReason, TurnStatus
from harness.contract.requests import HostRequest, HostResponse, Question, RequestOption
from harness.contract.usage import UsageInfo
from harness.errors import (
    ConnectorUnavailable,
    ContentNotSupported,
    InvalidArgument,
    PeerLost,
    TurnInProgress,
    UnknownConversation,
)
from harness.orchestrator.completion import Completion
from harness.surfaces.acp_agent.asks import form_decision, form_params, permission_decision, permission_params
from harness.surfaces.acp_agent.incoming import content_of, servers_of
from harness.surfaces.acp_agent.modes import Choices
from harness.surfaces.acp_agent.outcome import answer_of, fault_of
from harness.surfaces.acp_agent.params import NewSession, read_params
from harness.surfaces.acp_agent.updates import TurnUpdates, user_said

ITEM: TypeAdapter[OutputItem] = TypeAdapter(OutputItem)
EDIT = '{"file_path":"/w/a.py","old_string":"a","new_string":"b"}'


def told(*items: dict[str, Any], responses: tuple[HostResponse, ...] = ()) -> list[dict[str, Any]]:
    """The updates of these items; each fits the schema."""
    updates = TurnUpdates()
    for response in responses:
        updates.answered(response)
    found: list[dict[str, Any]] = []
    for number, item in enumerate(items, 1):
        found += updates.see(ITEM.validate_python({"sequence_no": number, "at": 0, **item}))
    for update in found:
        schema.SessionNotification.model_validate({"sessionId": "s", "update": update})
    return found


def opened(kind: str, request_id: str, **members: Any) -> dict[str, Any]:
    return {"kind": "request_opened", "request": {"request_id": request_id, "kind": kind, **members}}


def resolved(request_id: str, outcome: str, **members: Any) -> dict[str, Any]:
    return {"kind": "request_resolved", "request_id": request_id, "outcome": outcome, **members}


def started(call_id: str, tool: str, arguments: str = "{}") -> dict[str, Any]:
    return {"kind": "internal_tool_started", "call_id": call_id, "tool_name": tool, "arguments_json": arguments}


END = {"kind": "turn_ended", "status": "completed", "stop_reason": "end_turn"}


@requirement("acp-agent:updates")
def test_what_was_streamed_is_not_said_again_and_what_was_not_is() -> None:
    found = told(
        {"kind": "text_delta", "text": "a", "item_id": "m1"},
        {"kind": "message", "content": [{"type": "text", "text": "a"}], "item_id": "m1"},
        {"kind": "message", "content": [{"type": "text", "text": "b"}], "item_id": "m2"},
        {"kind": "text_delta", "text": "half", "item_id": "m3"},
        {"kind": "item_discarded", "item_id": "m3", "reason": "restarted"},
        {"kind": "message", "content": [{"type": "text", "text": "whole"}], "item_id": "m3"},
        {"kind": "text_delta", "text": "from below", "item_id": "s1", "parent_call_id": "c1"},
        {"kind": "notice", "code": "peer_started", "text": "pid 1"},
        {"kind": "notice", "code": "history_lost", "text": "gone"},
    )
    said = [(one["sessionUpdate"].split("_")[1], one["content"]["text"]) for one in found]
    assert said == [
        ("message", "a"),
        ("message", "b"),
        ("message", "half"),
        ("thought", "(What was said last does not count: restarted.)"),
        ("message", "whole"),
        ("thought", "from below"),
        ("thought", "(history lost: gone)"),
    ]


@requirement("acp-agent:updates")
def test_a_call_is_told_once_and_ends_once_whatever_the_order() -> None:
    found = told(
        started("c1", "Edit", EDIT),
        opened("approval", "a1", call_id="c1", tool_name="Edit", arguments_json=EDIT),
        resolved("a1", "answered"),
        {"kind": "internal_tool_finished", "call_id": "c1", "result": "ok"},
        started("c2", "Bash"),
        END,
    )
    assert [(one["sessionUpdate"], one["toolCallId"], one["status"]) for one in found] == [
        ("tool_call", "c1", "in_progress"),
        ("tool_call_update", "c1", "pending"),
        ("tool_call_update", "c1", "in_progress"),
        ("tool_call_update", "c1", "completed"),
        ("tool_call", "c2", "in_progress"),
        ("tool_call_update", "c2", "completed"),
    ]
    assert found[0]["content"] == [{"type": "diff", "path": "/w/a.py", "oldText": "a", "newText": "b"}]
    assert found[0]["locations"] == [{"path": "/w/a.py"}]


@requirement("acp-agent:updates")
def test_a_tool_of_this_host_shows_its_result_and_identical_calls_are_two() -> None:
    responses = (
        HostResponse(request_id="w", content=[TextBlock(text="3 °C"), ImageBlock(data="AA==", media_type="image/png")]),
        HostResponse(request_id="w~2", content=[TextBlock(text="Error: no")], is_error=True),
    )
    found = told(
        opened("tool_call", "w", call_id="w", tool_name="get_weather", arguments_json='{"city":"Oslo"}'),
        opened("tool_call", "w~2", call_id="w", tool_name="get_weather", arguments_json='{"city":"Oslo"}'),
        resolved("w~2", "answered", is_error=True),
        resolved("w", "answered"),
        responses=responses,
    )
    ends = {one["toolCallId"]: one for one in found[2:]}
    assert [one["sessionUpdate"] for one in found[:2]] == ["tool_call", "tool_call"]
    assert (ends["w"]["status"], ends["w~2"]["status"]) == ("completed", "failed")
    assert [block["content"]["type"] for block in ends["w"]["content"]] == ["text", "image"]


@requirement("acp-agent:updates")
@pytest.mark.parametrize(
    ("tool", "arguments", "title", "kind"),
    [
        ("Bash", '{"command":"rm x"}', "Bash(rm x)", "execute"),
        ("exec_command", '{"cwd":"/w","command":"rm x"}', "exec_command(rm x)", "execute"),
        ("Grep", '{"pattern":"x"}', 'Grep({"pattern":"x"})', "search"),
        ("Write", '{"file_path":"a","content":"x"}', "Write(a)", "edit"),
        ("fetch_page", '{"url":"http://h"}', "fetch_page(http://h)", "fetch"),
        ("remove", '{"path":"/x"}', "remove(/x)", "other"),
        ("get_weather", '{"city":"Oslo"}', "get_weather", "other"),
        ("odd", "no JSON", "odd", "other"),
    ],
)
def test_a_call_says_what_it_is_about(tool: str, arguments: str, title: str, kind: str) -> None:
    [call] = told(started("c1", tool, arguments))
    assert (call["title"], call["kind"]) == (title, kind)


@requirement("acp-agent:load")
def test_every_block_of_a_message_can_be_replayed() -> None:
    blocks = [
        TextBlock(text="x"),
        ImageBlock(data="AA==", media_type="image/png"),
        ResourceBlock(uri="file:///a", media_type="text/plain", text="t"),
        ResourceBlock(uri="file:///b", data="AA=="),
        ResourceLinkBlock(uri="file:///c"),
    ]
    for update in user_said(blocks):
        schema.SessionNotification.model_validate({"sessionId": "s", "update": update})


@requirement("acp-agent:permissions")
def test_options_keep_their_ids_and_get_the_nearest_kind() -> None:
    kinds = ["allow_once", "allow_always", "deny", "deny_and_interrupt", "other", "of_a_newer_contract"]
    options = [RequestOption(id=f"id-{kind}", kind=kind, description="told") for kind in kinds]
    request = HostRequest(request_id="a1", kind="approval", tool_name="Bash", options=options)
    params = permission_params("s", "c1", request)
    schema.RequestPermissionRequest.model_validate(params)
    assert [one["optionId"] for one in params["options"]] == [option.id for option in options]
    # what may allow is never offered as a refusal
    assert [one["kind"] for one in params["options"]][2:] == [
        "reject_once",
        "reject_once",
        "allow_always",
        "allow_always",
    ]
    chosen = permission_decision(request, {"outcome": {"outcome": "selected", "optionId": "id-deny"}})
    assert chosen is not None
    assert chosen.response.selected_option == "id-deny"
    assert chosen.refusal is not None
    assert permission_decision(request, {"outcome": {"outcome": "cancelled"}}) is None
    for answer in ({"outcome": {"outcome": "selected", "optionId": "none"}}, {"outcome": 1}, None):
        with pytest.raises(InvalidArgument):
            permission_decision(request, answer)


@requirement("acp-agent:questions")
def test_questions_become_a_form_and_its_content_answers() -> None:
    request = HostRequest(
        request_id="q1",
        kind="user_question",
        questions=[
            Question.model_validate(
                {"id": "c", "text": "Color?", "options": [{"id": "r", "label": "Red"}], "allow_free_text": True}
            ),
            Question.model_validate(
                {"id": "m", "text": "More?", "options": [{"id": "a", "label": "A"}], "multi_select": True}
            ),
            Question(id="w", text="Why?"),
        ],
    )
    params = form_params("s", request)
    schema.CreateFormSessionElicitationRequest.model_validate(params)
    assert params["requestedSchema"]["required"] == ["m", "w"]
    content = {"c": "r", "c_custom": "Green", "m": ["a"], "w": "so"}
    answers = form_decision(request, {"action": "accept", "content": content}).response.answers
    assert [(one.question_id, one.selected, one.text) for one in answers] == [
        ("c", [], "Green"),
        ("m", ["a"], None),
        ("w", [], "so"),
    ]
    declined = form_decision(request, {"action": "decline"})
    assert declined.response.action == "decline"
    assert declined.refusal is not None


@requirement("acp-agent:questions")
def test_a_peers_own_form_is_shown_and_answered_as_it_is() -> None:
    form = '{"type":"object","properties":{"n":{"type":"integer"}}}'
    request = HostRequest(request_id="q1", kind="user_question", answer_schema_json=form, description="How many?")
    assert form_params("s", request)["requestedSchema"]["properties"] == {"n": {"type": "integer"}}
    response = form_decision(request, {"action": "accept", "content": {"n": 3}}).response
    assert response.structured_content_json == '{"n": 3}'


@requirement("acp-agent:errors")
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidArgument("x"), -32602),
        (ContentNotSupported("x"), -32602),
        (UnknownConversation("x"), -32002),
        (TurnInProgress("x"), -32600),
        (ConnectorUnavailable("x", reason="not_logged_in"), -32000),
        (ConnectorUnavailable("x"), -32603),
        (PeerLost("x", exit_code=1), -32603),
    ],
)
def test_errors_have_the_nearest_code_and_ours(error: Any, code: int) -> None:
    fault = fault_of(error)
    assert (fault.code, fault.data["code"], fault.data["retryable"]) == (code, error.code, error.retryable)


@requirement("acp-agent:stop-reasons")
def test_usage_is_left_out_where_a_direction_is_not_known() -> None:
    def answer(**usage: int) -> dict[str, Any]:
        completion = Completion(
            status=TurnStatus.COMPLETED,
            stop_reason=StopReason.BUDGET,
            usage=UsageInfo.model_validate(usage),
            duration_ms=1,
        )
        return schema.PromptResponse.model_validate(answer_of(completion)).model_dump(exclude_none=True)

    assert answer(input_tokens=1)["stop_reason"] == "max_turn_requests"
    assert "usage" not in answer(input_tokens=1)
    assert answer(input_tokens=1, output_tokens=0)["usage"]["total_tokens"] == 1


@requirement("acp-agent:modes")
def test_what_opens_a_session_fits_the_schema() -> None:
    able = LlmCapabilities(turn_options=["model", "effort"])
    opened_with = Choices.of(RequestPolicy(), ["a", "b"], able).told()
    schema.NewSessionResponse.model_validate({"sessionId": "s", **opened_with})
    changed = Choices.of(RequestPolicy(), ["a", "b"], able).chosen("model", "b").chosen("effort", "low")
    assert (changed.turn_options.model, changed.turn_options.effort) == ("b", "low")
    assert Choices.of(RequestPolicy(), ["a", "b"], able).turn_options.model is None
    for config_id, value in (("model", "c"), ("taste", "x")):
        with pytest.raises(InvalidArgument):
            changed.chosen(config_id, value)


@requirement("acp-agent:content")
@pytest.mark.parametrize(
    ("block", "words"),
    [
        ({"type": "smell"}, "block 1 of the prompt has the type 'smell'"),
        ({"type": "text"}, "block 1 of the prompt has no text 'text'"),
        ({"type": "resource"}, "has no object 'resource'"),
        ({"type": "resource", "resource": {"uri": "f:///a.pdf", "blob": "AA==", "mimeType": "application/pdf"}}, "pdf"),
        ({"type": "resource", "resource": {"uri": "f:///a.png", "blob": "AA==", "mimeType": "image/png"}}, "image"),
    ],
)
def test_a_block_that_cannot_be_used_is_named(block: dict[str, Any], words: str) -> None:
    with pytest.raises((InvalidArgument, ContentNotSupported), match=words):
        content_of([block], LlmCapabilities())


@requirement("acp-agent:content")
def test_documents_go_as_they_are_where_the_connector_takes_them() -> None:
    resource = {"uri": "f:///a.pdf", "blob": "AA==", "mimeType": "application/pdf"}
    able = LlmCapabilities(documents_in_prompt=["application/pdf"])
    [block] = content_of([{"type": "resource", "resource": resource}], able)
    assert block == ResourceBlock(uri="f:///a.pdf", media_type="application/pdf", data="AA==")


@requirement("acp-agent:servers")
def test_servers_keep_what_they_were_given() -> None:
    params = {
        "cwd": "/w",
        "mcpServers": [
            {"name": "a", "command": "/bin/a", "args": ["-x"], "env": [{"name": "K", "value": "v"}]},
            {"type": "http", "name": "b", "url": "http://h/mcp", "headers": [{"name": "H", "value": "v"}]},
        ],
    }
    program, address = (server.source for server in servers_of(read_params(NewSession, params).mcp_servers))
    assert (program.kind, program.command, program.args, program.env[0].value) == ("mcp_stdio", "/bin/a", ["-x"], "v")
    assert (address.kind, address.url, address.headers[0].name) == ("mcp_http", "http://h/mcp", "H")
    with pytest.raises(InvalidArgument, match="'cwd' cannot be used"):
        read_params(NewSession, {})
    with pytest.raises(InvalidArgument, match="'x' has no 'url'"):
        servers_of(read_params(NewSession, {"cwd": "/", "mcpServers": [{"type": "http", "name": "x"}]}).mcp_servers)
