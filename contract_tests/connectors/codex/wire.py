"""Messages as Codex 0.171.0 writes them, reduced to what is read, and a protocol to feed them to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from connectors.codex.protocol import CodexProtocol
from connectors.codex.thread import dynamic_tools
from harness.contract import ContentBlock, ConversationOptions, HostRequest, TextBlock, ToolDescriptor, TurnOptions
from harness.turn.events import OutputProduced, RequestRaised, TurnEvent

THREAD, TURN = "thread-1", "turn-1"
TOOLS = [ToolDescriptor(name="look", read_only=True), ToolDescriptor(name="save")]


def notified(method: str, **params: Any) -> dict[str, Any]:
    return {"method": method, "params": {"threadId": THREAD, "turnId": TURN, **params}}


def asked(rpc_id: int, method: str, **params: Any) -> dict[str, Any]:
    return {"id": rpc_id, **notified(method, **params)}


def tool_call(rpc_id: int, call_id: str, tool: str = "look", **arguments: Any) -> dict[str, Any]:
    return asked(rpc_id, "item/tool/call", callId=call_id, namespace=None, tool=tool, arguments=arguments)


def item(stage: str, kind: str, item_id: str, **fields: Any) -> dict[str, Any]:
    return notified(f"item/{stage}", item={"type": kind, "id": item_id, **fields})


def said(item_id: str, *pieces: str, phase: str | None = None, whole: bool = True) -> list[dict[str, Any]]:
    """A message, streamed and, if `whole`, completed."""
    deltas = [notified("item/agentMessage/delta", itemId=item_id, delta=piece) for piece in pieces]
    begun = item("started", "agentMessage", item_id, text="", phase=phase)
    done = item("completed", "agentMessage", item_id, text="".join(pieces), phase=phase)
    return [begun, *deltas, *([done] if whole else [])]


def used(total: int, last: int) -> dict[str, Any]:
    figures = {"total": {"inputTokens": total, "outputTokens": 1}, "last": {"inputTokens": last, "outputTokens": 1}}
    return notified("thread/tokenUsage/updated", tokenUsage=figures)


def completed(status: str = "completed", **error: Any) -> dict[str, Any]:
    return notified("turn/completed", turn={"id": TURN, "status": status, "error": error or None})


class Wire:
    """A protocol with an open thread and a running turn, with what came out of it."""

    def __init__(self, *, begins: bool = True, **options: Any) -> None:
        self.options = ConversationOptions(tools=TOOLS, **options)
        self.protocol = CodexProtocol(self.options, dynamic_tools(TOOLS))
        self.events: list[TurnEvent] = []
        if begins:
            self.open()
            self.begin()

    def open(self, thread_id: str | None = None, turns: int = 0) -> None:
        self.protocol.open_thread({"cwd": "/work"}, thread_id)
        self.feed({"id": 1, "result": {"userAgent": "level2-harness/0.171.0 (Linux)"}})
        thread = {"id": THREAD, "turns": [{"id": f"earlier-{number}"} for number in range(turns)]}
        self.feed({"id": 2, "result": {"thread": thread, "model": "gpt-5.4"}})

    def begin(self, content: Sequence[ContentBlock] = (TextBlock(text="Go."),), **options: Any) -> None:
        self.sent()
        self.events += self.protocol.start_turn(content, TurnOptions(**options))
        [self.turn_start] = self.sent()
        self.feed({"id": self.turn_start["id"], "result": {"turn": {"id": TURN, "status": "inProgress"}}})

    def feed(self, *messages: Any) -> list[TurnEvent]:
        """The messages of one read; also kept in `events`."""
        lines = [one if isinstance(one, bytes) else json.dumps(one).encode() for one in messages]
        events = self.protocol.receive(lines)
        self.events += events
        return events

    def sent(self) -> list[dict[str, Any]]:
        """What we said since the last look."""
        return [json.loads(line) for line in self.protocol.data_to_send().split(b"\n") if line]

    @property
    def requests(self) -> list[HostRequest]:
        return [event.request for event in self.events if isinstance(event, RequestRaised)]


def shown(events: Sequence[TurnEvent]) -> list[tuple[Any, ...]]:
    """Output as short tuples: kind, what it says."""
    short: list[tuple[Any, ...]] = []
    for one in events:
        if not isinstance(one, OutputProduced):
            short.append((type(one).__name__,))
            continue
        kind, fields = str(one.item.model_fields["kind"].default), one.fields
        match kind:
            case "message":
                short.append((kind, "".join(block.text for block in fields["content"]), fields["phase"]))
            case "notice":
                short.append((kind, fields["code"]))
            case _:
                short.append((kind, fields.get("text", fields.get("call_id", fields.get("item_id")))))
    return short
