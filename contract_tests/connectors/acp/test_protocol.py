"""ACP's wire without a process, as the recorded agents speak it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.acp.agent import CLAUDE_AGENT_ACP, CODEX_ACP, GEMINI, OPENCODE, Agent
from connectors.acp.client_calls import ClientRights, Write
from connectors.acp.handshake import Opening
from connectors.acp.names import ToolNames
from connectors.acp.protocol import AcpProtocol
from contract_tests.requirements import requirement
from harness.contract import Answer, ConversationOptions, HostRequest, HostResponse, TextBlock, TurnOptions
from harness.errors import ConnectorUnavailable, ContentNotSupported, NotSupported
from harness.turn.events import OutputProduced, RequestRaised, TurnEnded, TurnEvent, TurnFailed, UsageReported


class Wire:
    """A protocol with an open session and a running turn, with what came out of it."""

    def __init__(self, agent: Agent = OPENCODE, *, begins: bool = True, **opening: Any) -> None:
        names = ToolNames("host", ["look", "save"])
        self.protocol = AcpProtocol(agent, ConversationOptions(), names, Opening({"cwd": "/work"}, **opening))
        self.events: list[TurnEvent] = []
        if begins:
            self.initialize()
            self.open()
            self.begin()

    def initialize(self, version: Any = 1, **capabilities: Any) -> None:
        self.protocol.initialize()
        [asked] = self.sent()
        told = {"mcpCapabilities": {"http": True}, "promptCapabilities": {"image": True}, **capabilities}
        answer = {"protocolVersion": version, "agentInfo": {"version": "1.2.3"}, "agentCapabilities": told}
        self.feed({"id": asked["id"], "result": answer})

    def open(self, **result: Any) -> dict[str, Any]:
        self.protocol.open_session([])
        asked = self.sent()[-1]
        self.feed({"id": asked["id"], "result": {"sessionId": "s", **result}})
        return asked

    def begin(self, text: str = "Go.") -> None:
        self.events += self.protocol.start_turn([TextBlock(text=text)], TurnOptions())
        [self.prompt] = self.sent()

    def end(self, **result: Any) -> list[TurnEvent]:
        return self.feed({"id": self.prompt["id"], "result": {"stopReason": "end_turn", **result}})

    def feed(self, *messages: Any) -> list[TurnEvent]:
        events = self.protocol.receive([json.dumps(one).encode() for one in messages])
        self.events += events
        return events

    def update(self, update_kind: str, **fields: Any) -> list[TurnEvent]:
        params = {"sessionId": "s", "update": {"sessionUpdate": update_kind, **fields}}
        return self.feed({"jsonrpc": "2.0", "method": "session/update", "params": params})

    def say(self, text: str, **fields: Any) -> None:
        self.update("agent_message_chunk", content={"type": "text", "text": text}, **fields)

    def permission(self, rpc_id: int, call: dict[str, Any]) -> list[TurnEvent]:
        options = [
            {"optionId": "once", "kind": "allow_once", "name": "Once"},
            {"optionId": "always", "kind": "allow_always", "name": "Always"},
            {"optionId": "no", "kind": "reject_once", "name": "No"},
        ]
        params = {"sessionId": "s", "toolCall": call, "options": options}
        return self.feed({"id": rpc_id, "method": "session/request_permission", "params": params})

    def sent(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.protocol.data_to_send().splitlines()]

    @property
    def requests(self) -> list[HostRequest]:
        return [event.request for event in self.events if isinstance(event, RequestRaised)]

    def shown(self) -> list[tuple[Any, ...]]:
        short: list[tuple[Any, ...]] = []
        for one in self.events:
            if isinstance(one, OutputProduced):
                kind, fields = str(one.item.model_fields["kind"].default), one.fields
                if kind == "message":
                    short.append((kind, "".join(block.text for block in fields["content"]), fields["phase"]))
                else:
                    short.append((kind, fields.get("code") or fields.get("text") or fields.get("call_id")))
        return short


def ended(wire: Wire) -> TurnEnded | TurnFailed:
    [end] = [event for event in wire.events if isinstance(event, TurnEnded | TurnFailed)]
    return end


# --- start -----------------------------------------------------------------------------------------------------------


@requirement("R-M10")
@pytest.mark.parametrize("version", [2, "1", None, {}])
def test_another_major_version_is_refused_before_a_session_is_opened(version: Any) -> None:
    wire = Wire(begins=False)
    with pytest.raises(ConnectorUnavailable, match="not 1"):
        wire.initialize(version)
    assert wire.sent() == []


@requirement("R-M10")
def test_unknown_capabilities_are_tolerated() -> None:
    wire = Wire(begins=False)
    wire.initialize(somethingNew={"deep": [1]})
    assert wire.open()["method"] == "session/new"
    assert wire.protocol.session_id == "s"


@requirement("R-F4", "acp:resume")
@pytest.mark.parametrize(("agent", "method"), [(OPENCODE, "session/resume"), (GEMINI, "session/new")])
def test_an_earlier_session_is_taken_up_as_the_agent_understands_it(agent: Agent, method: str) -> None:
    wire = Wire(agent, begins=False, session_id="earlier")
    wire.initialize()
    assert wire.open()["method"] == method


@requirement("acp:resume", "R-F2", "R-F5")
def test_a_replayed_history_is_no_news_and_a_missing_session_is_told() -> None:
    wire = Wire(begins=False, session_id="earlier")
    wire.initialize()
    wire.protocol.open_session([])
    [asked] = wire.sent()
    wire.update("agent_message_chunk", content={"type": "text", "text": "said before"})
    wire.feed({"id": asked["id"], "error": {"code": -32002, "message": "not found"}})
    assert wire.events == []
    assert wire.protocol.resume_failed


@requirement("acp:settings")
def test_mode_and_model_are_set_before_the_first_message() -> None:
    wire = Wire(CODEX_ACP, begins=False, model="m2", mode="ask")
    wire.initialize()
    options = [{"id": "model", "category": "model", "currentValue": "m1", "options": []}]
    modes = {"currentModeId": "auto", "availableModes": [{"id": "auto"}, {"id": "ask"}]}
    wire.open(modes=modes, configOptions=options)
    [mode] = wire.sent()
    assert (mode["method"], mode["params"]["modeId"], wire.protocol.session_id) == ("session/set_mode", "ask", None)
    wire.feed({"id": mode["id"], "result": {}})
    [model] = wire.sent()
    assert (model["method"], model["params"]["value"]) == ("session/set_config_option", "m2")
    wire.feed({"id": model["id"], "result": {}})
    [title] = wire.sent()
    assert title["method"] == "session/set_title", "else a model would make one up"
    wire.feed({"id": title["id"], "error": {"code": -32601, "message": "no such method"}})
    assert wire.protocol.session_id == "s"


@requirement("acp:settings")
def test_a_mode_the_agent_does_not_have_is_refused() -> None:
    wire = Wire(begins=False, mode="wild")
    wire.initialize()
    with pytest.raises(NotSupported, match="'wild'"):
        wire.open(modes={"currentModeId": "a", "availableModes": [{"id": "a"}]})


@requirement("acp:not-logged-in")
def test_an_agent_that_is_not_logged_in_says_what_to_type() -> None:
    wire = Wire(begins=False)
    wire.initialize()
    wire.protocol.open_session([])
    [asked] = wire.sent()
    with pytest.raises(ConnectorUnavailable, match="opencode auth login"):
        wire.feed({"id": asked["id"], "error": {"code": -32000, "message": "Authentication required"}})


# --- a turn ----------------------------------------------------------------------------------------------------------


@requirement("acp:turn")
def test_what_is_said_before_a_call_is_commentary_and_the_rest_is_final() -> None:
    wire = Wire()
    wire.say("I ", messageId="m1")
    wire.say("look.", messageId="m1")
    wire.update("tool_call", toolCallId="c1", title="host_look", status="pending", rawInput={})
    wire.say("Done.", messageId="m2")
    wire.end()
    assert wire.shown() == [
        ("text_delta", "I "),
        ("text_delta", "look."),
        ("message", "I look.", "commentary"),
        ("text_delta", "Done."),
        ("message", "Done.", "final"),
    ]


@requirement("acp:turn")
@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("end_turn", "end_turn"),
        ("max_turn_requests", "max_turns"),
        ("refusal", "refusal"),
        ("cancelled", "cancelled"),
        ("gave_up", "gave_up"),
    ],
)
def test_every_stop_reason_has_its_name_and_an_unknown_one_keeps_its_own(told: str, reason: str) -> None:
    wire = Wire()
    wire.end(stopReason=told)
    found = ended(wire)
    assert isinstance(found, TurnEnded)
    assert found.stop_reason == reason


@requirement("acp:turn", "R-B9", "R-D9")
def test_unknown_updates_and_vendor_messages_are_kept_apart_and_end_nothing() -> None:
    wire = Wire()
    wire.update("hologram")
    wire.update("hologram")
    wire.feed({"method": "_vendor/thing", "params": {}}, {"id": 5, "method": "terminal/create", "params": {}})
    assert wire.shown() == [("notice", "unknown_peer_event")] * 2
    assert wire.sent()[0]["error"]["code"] == -32601
    wire.end()
    assert wire.protocol.turn_is_over


@requirement("acp:own-tools")
def test_a_tool_of_the_agents_own_is_shown_from_pieces_and_closed_with_the_turn() -> None:
    wire = Wire()
    wire.update("tool_call", toolCallId="c1", title="bash", kind="execute", status="pending", rawInput={})
    wire.update("tool_call_update", toolCallId="c1", title="ls", status="in_progress", rawInput={"command": "ls"})
    content = [{"type": "content", "content": {"type": "text", "text": "a.txt"}}]
    wire.update("tool_call_update", toolCallId="c1", status="completed", content=content)
    wire.update("tool_call", toolCallId="c2", title="read", status="in_progress", rawInput={"path": "a"})
    wire.end()
    items = [event for event in wire.events if isinstance(event, OutputProduced)]
    assert [(one.fields.get("tool_name"), one.fields.get("result")) for one in items] == [
        ("bash", None),
        (None, "ok"),
        ("read", None),
        (None, "unknown"),
    ]
    assert items[1].fields["result_text"] == "a.txt"


@requirement("acp:provider-errors")
@pytest.mark.parametrize(
    ("agent", "error", "code", "reason"),
    [
        (OPENCODE, {"code": -32603, "message": "x", "data": {"errorName": "APIError"}}, "provider_error", "server"),
        (GEMINI, {"code": 401, "message": "key"}, "provider_error", "auth"),
        (GEMINI, {"code": 429, "message": "slow"}, "provider_error", "rate_limit"),
        (CLAUDE_AGENT_ACP, {"code": -32603, "message": "API Error: 400 bad"}, "provider_error", "request"),
        (CLAUDE_AGENT_ACP, {"code": -32000, "message": "auth"}, "provider_error", "auth"),
        (OPENCODE, {"code": -32603, "message": "context window is full"}, "context_overflow", None),
    ],
)
def test_a_failure_of_the_provider_has_its_reason(agent: Agent, error: Any, code: str, reason: str | None) -> None:
    wire = Wire(agent)
    wire.feed({"id": wire.prompt["id"], "error": error})
    found = ended(wire)
    assert isinstance(found, TurnFailed)
    assert (found.error.code, found.error.detail.get("reason")) == (code, reason)


@requirement("acp:usage", "R-L1")
@pytest.mark.parametrize(
    ("agent", "result", "figures"),
    [
        # cached tokens beside the input, and in it
        (CLAUDE_AGENT_ACP, {"usage": {"inputTokens": 200, "outputTokens": 68, "cachedReadTokens": 40,
                                      "totalTokens": 308}}, (240, 68)),
        (OPENCODE, {"usage": {"inputTokens": 120, "outputTokens": 34, "cachedReadTokens": 20, "totalTokens": 154}},
         (120, 34)),
        (GEMINI, {"_meta": {"quota": {"token_count": {"input_tokens": 240, "output_tokens": 68}}}}, (240, 68)),
    ],
)  # fmt: skip
def test_figures_are_read_as_each_agent_means_them(agent: Agent, result: Any, figures: tuple[int, int]) -> None:
    wire = Wire(agent)
    wire.end(**result)
    [usage] = [event.usage for event in wire.events if isinstance(event, UsageReported)]
    assert (usage.input_tokens, usage.output_tokens) == figures
    assert usage.model_calls is None, "nobody told it"


@requirement("acp:commands")
def test_a_text_that_the_agent_would_take_for_a_command_is_refused() -> None:
    wire = Wire()
    wire.update("available_commands_update", availableCommands=[{"name": "compact"}])
    wire.end()
    with pytest.raises(ContentNotSupported, match="/compact"):
        wire.begin("/compact now")
    wire.begin("/path/to is fine")
    assert wire.sent() == []


# --- permissions and questions ---------------------------------------------------------------------------------------


@requirement("acp:permissions")
def test_the_hosts_own_tool_is_allowed_at_once_and_the_host_decides_when_it_runs() -> None:
    wire = Wire(GEMINI)
    wire.permission(0, {"toolCallId": "mcp_host_look__c1", "title": "look (host MCP Server)", "status": "pending"})
    assert wire.requests == []
    assert wire.sent()[0]["result"] == {"outcome": {"outcome": "selected", "optionId": "once"}}
    found = wire.protocol.correlation.find("look", {"a": 1})
    assert found is not None
    assert found.call_id == "c1", "the model's own id"


@requirement("acp:permissions", "R-D10")
@pytest.mark.parametrize(("selected", "option"), [("allow_once", "once"), ("allow_always", "always"), ("deny", "no")])
def test_another_tool_is_the_hosts_decision_with_the_options_offered(selected: str, option: str) -> None:
    wire = Wire()
    wire.update("tool_call", toolCallId="c1", title="bash", kind="execute", status="pending", rawInput={})
    wire.permission(0, {"toolCallId": "c1", "title": "ls", "rawInput": {"command": "ls"}})
    [request] = wire.requests
    assert (request.call_id, request.tool_name, request.target, request.read_only) == ("c1", "bash", "ls", False)
    assert [one.id for one in request.options] == ["once", "always", "no"]
    wire.protocol.respond(request, HostResponse(request_id="", selected_option=selected))
    assert wire.sent()[0]["result"]["outcome"]["optionId"] == option
    wire.update("tool_call_update", toolCallId="c1", status="failed" if option == "no" else "completed")
    results = [e.fields["result"] for e in wire.events if isinstance(e, OutputProduced) and "result" in e.fields]
    assert results == ["refused" if option == "no" else "ok"]


@requirement("acp:permissions")
def test_an_allowance_with_other_arguments_is_a_denial_that_is_told() -> None:
    wire = Wire()
    wire.permission(0, {"toolCallId": "c1", "title": "ls", "rawInput": {"command": "ls"}})
    response = HostResponse(request_id="", selected_option="once", updated_arguments_json="{}")
    [told] = wire.protocol.respond(wire.requests[0], response)
    assert isinstance(told, OutputProduced)
    assert told.fields["code"] == "arguments_not_changed"
    assert wire.sent()[0]["result"]["outcome"]["optionId"] == "no"


@requirement("acp:questions", "R-D11")
def test_a_question_has_its_options_and_a_field_for_an_answer_of_ones_own() -> None:
    wire = Wire(CLAUDE_AGENT_ACP)
    schema = {
        "type": "object",
        "properties": {
            "question_0": {"type": "string", "title": "Colour", "oneOf": [{"const": "red", "title": "Red"}]},
            "question_0_custom": {"type": "string", "title": "Other"},
        },
    }
    params = {"mode": "form", "sessionId": "s", "toolCallId": "c1", "message": "Which?", "requestedSchema": schema}
    for number in range(3):
        wire.feed({"id": number, "method": "elicitation/create", "params": params})
    chosen, typed, declined = wire.requests
    [question] = chosen.questions
    assert (question.allow_free_text, [one.id for one in question.options]) == (True, ["red"])
    say = wire.protocol.respond
    say(chosen, HostResponse(request_id="", answers=[Answer(question_id="question_0", selected=["red"])]))
    say(typed, HostResponse(request_id="", answers=[Answer(question_id="question_0", text="teal")]))
    say(declined, HostResponse(request_id="", action="decline"))
    assert [one["result"] for one in wire.sent()] == [
        {"action": "accept", "content": {"question_0": "red"}},
        {"action": "accept", "content": {"question_0_custom": "teal"}},
        {"action": "decline"},
    ]


# --- cancel ----------------------------------------------------------------------------------------------------------


@requirement("acp:cancel", "R-G1", "R-H1")
def test_a_cancel_comes_first_and_closes_all_that_the_agent_has_asked() -> None:
    wire = Wire()
    wire.permission(0, {"toolCallId": "c1", "title": "ls", "rawInput": {}})
    wire.protocol.interrupt()
    wire.protocol.interrupt()
    cancel, answer = wire.sent()
    assert cancel["method"] == "session/cancel"
    assert answer["result"] == {"outcome": {"outcome": "cancelled"}}
    assert wire.permission(1, {"toolCallId": "c2", "title": "ls"}) == [], "not opened"
    wire.feed({"id": wire.prompt["id"], "error": {"code": -32603, "message": "aborted"}})
    found = ended(wire)
    assert isinstance(found, TurnEnded)
    assert found.stop_reason == "cancelled"


@requirement("R-B9")
@settings(max_examples=40)
@given(st.lists(st.dictionaries(st.sampled_from(["toolCallId", "content", "rawInput", "status", "title", "entries"]),
                                st.none() | st.text() | st.lists(st.integers()) | st.dictionaries(st.text(), st.text()),
                                max_size=4)))  # fmt: skip
def test_no_update_breaks_the_turn(updates: list[dict[str, Any]]) -> None:
    wire = Wire()
    kinds = ("tool_call", "tool_call_update", "agent_message_chunk", "plan", "usage_update", "agent_thought_chunk")
    for number, fields in enumerate(updates):
        wire.update(kinds[number % len(kinds)], **fields)
    wire.end()
    assert wire.protocol.turn_is_over


# --- files and terminals ---------------------------------------------------------------------------------------------


def asks_to_write(wire: Wire, rpc_id: int, text: str) -> list[TurnEvent]:
    params = {"sessionId": "s", "path": "/work/a.txt", "content": text}
    return wire.feed({"id": rpc_id, "method": "fs/write_text_file", "params": params})


@requirement("acp:client:off", "acp:client:files", "acp:client:terminals")
@pytest.mark.parametrize(
    ("rights", "told"),
    [
        (ClientRights(), {}),
        (ClientRights("read"), {"fs": {"readTextFile": True, "writeTextFile": False}}),
        (ClientRights("write", True), {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}),
    ],
)
def test_what_is_on_is_told_and_the_rest_is_refused(rights: ClientRights, told: Any) -> None:
    wire = Wire(begins=False, rights=rights)
    wire.protocol.initialize()
    assert wire.sent()[0]["params"]["clientCapabilities"] == {"elicitation": {"form": {}}, **told}
    wire = Wire(rights=rights)
    asks_to_write(wire, 5, "x")
    handed_out = [asked.method for asked in wire.protocol.requests.take_calls()]
    assert handed_out == (["fs/write_text_file"] if rights.files == "write" else [])
    assert bool(wire.sent()) == (rights.files != "write")


@requirement("acp:client:files")
def test_a_write_that_a_permission_showed_to_the_letter_is_allowed_once() -> None:
    wire = Wire(rights=ClientRights("write"))
    diff = {"type": "diff", "path": "/work/a.txt", "oldText": "", "newText": "x"}
    wire.permission(0, {"toolCallId": "c1", "title": "write", "kind": "edit", "content": [diff]})
    shown = Write("/work/a.txt", "x")
    assert not wire.protocol.requests.was_allowed(shown), "nobody has answered yet"
    wire.protocol.respond(wire.requests[0], HostResponse(request_id="", selected_option="once"))
    assert not wire.protocol.requests.was_allowed(Write("/work/a.txt", "y"))
    assert wire.protocol.requests.was_allowed(shown)
    assert not wire.protocol.requests.was_allowed(shown)


@requirement("acp:permissions")
def test_a_change_that_is_only_shown_is_what_the_host_decides_over() -> None:
    wire = Wire(GEMINI)
    diff = {"type": "diff", "path": "/work/a.txt", "oldText": "old", "newText": "new"}
    wire.permission(0, {"toolCallId": "write_file__c1", "title": "Writing to a.txt", "content": [diff]})
    shown = json.loads(wire.requests[0].arguments_json or "")
    assert shown == {
        "title": "Writing to a.txt",
        "changes": [{"path": "/work/a.txt", "oldText": "old", "newText": "new"}],
    }


@requirement("acp:client:files", "acp:cancel")
@pytest.mark.parametrize("how", ["cancel", "end"])
def test_what_is_not_done_when_the_turn_ends_is_refused_and_not_done_later(how: str) -> None:
    wire = Wire(rights=ClientRights("write"))
    asks_to_write(wire, 5, "x")
    [asked] = wire.protocol.requests.take_calls()
    assert wire.protocol.requests.waits_for(asked)
    if how == "cancel":
        wire.protocol.interrupt()
    else:
        wire.end()
    assert [one["error"]["code"] for one in wire.sent() if "error" in one] == [-32800]
    assert not wire.protocol.requests.waits_for(asked)
    wire.protocol.requests.answer(asked, {})
    asks_to_write(wire, 6, "x")
    assert [one.get("id") for one in wire.sent()] == [6]
    assert wire.protocol.requests.take_calls() == []
