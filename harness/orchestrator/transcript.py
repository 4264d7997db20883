"""A conversation so far as text, for a model that is asked about it (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.contract.content import ContentBlock, text_of
from harness.contract.requests import RequestKind
from harness.orchestrator.completion import Call
from harness.orchestrator.results import cut_middle
from harness.orchestrator.turn_record import TurnRecord

CALL_CHARS = 2000


@dataclass(frozen=True, slots=True)
class TurnSoFar:
    """What was said to the peer, and what it did about it until now; null where somebody else said it."""

    said: Sequence[ContentBlock] | None
    record: TurnRecord


def transcript(turns: Sequence[TurnSoFar], max_chars: int) -> str:
    """Messages, calls and results in their order as far as that is known; the middle of a long one is left out."""
    return cut_middle("\n\n".join(part for turn in turns for part in _parts(turn)), max_chars)


def _parts(turn: TurnSoFar) -> Iterator[str]:
    if turn.said is not None:
        yield f"User: {text_of(turn.said) or '(no text)'}"
    for call in turn.record.calls:
        yield _call(call)
    if turn.record.text:
        yield f"Assistant: {turn.record.text}"


def _call(call: Call) -> str:
    what = "Call" if call.kind == RequestKind.TOOL_CALL else "Asked for leave"
    arguments = cut_middle(call.arguments or "", CALL_CHARS)
    result = cut_middle(text_of(call.result or ()), CALL_CHARS)
    return f"{what}: {call.tool or ''} {arguments}\n-> {call.outcome}{f': {result}' if result else ''}"
