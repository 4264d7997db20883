"""Codex's notifications of one turn -> turn events, from our message to `turn/completed`. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass

from connectors._json import JsonObject, escaped_surrogates, object_in, objects_in, plain_text_in, text_in
from connectors._jsonrpc import Notified
from connectors.codex import items
from connectors.codex.outcome import UsageMeter, end_of, error_code
from connectors.codex.thread import INTERNAL_TOOLS
from harness.contract.content import TextBlock
from harness.contract.output import PlanEntry, StopReason
from harness.turn.events import (
    TurnEnded,
    TurnEvent,
    UsageReported,
    item_discarded,
    message,
    notice,
    plan,
    text_delta,
    thinking_delta,
)

_PHASES = {"commentary": "commentary", "final_answer": "final"}
_PLAN_STATUS = {"inProgress": "in_progress", "completed": "completed"}
_WITHOUT_NEWS = frozenset(
    {
        *("thread/started", "thread/status/changed", "thread/readState/changed", "thread/name/updated"),
        *("thread/goal/cleared",),
        *("thread/settings/updated", "thread/environment/connected", "turn/started", "turn/diff/updated"),
        *("item/plan/delta", "item/commandExecution/outputDelta", "item/fileChange/outputDelta"),
        *("item/fileChange/patchUpdated", "item/mcpToolCall/progress", "item/commandExecution/terminalInteraction"),
        *("account/rateLimits/updated", "account/updated", "remoteControl/status/changed", "skills/changed"),
        *("app/list/updated", "rawResponse/completed", "thread/compacted"),
        *("turn/moderationMetadata", "model/safetyBuffering/updated", "model/verification"),
    }
)
_NOTICES = {
    "warning": "peer_message",
    "guardianWarning": "peer_message",
    "deprecationNotice": "peer_message",
    "configWarning": "peer_message",
    "model/rerouted": "fallback",
}
_OWN_TOOLS = frozenset({*INTERNAL_TOOLS, "write_stdin"})
_SAID = frozenset({"userMessage", "hookPrompt", "reasoning", "dynamicToolCall", "plan", "sleep", "functionCallOutput"})


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as the model wrote it: its place in the turn, and its arguments to the letter."""

    order: int
    name: str
    arguments_json: str


class Rounds:
    """Counts the model calls of a turn as they begin: the figures of one come when it has ended."""

    def __init__(self, meter: UsageMeter) -> None:
        self.number = 1
        self._meter = meter
        self._open: set[str] = set()
        self._has_worked = False

    def heard(self) -> None:
        """The model says or does something: the next call has begun if all work of the last one is done."""
        if self._has_worked and not self._open and self._meter.calls >= self.number:
            self.number += 1
            self._has_worked = False

    def begun(self, work: str) -> None:
        self._open.add(work)
        self._has_worked = True

    def done(self, work: str) -> None:
        self._open.discard(work)

    def would_be_over(self, limit: int, work: str | None = None) -> bool:
        """Whether the model would be called once more than allowed, were this work done too."""
        return self._has_worked and self.number >= limit and self._open <= {work}


class TurnReader:
    """Reads one turn. A message without a phase is held until it is clear whether the model goes on to act."""

    def __init__(self, meter: UsageMeter, model: str | None, *, wants_output: bool) -> None:
        self.is_over = False
        self.is_interrupted = False
        """Set by whoever sent the interrupt."""
        self.is_at_limit = False
        """Set where the interrupt is because of the limit of model calls."""
        self.items: dict[str, JsonObject] = {}
        """Items by id, as Codex last told of them."""
        self.written: dict[str, WrittenCall] = {}
        """Calls by id; empty in a resumed thread, which does not tell them."""
        self.unfinished_calls: dict[str, str] = {}
        """Those whose end has not come: id -> tool."""
        self.rounds = Rounds(meter)
        self.asked: set[str] = set()
        """The calls that the host was asked to run."""
        self._meter = meter
        self._model = model
        self._wants_output = wants_output
        self._begun: dict[str, bool] = {}
        self._held: list[tuple[str, str]] = []
        self._last_text: str | None = None
        self._noticed: set[str] = set()

    def acted(self) -> list[TurnEvent]:
        """The model acts: what it said before was said on the way."""
        return self._release("commentary")

    def unknown(self, kind: str) -> list[TurnEvent]:
        """Something we have no reading for: told once per kind and turn."""
        return self._once(kind, notice("unknown_peer_event", f"Codex sent {kind}, which is not known here"))

    def read(self, notified: Notified) -> list[TurnEvent]:
        params = notified.params
        match notified.method:
            case "item/agentMessage/delta":
                item_id = plain_text_in(params.get("itemId"))
                self._begun[item_id] = True
                return [text_delta(plain_text_in(params.get("delta")), item_id=item_id)]
            case "item/reasoning/summaryTextDelta" | "item/reasoning/textDelta":
                item_id = plain_text_in(params.get("itemId"))
                return [thinking_delta(plain_text_in(params.get("delta")), item_id=item_id)]
            case "item/reasoning/summaryPartAdded":
                is_first = params.get("summaryIndex") in (0, None)
                return [] if is_first else [thinking_delta("\n\n", item_id=plain_text_in(params.get("itemId")))]
            case "item/started":
                return self._started(object_in(params.get("item")))
            case "item/completed":
                return self._completed(object_in(params.get("item")))
            case "thread/tokenUsage/updated":
                usage = self._meter.update(object_in(params.get("tokenUsage")), self._model)
                return [] if usage is None else [UsageReported(usage)]
            case "rawResponseItem/completed":
                return self._raw_item(object_in(params.get("item")))
            case "turn/plan/updated":
                return [plan([_plan_entry(one) for one in objects_in(params.get("plan"))])]
            case "error":
                return self._error(params)
            case "turn/completed":
                return self._over(object_in(params.get("turn")))
            case "mcpServer/startupStatus/updated":
                return _server_status(params)
            case method if method in _NOTICES:
                text = plain_text_in(params.get("message")) or plain_text_in(params.get("summary"))
                return [notice(_NOTICES[method], text or method)]
            case method if method in _WITHOUT_NEWS:
                return []
            case method:
                return self.unknown(f"'{method[:80]}'")

    # inside

    def _raw_item(self, item: JsonObject) -> list[TurnEvent]:
        call_id = plain_text_in(item.get("call_id"))
        if item.get("type") == "function_call_output":
            self.unfinished_calls.pop(call_id, None)
        match item.get("type"):
            case "function_call":
                text, name = escaped_surrogates(text_in(item.get("arguments"))), plain_text_in(item.get("name"))
                self.written[call_id] = WrittenCall(len(self.written), name, text)
                self.unfinished_calls[call_id] = name
            case "function_call_output" if self._was_kept_back(call_id):
                name, told = self.written[call_id].name, plain_text_in(item.get("output"))
                said = f"Codex answered the call '{call_id}' of '{name}' itself: {told[:500]}"
                return [notice("call_not_delivered", said)]
            case _:
                pass
        return []

    def _was_kept_back(self, call_id: str) -> bool:
        written = self.written.get(call_id)
        if written is None or call_id in self.asked or call_id in self.items or self.is_interrupted:
            return False
        return written.name not in _OWN_TOOLS

    def _started(self, item: JsonObject) -> list[TurnEvent]:
        item_id = plain_text_in(item.get("id"))
        self.items[item_id] = item
        if item.get("type") not in ("userMessage", "hookPrompt"):
            self.rounds.heard()
        if items.acts(item) or item.get("type") == "dynamicToolCall":
            self.rounds.begun(item_id)
            self.unfinished_calls.setdefault(item_id, plain_text_in(item.get("tool")) or str(item.get("type")))
        if item.get("type") == "agentMessage":
            self._begun.setdefault(item_id, False)
            return []
        if items.acts(item):
            return [*self.acted(), items.started(item)]
        return self.acted() if item.get("type") == "dynamicToolCall" else self._check_kind(item)

    def _completed(self, item: JsonObject) -> list[TurnEvent]:
        item_id = plain_text_in(item.get("id"))
        is_new = item_id not in self.items
        self.items[item_id] = item
        self.rounds.done(item_id)
        self.unfinished_calls.pop(item_id, None)
        match item.get("type"):
            case "agentMessage":
                return self._message(item_id, item)
            case "contextCompaction":
                return [notice("compacted", "Codex has compacted the conversation")]
            case _ if items.acts(item):
                begun = [*self.acted(), items.started(item)] if is_new else []
                return [*begun, items.finished(item)]
            case _:
                return []

    def _message(self, item_id: str, item: JsonObject) -> list[TurnEvent]:
        self._begun.pop(item_id, None)
        text = plain_text_in(item.get("text"))
        phase = _PHASES.get(plain_text_in(item.get("phase")))
        if phase != "commentary":
            self._last_text = text
        if phase is None:
            self._held.append((item_id, text))
            return []
        return [message([TextBlock(text=text)], phase=phase, item_id=item_id)]

    def _release(self, phase: str) -> list[TurnEvent]:
        held, self._held = self._held, []
        return [message([TextBlock(text=text)], phase=phase, item_id=item_id) for item_id, text in held]

    def _error(self, params: JsonObject) -> list[TurnEvent]:
        """A failed model call. Where it is repeated, what it has streamed so far does not count."""
        if params.get("willRetry") is not True:
            return []  # said again by the turn's end
        error = object_in(params.get("error"))
        code, status = error_code(error)
        is_limit = code == "rateLimitExceeded" or status == 429
        told = " ".join(plain_text_in(error.get(name)) for name in ("message", "additionalDetails")).strip()
        begun = [item_id for item_id, has_text in self._begun.items() if has_text]
        discarded = [*begun, *(item_id for item_id, _ in self._held)]
        self._begun, self._held, self._last_text = {}, [], None
        events: list[TurnEvent] = [item_discarded(item_id, "retry") for item_id in discarded]
        return [*events, notice("rate_limit" if is_limit else "retry", told)]

    def _over(self, turn: JsonObject) -> list[TurnEvent]:
        self.is_over = True
        was_refused = bool(self._begun) and not self._held and turn.get("status") == "completed"
        end = end_of(turn, was_refused=was_refused, structured_output_json=self._structured_output())
        if self.is_at_limit and isinstance(end, TurnEnded) and end.stop_reason == StopReason.CANCELLED:
            end = TurnEnded(StopReason.MAX_TURNS)
        return [*self._release("final"), end]

    def _structured_output(self) -> str | None:
        if not self._wants_output or self._last_text is None:
            return None
        try:
            json.loads(self._last_text)
        except ValueError:
            return None
        return self._last_text

    def _check_kind(self, item: JsonObject) -> list[TurnEvent]:
        kind = plain_text_in(item.get("type"))
        return [] if kind in _SAID or kind == "contextCompaction" else self.unknown(f"an item of type '{kind[:80]}'")

    def _once(self, key: str, event: TurnEvent) -> list[TurnEvent]:
        if key in self._noticed:
            return []
        self._noticed.add(key)
        return [event]


def _plan_entry(step: JsonObject) -> PlanEntry:
    status = _PLAN_STATUS.get(plain_text_in(step.get("status")), "pending")
    return PlanEntry(text=plain_text_in(step.get("step")), status=status)


def _server_status(params: JsonObject) -> list[TurnEvent]:
    if params.get("status") != "failed":
        return []
    told = f"the tool source '{plain_text_in(params.get('name'))}' did not start: {plain_text_in(params.get('error'))}"
    return [notice("tool_source_failed", told[:500])]
