"""The tool calls of one turn as the agent's updates tell them, a piece at a time: the host's, and its own. Pure."""

from __future__ import annotations

import json

from bridge_mcp.correlation import Correlation
from connectors._json import JsonObject, compact_json, object_in, objects_in, plain_text_in, text_in
from connectors._text import without_surrogates
from connectors.acp.names import ToolNames
from harness.contract.value import JsonValue
from harness.turn.events import TurnEvent, internal_tool_finished, internal_tool_started

_RESULTS = {"completed": "ok", "failed": "failed"}


class ToolCalls:
    """Merges updates by the call's id. The host's calls go to the correlation, the agent's own become items."""

    def __init__(self, names: ToolNames, correlation: Correlation, *, has_prefixed_ids: bool, source: str) -> None:
        self._names = names
        self._correlation = correlation
        self._has_prefixed_ids = has_prefixed_ids
        self._source = source
        self._known: dict[str, JsonObject] = {}
        self._ours: set[str] = set()
        self._shown: set[str] = set()
        self._closed: set[str] = set()
        self._refused: set[str] = set()
        self._names_told: dict[str, str] = {}
        self._first_titles: dict[str, str] = {}

    def is_ours(self, call_id: str) -> bool:
        return call_id in self._ours

    def merged(self, call_id: str) -> JsonObject:
        """All that was told of the call."""
        return self._known.get(call_id, {})

    def model_id(self, call_id: str) -> str:
        """The id as the model gave it."""
        return call_id.partition("__")[2] or call_id if self._has_prefixed_ids else call_id

    def named(self, call_id: str, name: str) -> None:
        """The agent has told elsewhere how the tool is called."""
        self._names_told[call_id] = name

    def refused(self, call_id: str) -> None:
        """The host has denied it."""
        self._refused.add(call_id)

    def update(self, update: JsonObject, *, asks: bool = False) -> list[TurnEvent]:
        """More of a call. `asks`: the agent asks for permission, so that the call is written to its end."""
        call_id = plain_text_in(update.get("toolCallId"))
        if not call_id:
            return []
        if update.get("sessionUpdate") == "tool_call":
            self._first_titles.setdefault(call_id, plain_text_in(update.get("title")))
        told = {name: value for name, value in update.items() if value is not None and name != "sessionUpdate"}
        if not object_in(told.get("rawInput")) and object_in(self._known.get(call_id, {}).get("rawInput")):
            told.pop("rawInput", None)
        call = self._known[call_id] = {**self._known.get(call_id, {}), **told}
        tool = self._names.tool_of(call)
        if tool is not None:
            self._ours.add(call_id)
        if call_id in self._ours:
            self._tell_bridge(call_id, call, tool, asks=asks)
            return []
        return self._own(call_id, call, asks=asks)

    def unfinished(self) -> dict[str, str]:
        """The calls whose end was not told: id -> tool."""
        calls = (call_id for call_id, call in self._known.items() if call.get("status") not in _RESULTS)
        return {self.model_id(call_id): self.name_of(call_id) for call_id in calls}

    def end(self) -> list[TurnEvent]:
        """What the agent left open when the turn ended: it sends nothing more about it."""
        return [
            internal_tool_finished(self.model_id(call_id), "refused" if call_id in self._refused else "unknown")
            for call_id in sorted(self._shown - self._closed)
        ]

    # inside

    def _tell_bridge(self, call_id: str, call: JsonObject, tool: str | None, *, asks: bool) -> None:
        status = plain_text_in(call.get("status"))
        self._correlation.see(
            self.model_id(call_id),
            tool_name=tool,
            arguments=self._names.arguments_of(call),
            is_written=asks or status in ("in_progress", "completed", "failed"),
        )
        if status in _RESULTS:
            self._correlation.close(self.model_id(call_id))

    def _own(self, call_id: str, call: JsonObject, *, asks: bool) -> list[TurnEvent]:
        events: list[TurnEvent] = []
        status = plain_text_in(call.get("status"))
        is_known = bool(object_in(call.get("rawInput"))) or asks or status != "pending"
        if call_id not in self._shown and is_known:
            self._shown.add(call_id)
            raw = object_in(call.get("rawInput"))
            name, source = self.name_of(call_id), plain_text_in(raw.get("server")) or self._source
            arguments = compact_json(object_in(raw.get("arguments")) if "server" in raw else raw)
            events.append(internal_tool_started(self.model_id(call_id), name, arguments_json=arguments, source=source))
        if status in _RESULTS and call_id not in self._closed and call_id in self._shown:
            self._closed.add(call_id)
            result = "refused" if call_id in self._refused else _RESULTS[status]
            text = without_surrogates(_result_text(call))
            events.append(internal_tool_finished(self.model_id(call_id), result, result_text=text or None))
        return events

    def name_of(self, call_id: str) -> str:
        """The tool's own name where the agent tells it, else what it is titled."""
        call = self.merged(call_id)
        meta = object_in(call.get("_meta"))
        by_agent = plain_text_in(object_in(meta.get("claudeCode")).get("toolName"))
        by_harness = plain_text_in(object_in(meta.get("level2-harness")).get("toolName"))
        raw = object_in(call.get("rawInput"))
        prefix = call_id.partition("__")[0] if self._has_prefixed_ids and "__" in call_id else ""
        of_server = plain_text_in(raw.get("tool")) if "server" in raw else ""
        told = self._names_told.get(call_id) or by_agent or by_harness or of_server or prefix
        # many begin with the tool's name and go on with what it does
        told = told or self._first_titles.get(call_id, "")
        return told or plain_text_in(call.get("title")) or plain_text_in(call.get("kind")) or "tool"


def _result_text(call: JsonObject) -> str:
    parts: list[str] = []
    for block in objects_in(call.get("content")):
        content = object_in(block.get("content"))
        if block.get("type") == "content":
            parts.append(text_in(content.get("text")) or f"[{content.get('type')}]")
        elif block.get("type") == "diff":
            parts.append(f"[a change of {block.get('path')}]")
    if parts:
        return "\n".join(parts)
    raw: JsonValue = call.get("rawOutput")
    if raw is None:
        return ""
    return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False)
