"""Lines as the CLI 2.1.332 writes them, reduced to what is read, and a protocol to feed them to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bridge_mcp.mapping import map_tools
from connectors.claude.gate import Gate
from connectors.claude.host_tools import HostTools
from connectors.claude.protocol import ClaudeProtocol, Setting
from harness.contract import ContentBlock, HostRequest, TextBlock, ToolDescriptor
from harness.contract.delegation import RequestPolicy
from harness.contract.options import SystemPromptMode
from harness.policy import Place
from harness.turn.events import OutputProduced, RequestRaised, TurnEvent

PREFIX = "mcp__host__"
REPLACE = SystemPromptMode.REPLACE
TOOLS = [ToolDescriptor(name="look", read_only=True), ToolDescriptor(name="save")]
USAGE = {"inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 3, "cacheCreationInputTokens": 2, "costUSD": 0.5}


def encoded(*lines: Any) -> list[bytes]:
    return [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]


def state(value: str) -> dict[str, Any]:
    return {"type": "system", "subtype": "session_state_changed", "state": value}


def init(*tools: str, version: str = "2.1.332") -> dict[str, Any]:
    names = list(tools) or [PREFIX + "look", PREFIX + "save"]
    return {
        "type": "system",
        "subtype": "init",
        "session_id": "s-1",
        "tools": names,
        "claude_code_version": version,
    }


def ready(version: str | None = "2.1.332", **account: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"account": account or {"tokenSource": "none", "apiKeySource": "ANTHROPIC_API_KEY"}}
    if version is not None:
        answer["claude_code_version"] = version
    body = {"subtype": "success", "request_id": "initialize", "response": answer}
    return {"type": "control_response", "response": body}


def event(kind: str, parent: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": kind, **fields}, "parent_tool_use_id": parent}


def message_start(message_id: str, parent: str | None = None) -> dict[str, Any]:
    return event("message_start", parent, message={"id": message_id, "content": []})


def text_block(index: int, *pieces: str, parent: str | None = None) -> list[dict[str, Any]]:
    return [
        event("content_block_start", parent, index=index, content_block={"type": "text", "text": ""}),
        *(
            event("content_block_delta", parent, index=index, delta={"type": "text_delta", "text": piece})
            for piece in pieces
        ),
        event("content_block_stop", parent, index=index),
    ]


def call_block(index: int, call_id: str, name: str, *pieces: str, parent: str | None = None) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [
        event("content_block_start", parent, index=index, content_block=block),
        *(
            event("content_block_delta", parent, index=index, delta={"type": "input_json_delta", "partial_json": piece})
            for piece in pieces
        ),
        event("content_block_stop", parent, index=index),
    ]


def message_end(stop_reason: str | None, parent: str | None = None) -> list[dict[str, Any]]:
    return [event("message_delta", parent, delta={"stop_reason": stop_reason}), event("message_stop", parent)]


def assistant(message_id: str, *content: dict[str, Any], parent: str | None = None, **fields: Any) -> dict[str, Any]:
    body = {"id": message_id, "model": "claude-sonnet-4-6", "content": list(content), "stop_reason": None}
    return {"type": "assistant", "message": body, "parent_tool_use_id": parent, **fields}


def api_error(kind: str, text: str, **fields: Any) -> dict[str, Any]:
    body = {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "message": body, "is_api_error_message": True, "error": kind, **fields}


def tool_result(call_id: str, content: Any, *, is_error: bool = False, decision: str = "accept") -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": is_error}
    meta = [{"id": call_id, "permission_decision": {"decision": decision}}]
    return {"type": "user", "message": {"role": "user", "content": [block]}, "tool_result_meta": meta}


def result(**fields: Any) -> dict[str, Any]:
    """An answer that went well, unless `fields` say otherwise."""
    return {
        "type": "result",
        "subtype": "success",
        "is_error": False,
        "terminal_reason": "completed",
        "stop_reason": "end_turn",
        "result": "",
        "modelUsage": {},
        "model_usage_since_last_result": {},
        **fields,
    }


def control(request_id: str, subtype: str, **fields: Any) -> dict[str, Any]:
    return {"type": "control_request", "request_id": request_id, "request": {"subtype": subtype, **fields}}


QUESTION = {
    "question": "Which color?",
    "header": "Color",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}


def can_use_tool(request_id: str, call_id: str, name: str, arguments: Any, **fields: Any) -> dict[str, Any]:
    return control(request_id, "can_use_tool", tool_name=name, input=arguments, tool_use_id=call_id, **fields)


def elicitation(request_id: str, schema: Any = None, **fields: Any) -> dict[str, Any]:
    body = {"mcp_server_name": "books", "message": "Your name?", "mode": "form", "requested_schema": schema} | fields
    return control(request_id, "elicitation", **body)


def mcp(request_id: str, message: Any, server: str = "host") -> dict[str, Any]:
    return control(request_id, "mcp_message", server_name=server, message=message)


def tools_call(
    request_id: str, rpc_id: int, call_id: str | None, name: str = "look", arguments: Any = None
) -> dict[str, Any]:
    meta = {"progressToken": rpc_id} | ({"claudecode/toolUseId": call_id} if call_id else {})
    params = {"name": name, "arguments": arguments or {}, "_meta": meta}
    return mcp(request_id, {"jsonrpc": "2.0", "id": rpc_id, "method": "tools/call", "params": params})


def setting(tools: Sequence[ToolDescriptor] = TOOLS, *, policy: RequestPolicy | None = None, **options: Any) -> Setting:
    source_tools = options.pop("source_tools", None)
    gate = Gate(policy, Place("/work", resolve=lambda path: path), source_tools)
    internal_tools = frozenset(options.pop("internal_tools", ()))
    return Setting(HostTools(map_tools(tools, prefix=PREFIX)), gate, internal_tools=internal_tools, **options)


class Wire:
    """A protocol that is ready and runs a turn, with what came out of it."""

    def __init__(self, *, begins: bool = True, **options: Any) -> None:
        self._tools = [PREFIX + "look", PREFIX + "save", *options.get("internal_tools", ())]
        self.protocol = ClaudeProtocol(setting(**options))
        self.events: list[TurnEvent] = []
        self.protocol.initialize(None, SystemPromptMode.REPLACE)
        self.sent()
        if begins:
            self.feed(ready())
            self.begin()

    def begin(self, content: Sequence[ContentBlock] = (TextBlock(text="Go."),)) -> None:
        self.protocol.start_turn(content, "u-1")
        self.sent()
        self.feed(state("running"), init(*self._tools))

    def feed(self, *lines: Any) -> list[TurnEvent]:
        """The lines of one read; also kept in `events`."""
        events = self.protocol.receive(encoded(*lines))
        self.events += events
        return events

    def sent(self) -> list[dict[str, Any]]:
        """What we said since the last look."""
        return [json.loads(line) for line in self.protocol.data_to_send().split(b"\n") if line]

    def responses(self) -> dict[str, Any]:
        """Our answers to control requests since the last look, by the request's id."""
        answers = [line["response"] for line in self.sent() if line["type"] == "control_response"]
        return {answer["request_id"]: answer.get("response", answer.get("error")) for answer in answers}

    @property
    def requests(self) -> list[HostRequest]:
        return [event.request for event in self.events if isinstance(event, RequestRaised)]


def shown(events: Sequence[TurnEvent]) -> list[tuple[Any, ...]]:
    """Output as short tuples: kind, what it says, item id."""
    short: list[tuple[Any, ...]] = []
    for one in events:
        if isinstance(one, OutputProduced):
            kind = str(one.item.model_fields["kind"].default)
            fields = one.fields
            said = fields.get("text", fields.get("content", fields.get("call_id", fields.get("reason"))))
            if kind == "message":
                said = (["".join(block.text) for block in said], fields["phase"])
            short.append((kind, fields["code"] if kind == "notice" else said, fields.get("item_id")))
        else:
            short.append((type(one).__name__,))
    return short
