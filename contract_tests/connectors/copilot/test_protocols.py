"""Both of Copilot's wires without a process, as 1.0.102 speaks them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bridge_mcp.mapping import map_tools
from connectors._length_framer import LengthFramer
from connectors.acp.handshake import Opening
from connectors.acp.names import ToolNames
from connectors.copilot.acp_protocol import CopilotAcpProtocol
from connectors.copilot.agent import COPILOT_ACP
from connectors.copilot.argv import acp_launch, session_params
from connectors.copilot.config import CopilotOptions
from connectors.copilot.sdk_protocol import CopilotSdkProtocol, SdkOpening
from contract_tests.requirements import requirement
from harness.contract import (
    Answer,
    ConversationOptions,
    HostRequest,
    HostResponse,
    TextBlock,
    ToolDescriptor,
    TurnOptions,
)
from harness.errors import ConnectorUnavailable, NotSupported
from harness.turn.events import OutputProduced, RequestRaised, RequestWithdrawn, TurnEnded, TurnEvent, TurnFailed

TOOLS = [ToolDescriptor(name="look", read_only=True)]


class SdkWire:
    """A session that is open and runs a turn."""

    def __init__(self, *, version: Any = 3) -> None:
        tools = dict(map_tools(TOOLS).ours)
        self.protocol = CopilotSdkProtocol(ConversationOptions(tools=TOOLS), tools, SdkOpening("s", {}))
        self.events: list[TurnEvent] = []
        self.framer = LengthFramer()
        self.protocol.connect()
        self.feed({"id": 1, "result": {"ok": True, "protocolVersion": version, "version": "1.0.102"}})
        self.feed({"id": 2, "result": {"sessionId": "s"}})
        self.protocol.start_turn([TextBlock(text="Go.")], TurnOptions())
        self.sent()

    def feed(self, *messages: Any) -> list[TurnEvent]:
        events = self.protocol.receive([json.dumps(one).encode() for one in messages])
        self.events += events
        return events

    def event(self, kind: str, **data: Any) -> list[TurnEvent]:
        params = {"sessionId": "s", "event": {"type": kind, "data": data}}
        return self.feed({"method": "session.event", "params": params})

    def sent(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.framer.feed(self.protocol.data_to_send())]

    @property
    def requests(self) -> list[HostRequest]:
        return [event.request for event in self.events if isinstance(event, RequestRaised)]


def ended(events: list[TurnEvent]) -> TurnEnded | TurnFailed:
    [end] = [event for event in events if isinstance(event, TurnEnded | TurnFailed)]
    return end


@requirement("copilot:sdk", "R-M10")
def test_another_version_of_the_server_mode_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConnectorUnavailable, match="mode=acp"):
        SdkWire(version=4)


@requirement("copilot:sdk", "R-G1", "R-G4")
def test_calls_have_the_models_ids_and_order_and_are_answered_once() -> None:
    wire = SdkWire()
    calls = [{"toolCallId": call_id, "name": "look", "arguments": {"n": 1}} for call_id in ("c1", "c2")]
    wire.event("assistant.message", messageId="m1", content="I look.", toolRequests=calls)
    for key, call_id in (("k2", "c2"), ("k1", "c1")):
        wire.event("external_tool.requested", requestId=key, toolCallId=call_id, toolName="look", arguments={"n": 1})
    assert [(one.call_id, one.order) for one in wire.requests] == [("c2", 1), ("c1", 0)]
    response = HostResponse(request_id="", content=[TextBlock(text="full")], is_error=True)
    wire.protocol.respond(wire.requests[0], response)
    wire.protocol.respond(wire.requests[0], response)
    [told] = wire.sent()
    assert told["params"]["requestId"] == "k2"
    assert told["params"]["result"] == {"textResultForLlm": "Error: full", "resultType": "failure"}
    assert wire.event("external_tool.completed", requestId="k1") == [RequestWithdrawn("k1")]
    assert wire.event("external_tool.completed", requestId="k2") == []


@requirement("copilot:sdk", "R-D10")
@pytest.mark.parametrize(
    ("selected", "result"),
    [
        ("allow_once", {"kind": "approve-once"}),
        ("deny", {"kind": "reject", "feedback": "No."}),
        (
            "allow_always",
            {"kind": "approve-for-session", "approval": {"kind": "commands", "commandIdentifiers": ["ls"]}},
        ),
    ],
)
def test_an_approval_is_the_hosts_decision_and_no_wider(selected: str, result: dict[str, Any]) -> None:
    wire = SdkWire()
    asked = {"kind": "shell", "toolCallId": "c1", "fullCommandText": "ls", "commands": [{"identifier": "ls"}]}
    wire.event("permission.requested", requestId="k", permissionRequest=asked)
    [request] = wire.requests
    assert (request.call_id, request.target, request.tool_name) == ("c1", "ls", "bash")
    wire.protocol.respond(request, HostResponse(request_id="", selected_option=selected, reason="No."))
    assert wire.sent()[0]["params"]["result"] == result


@requirement("copilot:sdk", "R-D10")
def test_a_denial_without_a_reason_goes_on_too() -> None:
    wire = SdkWire()
    wire.event("permission.requested", requestId="k", permissionRequest={"kind": "read", "toolCallId": "c1"})
    wire.protocol.respond(wire.requests[0], HostResponse(request_id="", selected_option="reject"))
    assert wire.sent()[0]["params"]["result"] == {"kind": "reject", "feedback": "The host denied this tool use."}


@requirement("copilot:sdk", "R-D11")
def test_a_question_belongs_to_its_call_and_takes_a_choice_a_text_or_a_no() -> None:
    wire = SdkWire()
    wire.event("user_input.requested", toolCallId="c1", question="Which?")
    params = {"sessionId": "s", "question": "Which?", "choices": ["red", "blue"], "allowFreeform": True}
    for number in range(3):
        wire.feed({"id": number, "method": "userInput.request", "params": params})
    answers = [
        {"answers": [Answer(question_id="q1", selected=["red"])]},
        {"answers": [Answer(question_id="q1", text="teal")]},
        {"action": "decline", "reason": "Later."},
    ]
    for request, fields in zip(wire.requests, answers, strict=True):
        wire.protocol.respond(request, HostResponse.model_validate({"request_id": "", **fields}))
    assert {request.call_id for request in wire.requests} == {"c1"}
    assert [one["result"] for one in wire.sent()] == [
        {"answer": "red", "wasFreeform": False},
        {"answer": "teal", "wasFreeform": True},
        {"answer": "Later.", "wasFreeform": True},
    ]


@requirement("copilot:sdk", "R-H1")
def test_an_abort_is_sent_once_and_the_turn_ends_cancelled_with_nothing_open() -> None:
    wire = SdkWire()
    wire.event("external_tool.requested", requestId="k", toolCallId="c1", toolName="look", arguments={})
    wire.protocol.interrupt()
    wire.protocol.interrupt()
    assert [one["method"] for one in wire.sent()] == ["session.abort"]
    wire.event("session.idle", aborted=True)
    found = ended(wire.events)
    assert isinstance(found, TurnEnded)
    assert found.stop_reason == "cancelled"


@requirement("copilot:sdk")
def test_a_failure_ends_the_turn_when_the_session_is_idle_again() -> None:
    wire = SdkWire()
    wire.event("assistant.message_delta", messageId="m1", deltaContent="Hal")
    [discarded, _] = wire.event("assistant.turn_retry", reason="rate_limit")
    assert isinstance(discarded, OutputProduced)
    wire.event("session.error", errorType="query", message="429 slow", statusCode=429)
    wire.event("session.idle")
    found = ended(wire.events)
    assert isinstance(found, TurnFailed)
    assert (found.error.code, found.error.detail["reason"]) == ("provider_error", "rate_limit")


@requirement("copilot:acp")
def test_a_failure_that_looks_like_an_answer_is_one() -> None:
    names = ToolNames("host", ["look"])
    protocol = CopilotAcpProtocol(COPILOT_ACP, ConversationOptions(), names, Opening({"cwd": "/w"}))
    protocol.initialize()
    protocol.receive([b'{"id":1,"result":{"protocolVersion":1}}'])
    protocol.open_session([])
    protocol.receive([b'{"id":2,"result":{"sessionId":"s"}}'])
    protocol.start_turn([TextBlock(text="Go.")], TurnOptions())

    def event(kind: str, **data: Any) -> dict[str, Any]:
        params = {"sessionId": "s", "type": kind, "data": data}
        return {"method": "github.com/copilot/sessionEvent", "params": params}

    def chunk(text: str) -> dict[str, Any]:
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        return {"method": "session/update", "params": {"sessionId": "s", "update": update}}

    messages = [
        event("session.info", infoType="model_retry", message="Retrying..."),
        chunk("Info: Retrying..."),
        event("session.error", errorType="authentication", message="No.", statusCode=401),
        chunk("Error: No."),
        {"id": 3, "result": {"stopReason": "end_turn"}},
    ]
    events = protocol.receive([json.dumps(one).encode() for one in messages])
    found = ended(events)
    assert isinstance(found, TurnFailed)
    assert found.error.detail["reason"] == "auth"
    assert len(events) == 1, "nothing of it is the model's text"


@requirement("copilot:acp", "R-K1")
def test_secrets_and_tools_stay_out_of_the_command_line(tmp_path: Any) -> None:
    copilot = CopilotOptions.model_validate({"base_url": "http://127.0.0.1:9/v1", "key": "sk-secret"})
    options = ConversationOptions(model="m", tools=TOOLS)
    started = acp_launch("/bin/copilot", copilot, options, {"GH_TOKEN": "ghp"}, tmp_path)
    assert "sk-secret" not in " ".join(started.argv)
    assert "look" not in started.argv
    assert "GH_TOKEN" not in started.env, "with a provider of its own it gets no login"
    assert started.argv[started.argv.index("--available-tools") + 1] == "host"
    with pytest.raises(NotSupported, match="mode 'sdk'"):
        acp_launch("/bin/copilot", copilot, options.model_copy(update={"system_prompt": "x"}), {}, tmp_path)


@requirement("copilot:sdk", "R-E5")
def test_a_session_shows_the_model_the_hosts_tools_only() -> None:
    params = session_params(CopilotOptions(), ConversationOptions(tools=TOOLS), map_tools(TOOLS).tools, [])
    assert params["availableTools"] == ["look"]
    assert (params["enableConfigDiscovery"], params["requestUserInput"]) == (False, False)
    assert params["tools"][0]["skipPermission"] is True
