"""How far a turn is, as progress notifications: what happens, and every 15 seconds that it still goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from harness.contract.output import (
    InternalToolFinished,
    InternalToolStarted,
    Notice,
    OutputItem,
    Plan,
    PlanEntryStatus,
    RequestOpened,
    TextDelta,
    ThinkingDelta,
)
from harness.contract.requests import RequestKind
from harness.orchestrator.lines import ItemLine, Line
from harness.policy import PolicyCall, call_text

BEAT_SECONDS = 15.0
"""Clients whose limit restarts with every progress wait a minute or more."""
SHOWN_CHARS = 200

Report: TypeAlias = Callable[[int, str], Awaitable[None]]
"""Sends one notification; the number only grows."""


class Progress:
    """Tells one call's client. What is the same as before is not told again."""

    def __init__(self, report: Report, beat_seconds: float = BEAT_SECONDS) -> None:
        self._report = report
        self._beat_seconds = beat_seconds
        self._count = 0
        self._said = ""
        self._text = ""

    async def see(self, line: Line) -> None:
        if not isinstance(line, ItemLine):
            return
        step = self._step(line.item)
        if step is not None and step != self._said:
            await self._tell(step)

    async def beat(self) -> None:
        """Until it is cancelled."""
        while True:
            await anyio.sleep(self._beat_seconds)
            await self._tell(self._said or "working")

    def to(self, report: Report) -> None:
        """From now on to this call."""
        self._report = report

    async def _tell(self, message: str) -> None:
        self._count += 1
        self._said = message
        await self._report(self._count, message)

    def _step(self, item: OutputItem) -> str | None:
        if isinstance(item, TextDelta) and item.parent_call_id is None:
            self._text = f"{self._text}{item.text}".rpartition("\n")[2][-SHOWN_CHARS:]
            return self._text.strip() or None
        self._text = ""
        return _step_of(item)


def _step_of(item: OutputItem) -> str | None:
    match item:
        case ThinkingDelta():
            return "thinking"
        case InternalToolStarted():
            return f"uses {_call(item.tool_name, item.arguments_json)}"
        case InternalToolFinished():
            return f"the tool ended: {item.result}"
        case RequestOpened(request=request) if request.kind == RequestKind.APPROVAL:
            return f"waits for leave: {_call(request.tool_name or 'something', request.arguments_json)}"
        case RequestOpened(request=request) if request.kind == RequestKind.USER_QUESTION:
            return "waits for an answer to a question"
        case Plan(entries=entries):
            done = sum(entry.status == PlanEntryStatus.COMPLETED for entry in entries)
            return f"plan: {done} of {len(entries)} done"
        case Notice(text=text):
            return text[:SHOWN_CHARS]
        case _:
            return None


def _call(tool: str, arguments_json: str | None) -> str:
    return call_text(PolicyCall(tool, arguments_json or "{}"))[:SHOWN_CHARS]
