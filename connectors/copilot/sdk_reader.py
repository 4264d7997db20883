"""The session events of one turn in Copilot's server mode -> turn events. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in, text_in
from connectors._text import without_surrogates
from connectors.copilot.events import error_of, retry_notice, usage_of
from harness.contract.content import TextBlock
from harness.contract.output import StopReason
from harness.contract.tools import ToolDescriptor
from harness.contract.usage import UsageInfo
from harness.errors import HarnessError
from harness.turn.events import (
    TurnEnded,
    TurnEvent,
    TurnFailed,
    UsageReported,
    internal_tool_finished,
    internal_tool_started,
    item_discarded,
    message,
    notice,
    text_delta,
    thinking_delta,
)

_KNOWN_WITHOUT_NEWS = (
    *("session.", "model.", "assistant.", "user.message", "user_input.", "system.", "pending_messages.", "hook."),
    *("tool.", "external_tool.", "permission.", "abort", "agent.", "mcp.", "subagent.", "skill.", "command."),
)


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it, and its place in the turn."""

    order: int
    name: str
    arguments: JsonObject


class SdkReader:
    """Reads one turn; `tools` are those that the host runs."""

    def __init__(self, tools: Mapping[str, ToolDescriptor]) -> None:
        self.is_over = False
        self.is_interrupted = False
        """Set by whoever sent the abort."""
        self.written: dict[str, WrittenCall] = {}
        self.unfinished_calls: dict[str, str] = {}
        """Those whose end has not come: id -> tool."""
        self.asking_call: str | None = None
        """The call that the next question belongs to."""
        self._tools = tools
        self._held: list[tuple[str, str]] = []
        self._streaming: set[str] = set()
        self._shown: set[str] = set()
        self._failure: HarnessError | None = None
        self._usage: UsageInfo | None = None
        self._noticed: set[str] = set()

    def acted(self) -> list[TurnEvent]:
        """The model acts: what it said before was said on the way."""
        return self._release("commentary")

    def unknown(self, kind: str) -> list[TurnEvent]:
        if kind in self._noticed:
            return []
        self._noticed.add(kind)
        return [notice("unknown_peer_event", f"Copilot sent {kind}, which is not known here")]

    def read(self, kind: str, data: JsonObject) -> list[TurnEvent]:
        match kind:
            case "assistant.message_delta":
                item_id = plain_text_in(data.get("messageId"))
                self._streaming.add(item_id)
                return [text_delta(plain_text_in(data.get("deltaContent")), item_id=item_id)]
            case "assistant.reasoning_delta":
                item_id = plain_text_in(data.get("reasoningId")) or "reasoning"
                return [thinking_delta(plain_text_in(data.get("deltaContent")), item_id=item_id)]
            case "assistant.message":
                return self._message(data)
            case "assistant.turn_retry":
                events: list[TurnEvent] = [item_discarded(one, "retry") for one in sorted(self._streaming)]
                self._streaming.clear()
                return [*events, retry_notice(data)]
            case "assistant.usage":
                self._usage = usage_of(data, self._usage)
                return [] if self._usage is None else [UsageReported(self._usage)]
            case "tool.execution_start":
                return self._started(data)
            case "tool.execution_complete":
                return self._completed(data)
            case "user_input.requested":
                self.asking_call = plain_text_in(data.get("toolCallId")) or None
                return []
            case "session.error":
                self._failure = error_of(data)
                return []
            case "session.compaction_complete":
                return [notice("compacted", "Copilot has compacted the conversation")]
            case "session.idle":
                return self._over(data)
            case _ if kind.startswith(_KNOWN_WITHOUT_NEWS):
                return []
            case _:
                return self.unknown(f"an event '{kind[:80]}'")

    # inside

    def _message(self, data: JsonObject) -> list[TurnEvent]:
        item_id, text = plain_text_in(data.get("messageId")), plain_text_in(data.get("content"))
        self._streaming.discard(item_id)
        calls = objects_in(data.get("toolRequests"))
        for call in calls:
            name, arguments = plain_text_in(call.get("name")), object_in(call.get("arguments"))
            call_id = plain_text_in(call.get("toolCallId"))
            self.written.setdefault(call_id, WrittenCall(len(self.written), name, arguments))
            self.unfinished_calls[call_id] = name
        if text:
            self._held.append((item_id, text))
        return self.acted() if calls else []

    def _started(self, data: JsonObject) -> list[TurnEvent]:
        call_id, name = plain_text_in(data.get("toolCallId")), plain_text_in(data.get("toolName"))
        if name in self._tools:
            return []
        self._shown.add(call_id)
        server = plain_text_in(data.get("mcpServerName"))
        started = internal_tool_started(
            call_id,
            plain_text_in(data.get("mcpToolName")) or name,
            arguments_json=compact_json(object_in(data.get("arguments"))),
            source=server or "copilot",
        )
        return [*self.acted(), started]

    def _completed(self, data: JsonObject) -> list[TurnEvent]:
        call_id = plain_text_in(data.get("toolCallId"))
        self.unfinished_calls.pop(call_id, None)
        if call_id not in self._shown:
            return []
        self._shown.discard(call_id)
        error, result = object_in(data.get("error")), object_in(data.get("result"))
        outcome = "ok" if data.get("success") is True else "failed"
        if error.get("code") in ("rejected", "denied"):
            outcome = "refused"
        text = without_surrogates(text_in(error.get("message")) or text_in(result.get("content")))
        return [internal_tool_finished(call_id, outcome, result_text=text or None)]

    def _over(self, data: JsonObject) -> list[TurnEvent]:
        self.is_over = True
        events: list[TurnEvent] = [
            *self._release("final"),
            *(internal_tool_finished(call_id, "unknown") for call_id in sorted(self._shown)),
        ]
        if self.is_interrupted or data.get("aborted") is True:
            return [*events, TurnEnded(StopReason.CANCELLED)]
        if self._failure is not None:
            return [*events, TurnFailed(self._failure)]
        return [*events, TurnEnded()]

    def _release(self, phase: str) -> list[TurnEvent]:
        held, self._held = self._held, []
        return [message([TextBlock(text=text)], phase=phase, item_id=item_id) for item_id, text in held]
