"""A turn's stream -> the updates of a session (pure). The same for a turn that runs and for one that is replayed.

The protocol has no word for some of what we know: a message that is taken back and what a subagent says are told as
thoughts, and so are the notices that a person should see.
"""

from __future__ import annotations

from collections.abc import Iterable

from harness.contract.content import ContentBlock, TextBlock
from harness.contract.output import (
    InternalToolFinished,
    InternalToolResult,
    InternalToolStarted,
    ItemDiscarded,
    Message,
    Notice,
    OutputItem,
    Plan,
    RequestOpened,
    RequestResolved,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnStatus,
)
from harness.contract.requests import HostRequest, HostResponse, RequestKind, RequestOutcome
from harness.surfaces.acp_agent.calls import content_of, described, shown
from harness.wire.json_rpc import JsonObject

_FOR_PEOPLE = frozenset(
    {"retry", "rate_limit", "compacted", "context_truncated", "fallback", "history_lost", "history_as_text"}
)


class TurnUpdates:
    """Reads one turn, item by item."""

    def __init__(self) -> None:
        self._streamed: set[str | None] = set()
        self._open: set[str] = set()
        self._known: set[str] = set()
        self._refused: set[str] = set()
        self._keys: dict[str, str] = {}
        self._requests: dict[str, HostRequest] = {}
        self._results: dict[str, list[ContentBlock]] = {}

    def call_key(self, request: HostRequest) -> str:
        """Under which id the client knows the call that a request is about."""
        return self._keys.get(request.request_id) or request.call_id or request.request_id

    def answered(self, response: HostResponse) -> None:
        """This host has answered; the stream tells only that it did."""
        self._results[response.request_id] = response.content

    def see(self, item: OutputItem) -> list[JsonObject]:
        match item:
            case TextDelta():
                self._streamed.add(item.item_id)
                return [_chunk(_voice(item), TextBlock(text=item.text), item.item_id)]
            case ThinkingDelta():
                return [_thought(item.text, item.item_id)]
            case Message():
                return [_chunk(_voice(item), block, item.item_id) for block in self._unheard(item)]
            case ItemDiscarded():
                self._streamed.discard(item.item_id)
                return [_thought(f"(What was said last does not count: {item.reason}.)")]
            case Plan():
                entries = [
                    {"content": entry.text, "priority": "medium", "status": _plan_status(str(entry.status))}
                    for entry in item.entries
                ]
                return [{"sessionUpdate": "plan", "entries": entries}]
            case Notice() if item.code in _FOR_PEOPLE:
                return [_thought(f"({item.code.replace('_', ' ')}: {item.text})")]
            case _:
                return self._of_calls(item)

    # calls

    def _of_calls(self, item: OutputItem) -> list[JsonObject]:
        match item:
            case RequestOpened():
                return self._requested(item.request)
            case RequestResolved():
                return self._resolved(item)
            case InternalToolStarted():
                return self._call(item.call_id, described(item.tool_name, item.arguments_json), "in_progress")
            case InternalToolFinished():
                status = "completed" if item.result == InternalToolResult.OK else "failed"
                text = (item.result_text or "") + ("\n[cut here]" if item.truncated else "")
                return [self._end(item.call_id, status, [TextBlock(text=text)] if text else [])]
            case TurnEnded():
                status = "completed" if item.status == TurnStatus.COMPLETED else "failed"
                return [self._end(key, status) for key in sorted(self._open)]
            case _:
                return []

    def _requested(self, request: HostRequest) -> list[JsonObject]:
        if request.kind == RequestKind.USER_QUESTION:
            return []
        is_ours = request.kind == RequestKind.TOOL_CALL
        key = request.request_id if is_ours else request.call_id or request.request_id
        self._keys[request.request_id] = key
        self._requests[request.request_id] = request
        told = described(request.tool_name or "tool", request.arguments_json, request.title)
        return self._call(key, told, "in_progress" if is_ours else "pending")

    def _resolved(self, item: RequestResolved) -> list[JsonObject]:
        request = self._requests.get(item.request_id)
        if request is None:
            return []
        key = self.call_key(request)
        is_answered = item.outcome == RequestOutcome.ANSWERED
        if request.kind == RequestKind.TOOL_CALL:
            status = "completed" if is_answered and not item.is_error else "failed"
            return [self._end(key, status, self._results.pop(item.request_id, []))]
        if is_answered:
            return [_of_call(key, {"status": "in_progress"})] if key in self._open else []
        self._refused.add(key)
        return [self._end(key, "failed")]

    def _call(self, key: str, told: JsonObject, status: str) -> list[JsonObject]:
        is_new = key not in self._known
        self._known.add(key)
        if key in self._refused:  # some peers report the start of what they were told not to do
            return [_of_call(key, {**told, "status": "failed"})]
        self._open.add(key)
        if is_new:
            return [{"sessionUpdate": "tool_call", "toolCallId": key, **told, "status": status}]
        return [_of_call(key, {**told, "status": status})]

    def _end(self, key: str, status: str, content: list[ContentBlock] | None = None) -> JsonObject:
        self._open.discard(key)
        return _of_call(key, {"status": status, **({"content": shown(content)} if content else {})})

    # messages

    def _unheard(self, item: Message) -> Iterable[ContentBlock]:
        """What was streamed is not said again."""
        was_streamed = item.item_id in self._streamed
        return [block for block in item.content if not (was_streamed and isinstance(block, TextBlock))]


def user_said(content: Iterable[ContentBlock]) -> list[JsonObject]:
    """The message of a turn that is replayed."""
    return [_chunk("user_message_chunk", block, None) for block in content]


def _voice(item: TextDelta | Message) -> str:
    """What a subagent says is not the agent's answer."""
    return "agent_message_chunk" if item.parent_call_id is None else "agent_thought_chunk"


def _chunk(kind: str, block: ContentBlock, item_id: str | None) -> JsonObject:
    told: JsonObject = {"sessionUpdate": kind, "content": content_of(block)}
    return told if item_id is None else {**told, "messageId": item_id}


def _thought(text: str, item_id: str | None = None) -> JsonObject:
    return _chunk("agent_thought_chunk", TextBlock(text=text), item_id)


def _of_call(key: str, told: JsonObject) -> JsonObject:
    return {"sessionUpdate": "tool_call_update", "toolCallId": key, **told}


def _plan_status(status: str) -> str:
    return status if status in ("pending", "in_progress", "completed") else "pending"
