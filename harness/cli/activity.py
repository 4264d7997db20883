"""What a person reads about a turn's requests and tools, line by line (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from harness.contract.output import (
    InternalToolFinished,
    InternalToolStarted,
    Item,
    ItemDiscarded,
    Notice,
    Plan,
    PlanEntryStatus,
    RequestOpened,
    RequestResolved,
)
from harness.contract.requests import HostRequest, RequestKind, RequestOutcome
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.orchestrator.lines import ProgressLine

ARGUMENTS_LIMIT = 300


class Style(StrEnum):
    """How a line is meant; the terminal chooses the colour."""

    CALL = "call"
    GOOD = "good"
    BAD = "bad"
    QUIET = "quiet"
    ALERT = "alert"


@dataclass(frozen=True, slots=True)
class Line:
    style: Style
    text: str


class Activity:
    """Remembers what is open, so that the end of a call can say which call it was and how long it took."""

    def __init__(self, *, full: bool = False) -> None:
        self._limit = None if full else ARGUMENTS_LIMIT
        self._open: dict[str, tuple[HostRequest, int]] = {}
        self._inside: dict[str, tuple[str, int]] = {}

    def progress(self, line: ProgressLine) -> Line:
        known = self._open.get(line.request_id)
        name = known[0].tool_name if known is not None else line.request_id
        total = "" if line.total is None else f" of {line.total:g}"
        return Line(Style.QUIET, f"  {name}: {line.done:g}{total}{f', {line.message}' if line.message else ''}")

    def lines(self, item: Item) -> Iterator[Line]:
        """What there is to say about this item; nothing about text, thinking and usage."""
        match item:
            case RequestOpened(request=request, at=at):
                self._open[request.request_id] = (request, at)
                yield Line(Style.CALL, f"→ {self._what(request)}")
            case RequestResolved():
                yield self._resolved(item)
            case InternalToolStarted(call_id=call_id, tool_name=name, arguments_json=arguments, at=at):
                shown = call_text(name, arguments, self._limit)
                self._inside[call_id] = (shown, at)
                where = f"source '{item.source}'" if item.source else "the peer itself"
                yield Line(Style.CALL, f"→ {shown}, run by {where}")
            case InternalToolFinished():
                yield self._finished(item)
            case Plan(entries=entries):
                marks = {PlanEntryStatus.COMPLETED: "x", PlanEntryStatus.IN_PROGRESS: ">"}
                for entry in entries:
                    yield Line(Style.QUIET, f"  [{marks.get(cast(PlanEntryStatus, entry.status), ' ')}] {entry.text}")
            case Notice(code=code, text=text):
                style = Style.QUIET if code in ("peer_started", "cancel_requested") else Style.ALERT
                what = code.replace("_", " ")
                yield Line(style, f"· {what}: {text}" if text else f"· {what}")
            case ItemDiscarded(reason=reason):
                yield Line(Style.QUIET, f"· the peer starts its message again ({reason})")
            case _:
                pass

    def _what(self, request: HostRequest) -> str:
        shown = call_text(request.tool_name or "?", request.arguments_json, self._limit)
        if request.kind == RequestKind.APPROVAL:
            return f"approval of {shown}"
        if request.kind == RequestKind.USER_QUESTION:
            return f"question: {'; '.join(question.text for question in request.questions) or request.title or '?'}"
        return shown

    def _resolved(self, item: RequestResolved) -> Line:
        request, opened_at = self._open.pop(item.request_id, (None, item.at))
        what = self._what(request) if request else item.request_id
        took = duration(item.at - opened_at)
        if item.outcome == RequestOutcome.ANSWERED:
            by = item.answered_by or "host"
            if item.is_error:
                return Line(Style.BAD, f"✗ {what}: failed, answered by the {by} in {took}")
            verb = "allowed" if request and request.kind == RequestKind.APPROVAL else "answered"
            return Line(Style.GOOD, f"✓ {what}: {verb} by the {by} in {took}")
        by = f" by the {item.answered_by}" if item.answered_by else ""
        return Line(Style.BAD, f"✗ {what}: {item.outcome}{by} after {took}")

    def _finished(self, item: InternalToolFinished) -> Line:
        shown, started_at = self._inside.pop(item.call_id, (item.call_id, item.at))
        took = duration(item.duration_ms if item.duration_ms is not None else item.at - started_at)
        style, mark = (Style.GOOD, "✓") if item.result == "ok" else (Style.BAD, "✗")
        return Line(style, f"{mark} {shown}: {item.result} after {took}")


def call_text(name: str, arguments_json: str | None, limit: int | None = ARGUMENTS_LIMIT) -> str:
    """`get_weather(city="Oslo")`; what is no object is shown as it came."""
    try:
        arguments: JsonValue = json.loads(arguments_json or "{}")
    except ValueError:
        arguments = None
    if isinstance(arguments, dict):
        members = cast(dict[str, JsonValue], arguments)
        inner = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in members.items())
    else:
        inner = arguments_json or ""
    if limit is not None and len(inner) > limit:
        inner = f"{inner[:limit]}…"
    return f"{name}({inner})"


def duration(ms: int) -> str:
    if ms < 1000:
        return f"{ms} ms"
    seconds = ms / 1000
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60} s"


def usage_text(usage: UsageInfo | None) -> str:
    """The figures somebody reported, in one line."""
    if usage is None:
        return "usage: not reported"
    figures = [
        (usage.input_tokens, "input tokens"),
        (usage.cached_input_tokens, "of them cached"),
        (usage.output_tokens, "output tokens"),
        (usage.reasoning_tokens, "of them reasoning"),
        (usage.model_calls, "model calls"),
    ]
    parts = [f"{value} {name}" for value, name in figures if value is not None]
    if usage.cost_usd is not None:
        parts.append(f"{usage.cost_usd:.4f} USD")
    return f"usage: {', '.join(parts) or 'not reported'}"
