"""Collects the stream of a run's turns into a `Completion` (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from harness.contract.content import ContentBlock, text_of
from harness.contract.output import (
    ErrorInfo,
    ItemDiscarded,
    Message,
    OutputItem,
    Phase,
    RequestOpened,
    RequestResolved,
    StopReason,
    TextDelta,
    ThinkingDelta,
    TurnEnded,
    TurnStatus,
    Usage,
)
from harness.contract.requests import AnsweredBy, HostRequest, HostResponse, RequestKind, RequestOutcome
from harness.contract.usage import UsageInfo, add_usage
from harness.errors import HarnessError
from harness.orchestrator.completion import Call, CallOutcome, Completion, info_of
from harness.orchestrator.exit_codes import exit_code
from harness.orchestrator.refusals import Refusal, RefusalKind

_CANCELLED = ErrorInfo(code="cancelled", message="The turn was cancelled.")
_REFUSED = frozenset({RequestOutcome.REFUSED, RequestOutcome.EXPIRED})
_ANSWERED = frozenset({RequestOutcome.ANSWERED, RequestOutcome.REFUSED})


@dataclass(frozen=True, slots=True)
class _Reply:
    content: list[ContentBlock]
    refusal: Refusal | None


class TurnRecord:
    """One turn as its stream tells it; subagents' messages are theirs, not the turn's text."""

    def __init__(self, conversation_id: str, turn_id: str) -> None:
        self.conversation_id = conversation_id
        self.turn_id = turn_id
        self.usage: UsageInfo | None = None
        self.end: TurnEnded | None = None
        self.structured_output_json: str | None = None
        self._messages: list[Message] = []
        self._text: list[TextDelta] = []
        self._thinking: list[ThinkingDelta] = []
        self._opened: dict[str, RequestOpened] = {}
        self._resolved: dict[str, RequestResolved] = {}
        self._replies: dict[str, _Reply] = {}

    def add(self, item: OutputItem) -> None:
        """The next item of the stream."""
        match item:
            case TextDelta(parent_call_id=None):
                self._text.append(item)
            case ThinkingDelta(parent_call_id=None):
                self._thinking.append(item)
            case Message(parent_call_id=None):
                self._messages.append(item)
            case ItemDiscarded(item_id=discarded):
                self._text = [delta for delta in self._text if delta.item_id != discarded]
                self._thinking = [delta for delta in self._thinking if delta.item_id != discarded]
            case RequestOpened():
                self._opened[item.request.request_id] = item
            case RequestResolved():
                self._resolved[item.request_id] = item
            case Usage():
                self.usage = item.usage
            case TurnEnded():
                self.end = item
            case _:
                pass

    def add_reply(self, response: HostResponse, refusal: Refusal | None) -> None:
        """What this host answered; the stream does not repeat it."""
        self._replies[response.request_id] = _Reply(response.content, refusal)

    def drop_reply(self, request_id: str) -> None:
        """The answer did not count."""
        self._replies.pop(request_id, None)

    @property
    def text(self) -> str:
        """The final messages, else those without phase, else what was streamed (contract 3)."""
        for phase in (Phase.FINAL, None):
            texts = [text_of(message.content) for message in self._messages if message.phase == phase]
            if texts:
                return "\n\n".join(texts)
        return _joined(self._text)

    @property
    def thinking(self) -> str | None:
        return _joined(self._thinking) or None

    @property
    def calls(self) -> list[Call]:
        return [self._call(opened) for opened in self._opened.values()]

    def _call(self, opened: RequestOpened) -> Call:
        request = opened.request
        resolved = self._resolved.get(request.request_id)
        reply = self._replies.get(request.request_id)
        if resolved is None or resolved.outcome not in _ANSWERED:
            reply = None  # it came too late
        refusal = _refusal(request, resolved, reply.refusal if reply else None)
        return Call(
            request_id=request.request_id,
            call_id=request.call_id,
            kind=request.kind,
            tool=request.tool_name,
            arguments=request.arguments_json,
            outcome=_outcome(request, resolved),
            refusal_kind=refusal.kind if refusal else None,
            refusal=refusal.text if refusal else None,
            duration_ms=max(0, resolved.at - opened.at) if resolved else None,
            result=reply.content or None if reply else None,
        )


def completion_of(
    records: Iterable[TurnRecord],
    *,
    duration_ms: int,
    structured_output: Any = None,
    error: ErrorInfo | HarnessError | None = None,
) -> Completion:
    """The whole run; the last turn decides what it came to, unless `error` says that the run itself failed."""
    turns = list(records)
    last = turns[-1] if turns else None
    end = last.end if last else None
    status, stop_reason = (end.status, end.stop_reason) if end else (TurnStatus.FAILED, StopReason.ERROR)
    if error is not None:
        status, stop_reason = TurnStatus.FAILED, StopReason.ERROR
    problem = info_of(error) if isinstance(error, HarnessError) else error or (end.error if end else None)
    if status == TurnStatus.CANCELLED:
        problem = problem or _CANCELLED
    calls = [call for turn in turns for call in turn.calls]
    usage: UsageInfo | None = None
    for turn in turns:
        usage = add_usage(usage, turn.usage)
    return Completion(
        content=last.text if last else None,
        status=status,
        stop_reason=stop_reason,
        conversation_id=last.conversation_id if last else None,
        turn_id=last.turn_id if last else None,
        usage=usage,
        structured_output=structured_output,
        calls=calls,
        tool_calls=sum(call.kind == RequestKind.TOOL_CALL for call in calls),
        failed_tool_calls=sum(
            call.kind == RequestKind.TOOL_CALL and call.outcome == CallOutcome.FAILED for call in calls
        ),
        refused_tool_calls=sum(
            call.kind != RequestKind.USER_QUESTION and call.outcome == CallOutcome.REFUSED for call in calls
        ),
        thinking="\n\n".join(turn.thinking for turn in turns if turn.thinking) or None,
        duration_ms=duration_ms,
        error=problem,
        exit_code=exit_code(status, stop_reason, problem.code) if problem else None,
    )


def _outcome(request: HostRequest, resolved: RequestResolved | None) -> CallOutcome:
    if resolved is None:
        return CallOutcome.UNKNOWN
    if resolved.outcome == RequestOutcome.ANSWERED:
        return CallOutcome.FAILED if resolved.is_error else CallOutcome.OK
    if resolved.outcome == RequestOutcome.EXPIRED and request.kind == RequestKind.TOOL_CALL:
        return CallOutcome.FAILED
    return CallOutcome.REFUSED if resolved.outcome in _REFUSED else CallOutcome.UNKNOWN


def _refusal(request: HostRequest, resolved: RequestResolved | None, own: Refusal | None) -> Refusal | None:
    """Why there was no ordinary answer; the stream says who answered, this host may know more."""
    if resolved is None:
        return None
    if resolved.outcome == RequestOutcome.EXPIRED:
        if request.kind == RequestKind.TOOL_CALL:
            return Refusal(RefusalKind.TIMED_OUT, "The tool gave no result in time.")
        return Refusal(RefusalKind.APPROVAL_TIMEOUT, "Nobody answered in time.")
    if resolved.outcome == RequestOutcome.ANSWERED:
        return own if resolved.is_error else None
    if resolved.outcome != RequestOutcome.REFUSED:
        return None
    if own is not None:
        return own
    by_policy = resolved.answered_by == AnsweredBy.POLICY
    kind = RefusalKind.DENIED if by_policy else RefusalKind.REJECTED
    return Refusal(kind, "Denied by policy." if by_policy else "Refused by another host.")


def _joined(deltas: Iterable[TextDelta | ThinkingDelta]) -> str:
    """Deltas of one item belong together, items are apart."""
    items = ("".join(delta.text for delta in run) for _, run in groupby(deltas, key=lambda delta: delta.item_id))
    return "\n\n".join(text for text in items if text)
