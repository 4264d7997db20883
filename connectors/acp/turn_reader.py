"""An agent's updates of one turn -> turn events. Pure."""

from __future__ import annotations

from connectors._json import JsonObject, object_in, objects_in, plain_text_in
from connectors.acp.tool_calls import ToolCalls
from harness.contract.content import TextBlock
from harness.contract.output import PlanEntry
from harness.turn.events import TurnEvent, item_discarded, message, notice, plan, text_delta, thinking_delta

_WITHOUT_NEWS = frozenset(
    {
        *("user_message_chunk", "available_commands_update", "config_option_update", "session_info_update"),
        *("usage_update", "plan_removed"),
    }
)
_WARNING = "Warning: Model metadata for "
"""codex-acp says so in a chunk of its own, as if the model had."""


class TurnReader:
    """Reads one turn. What the agent says before it acts is commentary, what it says last is final."""

    def __init__(self, calls: ToolCalls, agent_name: str) -> None:
        self.calls = calls
        self.is_over = False
        self.is_interrupted = False
        """Set by whoever sent the cancel."""
        self.has_heard = False
        """Whether the agent has said or done anything yet."""
        self.ignore_text = False
        """Set where what comes as text is not the model's."""
        self._ignored: set[str] = set()
        self._agent_name = agent_name
        self._texts: list[str] = []
        self._whole: list[tuple[str, str]] = []
        self._item_id = ""
        self._items = 0
        self._told_id: str | None = None
        self._noticed: set[str] = set()

    def unknown(self, kind: str) -> list[TurnEvent]:
        """Something we have no reading for: told once per kind and turn."""
        return self._once(
            kind, notice("unknown_peer_event", f"{self._agent_name} sent {kind}, which is not known here")
        )

    def acted(self) -> list[TurnEvent]:
        """The model acts: what it said before was said on the way."""
        return self._close("commentary")

    @property
    def last_text(self) -> str:
        """What the agent said last."""
        return "".join(self._texts) or (self._whole[-1][1] if self._whole else "")

    def discard(self, reason: str) -> list[TurnEvent]:
        """The agent starts its message again: what it has streamed of it does not count."""
        if not self._texts:
            return []
        self._texts = []
        return [item_discarded(self._item_id, reason)]

    def ignore_next(self, text: str) -> None:
        """This text will come as if the model had said it."""
        self._ignored.add(text)

    def read(self, update: JsonObject) -> list[TurnEvent]:
        kind = plain_text_in(update.get("sessionUpdate"))
        match kind:
            case "agent_message_chunk":
                return self._said(update)
            case "agent_thought_chunk":
                self.has_heard = True
                text = plain_text_in(object_in(update.get("content")).get("text"))
                return [thinking_delta(text, item_id=f"thought-{self._items}")] if text else []
            case "tool_call" | "tool_call_update":
                self.has_heard = True
                return [*self.acted(), *self.calls.update(update)]
            case "plan" | "plan_update":
                return [plan([_entry(one) for one in objects_in(update.get("entries"))])]
            case "current_mode_update":
                mode = plain_text_in(update.get("currentModeId"))
                return [notice("mode_changed", f"{self._agent_name} is in the mode '{mode}' now")]
            case _ if kind in _WITHOUT_NEWS:
                return []
            case _:
                return self.unknown(f"an update '{kind[:80]}'")

    def finish(self) -> list[TurnEvent]:
        """The agent has answered the prompt."""
        self.is_over = True
        return [*self._close("final"), *self.calls.end()]

    # inside

    def _said(self, update: JsonObject) -> list[TurnEvent]:
        content = object_in(update.get("content"))
        if content.get("type") != "text":
            return self.unknown(f"a message of type '{plain_text_in(content.get('type'))[:80]}'")
        text = plain_text_in(content.get("text"))
        if not text:
            return []
        if text.startswith(_WARNING):
            return self._once("warning", notice("peer_message", text.strip()))
        if self.ignore_text or text in self._ignored:
            return []
        self.has_heard = True
        told_id = plain_text_in(update.get("messageId")) or None
        if self._texts and told_id != self._told_id:
            self._put_aside()
        if not self._texts:
            self._items += 1
            self._told_id = told_id
            self._item_id = told_id or f"message-{self._items}"
        self._texts.append(text)
        return [text_delta(text, item_id=self._item_id)]

    def _put_aside(self) -> None:
        """The message is whole; what it was is clear when the model acts or ends."""
        if self._texts:
            self._whole.append((self._item_id, "".join(self._texts)))
            self._texts = []

    def _close(self, phase: str) -> list[TurnEvent]:
        self._put_aside()
        whole, self._whole = self._whole, []
        return [message([TextBlock(text=text)], phase=phase, item_id=item_id) for item_id, text in whole]

    def _once(self, key: str, event: TurnEvent) -> list[TurnEvent]:
        if key in self._noticed:
            return []
        self._noticed.add(key)
        return [event]


def _entry(entry: JsonObject) -> PlanEntry:
    status = plain_text_in(entry.get("status"))
    known = status if status in ("pending", "in_progress", "completed") else "pending"
    return PlanEntry(text=plain_text_in(entry.get("content")), status=known)
