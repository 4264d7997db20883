"""The CLI's lines of one turn -> turn events, from our message to its end. Pure.

The turn is over when the session is idle again, not at the first `result`: a subagent in the background may start the
loop once more. A CLI that tells no session state ends its turn with the result.
"""

from __future__ import annotations

from collections.abc import Callable

from connectors._json import JsonObject, number_in, object_in, objects_in, plain_text_in, text_in
from connectors._text import without_surrogates
from connectors.claude.denials import Denials
from connectors.claude.messages import MessageReader, ModelCall
from connectors.claude.outcome import RunningUsage, UsageMeter, end_of
from harness.contract.output import StopReason
from harness.contract.usage import UsageInfo, add_usage
from harness.contract.value import JsonValue
from harness.errors import PeerProtocolError
from harness.turn.events import (
    TurnEnded,
    TurnEvent,
    TurnFailed,
    UsageReported,
    internal_tool_finished,
    internal_tool_started,
    notice,
)

OUTPUT_TOOL = "StructuredOutput"
"""The CLI's own way to get structured output; no tool of anybody."""

_WITHOUT_NEWS = frozenset(
    {
        *("tool_progress", "command_lifecycle", "keep_alive"),
        *("system/init", "system/status", "system/thinking_tokens", "system/ui_invalidate"),
        # said again, and better, by the results and messages they belong to
        *("system/permission_denied", "system/task_started", "system/task_updated", "system/task_notification"),
        *("system/task_progress", "system/background_tasks_changed"),
    }
)
_NOTICES = {
    "system/model_fallback": "fallback",
    "system/model_refusal_no_fallback": "refusal",
    "system/informational": "peer_message",
    "system/compact_boundary": "compacted",
}


class TurnReader:
    """Reads one turn; `ours` says of a tool's name whether the host runs it."""

    def __init__(self, message_uuid: str, ours: Callable[[str], bool], meter: UsageMeter) -> None:
        self.message_uuid = message_uuid
        self.last_message: str | None = None
        """The id under which the CLI keeps the model's last message."""
        self.messages = MessageReader()
        self.denials = Denials()
        self.is_over = False
        self.is_interrupted = False
        """Set by whoever sent the interrupt."""
        self.skipped_lines = 0
        self._ours = ours
        self._meter = meter
        self._running = RunningUsage()
        self._usage: UsageInfo | None = None
        self._end: TurnEnded | TurnFailed | None = None
        self._tells_state = False
        self._api_error: JsonObject | None = None
        self._internal: set[str] = set()
        self._raised: set[str] = set()
        self._denied: set[str] = set()
        self._finished: set[str] = set()
        self._noticed: set[str] = set()

    def raised(self, call_id: str) -> None:
        """The host has been asked to run this call."""
        self._raised.add(call_id)

    def denied(self, call_id: str | None) -> None:
        """The host did not allow this call."""
        self._denied.add(call_id or "")

    def written(self, call_id: str) -> ModelCall | None:
        """The call as the model wrote it."""
        return self.messages.calls.get(call_id)

    def unfinished_calls(self) -> dict[str, str]:
        """The calls that the model wrote and whose end has not come: id -> tool."""
        calls = self.messages.calls
        return {call_id: call.name for call_id, call in calls.items() if call_id not in self._finished}

    def skipped(self) -> list[TurnEvent]:
        """A line that was no JSON object came."""
        self.skipped_lines += 1
        return self.unknown("a line that is no JSON object")

    def unknown(self, kind: str) -> list[TurnEvent]:
        """Something we have no reading for: told once per kind and turn."""
        return self._once(kind, notice("unknown_peer_event", f"Claude Code sent {kind}, which is not known here"))

    def read(self, line: JsonObject) -> list[TurnEvent]:
        """One line, control messages apart. Nothing comes after the end."""
        if self.is_over:
            return []
        kind = plain_text_in(line.get("type"))
        if kind == "system":
            kind = f"system/{plain_text_in(line.get('subtype'))}"
        parent = plain_text_in(line.get("parent_tool_use_id")) or None
        match kind:
            case "stream_event":
                event = object_in(line.get("event"))
                return [*self._with_repairs(self.messages.stream_event(event, parent)), *self._used(event, parent)]
            case "assistant":
                return self._with_repairs(self._assistant(line, parent))
            case "user":
                return self._user(line, parent)
            case "result":
                return self._result(line)
            case "system/session_state_changed":
                return self._state_changed(text_in(line.get("state")))
            case "system/api_retry":
                return [_retry(line)]
            case "rate_limit_event":
                return _rate_limit(object_in(line.get("rate_limit_info")))
            case _ if kind in _NOTICES:
                text = plain_text_in(line.get("content"))
                return [notice(_NOTICES[kind], text or kind.removeprefix("system/").replace("_", " "))]
            case _ if kind in _WITHOUT_NEWS:
                return []
            case _:
                return self.unknown(f"'{kind[:80]}'")

    # inside

    def _used(self, event: JsonObject, parent: str | None) -> list[TurnEvent]:
        """What the turn has used so far, as far as the model's messages tell; the result has the last word."""
        if not self._running.see(event, parent):
            return []
        return [UsageReported(self._running.total(len(self.messages.message_ids)))]

    def _assistant(self, line: JsonObject, parent: str | None) -> list[TurnEvent]:
        body = object_in(line.get("message"))
        is_synthetic = body.get("model") == "<synthetic>"
        if line.get("is_api_error_message") or (is_synthetic and line.get("error")):  # 2.1.197 has only the second
            self._api_error = line  # its text is the error's, not the model's
            return []
        if is_synthetic:
            text = "\n".join(text_in(block.get("text")) for block in objects_in(body.get("content")))
            return [notice("peer_message", without_surrogates(text))] if text else []
        events = self.messages.complete(line, parent)
        if parent is None:
            self.last_message = plain_text_in(line.get("uuid")) or self.last_message
        for block in objects_in(body.get("content")):
            name = text_in(block.get("name"))
            if block.get("type") != "tool_use" or self._ours(name) or name == OUTPUT_TOOL:
                continue
            call = self.messages.calls[plain_text_in(block.get("id"))]
            self._internal.add(call.call_id)
            events.append(
                internal_tool_started(
                    call.call_id,
                    call.name,
                    arguments_json=call.arguments_json(),
                    source=_source(call.name),
                    parent_call_id=parent,
                )
            )
        return events

    def _user(self, line: JsonObject, parent: str | None) -> list[TurnEvent]:
        # 2.1.197 does not tell: there the host's own word has to do
        refused = self._denied | {
            plain_text_in(meta.get("id"))
            for meta in objects_in(line.get("tool_result_meta"))
            if object_in(meta.get("permission_decision")).get("decision") == "reject"
        }
        events: list[TurnEvent] = []
        for block in objects_in(object_in(line.get("message")).get("content")):
            if block.get("type") != "tool_result":
                continue
            call_id = plain_text_in(block.get("tool_use_id"))
            self._finished.add(call_id)
            text = without_surrogates(_result_text(block.get("content")))
            if call_id in self._internal:
                outcome = "refused" if call_id in refused else "failed" if block.get("is_error") else "ok"
                events.append(internal_tool_finished(call_id, outcome, result_text=text, parent_call_id=parent))
            elif call_id in self.messages.calls and call_id not in self._raised and not self.is_interrupted:
                name = self.messages.calls[call_id].name
                if name == OUTPUT_TOOL:
                    continue
                said = f"Claude Code answered the call '{call_id}' of '{name}' itself: {text[:500]}"
                events.append(notice("call_not_delivered", said))
        return events

    def _result(self, line: JsonObject) -> list[TurnEvent]:
        self._usage = add_usage(self._usage, self._meter.since_last(line))
        self._end = end_of(line, api_error=self._api_error, last_stop_reason=self.messages.last_stop_reason)
        self._api_error = None
        return [] if self._tells_state else self._finish(self._end)

    def _state_changed(self, state: str) -> list[TurnEvent]:
        if state == "running":
            self._tells_state = True
        if state != "idle" or not self._tells_state:
            return []
        if self._end is not None:
            return self._finish(self._end)
        if self.is_interrupted:
            return self._finish(TurnEnded(StopReason.CANCELLED))
        return self._finish(TurnFailed(PeerProtocolError("Claude Code ended the turn without a result")))

    def _finish(self, end: TurnEnded | TurnFailed) -> list[TurnEvent]:
        self.is_over = True
        was_cut = isinstance(end, TurnEnded) and end.stop_reason == StopReason.CANCELLED
        failure = None if self.is_interrupted else self.denials.tripped
        if was_cut and failure is not None:
            end = TurnFailed(failure)
        events = self._with_repairs(self.messages.finish(keeps_partial=was_cut))
        calls = len(self.messages.message_ids)
        if calls or self._usage is not None:
            usage = add_usage(self._usage, UsageInfo(model_calls=calls))
            events.append(UsageReported(usage or UsageInfo()))
        return [*events, end]

    def _with_repairs(self, events: list[TurnEvent]) -> list[TurnEvent]:
        if self.messages.has_replaced_surrogates:
            text = "half a character in the model's text was replaced by U+FFFD"
            events += self._once("surrogates", notice("surrogates_replaced", text))
        return events

    def _once(self, key: str, event: TurnEvent) -> list[TurnEvent]:
        if key in self._noticed:
            return []
        self._noticed.add(key)
        return [event]


def _retry(line: JsonObject) -> TurnEvent:
    status, error = line.get("error_status"), text_in(line.get("error"))
    code = "rate_limit" if status == 429 or error == "rate_limit" else "retry"
    delay, attempt, limit = (number_in(line.get(name)) for name in ("retry_delay_ms", "attempt", "max_retries"))
    seconds = "a while" if delay is None else f"{delay / 1000:.1f} s"
    what = f"status {status}" if isinstance(status, int) else "no answer"
    return notice(code, f"the model's provider: {what}; attempt {attempt} of {limit} in {seconds}")


def _rate_limit(info: JsonObject) -> list[TurnEvent]:
    status = plain_text_in(info.get("status"))
    if status in ("", "allowed"):
        return []
    resets = number_in(info.get("resetsAt"))
    return [notice("rate_limit", f"rate limit: {status}" + ("" if resets is None else f"; resets at {resets}"))]


def _source(name: str) -> str:
    """Who runs it: the CLI, or the MCP server in `mcp__server__tool`."""
    parts = name.split("__", 2)
    return parts[1] if len(parts) == 3 and parts[0] == "mcp" else "claude"


def _result_text(content: JsonValue) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text_in(block.get("text")) or f"[{block.get('type')}]" for block in objects_in(content))
