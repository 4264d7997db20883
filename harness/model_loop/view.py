"""The history as the model sees it: every call with its one result, long parts cut as `Cuts` says (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.model_loop import guard
from harness.model_loop.chat_model import (
    AssistantMessage,
    CallMade,
    HistoryEntry,
    ToolMessage,
    ToolOutcome,
    UserMessage,
    text_said,
)
from harness.model_loop.cuts import Cuts
from harness.model_loop.guard import FinishedCall
from harness.model_loop.history import Call, Entry, ModelSaid, Result, UserSaid

MAX_NAMED_CALLS = 20
MAX_NAMED_ARGUMENTS = 100
_MISSING = Result((TextBlock(text="The result of this call was lost; whether it took effect is unknown."),), True)


def rounds_of(answers: Sequence[ModelSaid]) -> list[list[FinishedCall]]:
    """The closed rounds of these answers, as the loop guard counts them."""
    return [
        [finished(call, answer.results[call.made.call_id]) for call in answer.calls]
        for answer in answers
        if answer.calls and answer.is_closed
    ]


def finished(call: Call, result: Result) -> FinishedCall:
    text = "\n".join(block.text if isinstance(block, TextBlock) else block.to_json() for block in result.content)
    return FinishedCall(call.made.tool_name, call.made.arguments_json, text, result.is_error)


def messages_of(
    entries: Sequence[Entry], cuts: Cuts, *, result_chars: int | None = None, guarded: bool = True
) -> tuple[HistoryEntry, ...]:
    """`result_chars` bounds one result; `guarded` adds what the loop guard has to say about repetitions."""
    limits = [limit for limit in (result_chars, cuts.result_chars) if limit is not None]
    view = _View(cuts, min(limits, default=None), guarded)
    return tuple(view.messages(entries))


class _View:
    def __init__(self, cuts: Cuts, result_chars: int | None, guarded: bool) -> None:
        self._cuts = cuts
        self._result_chars = result_chars
        self._guarded = guarded

    def messages(self, entries: Sequence[Entry]) -> Iterator[HistoryEntry]:
        cuts = self._cuts
        if cuts.drop_before:
            yield UserMessage((TextBlock(text=_replacement(entries[: cuts.drop_before], cuts.summary)),))
        rounds: list[list[FinishedCall]] = []
        for index, entry in enumerate(entries):
            if isinstance(entry, UserSaid):
                rounds = [] if entry.begins_turn else rounds
            elif entry.calls and entry.is_closed:
                rounds.append([finished(call, entry.results[call.made.call_id]) for call in entry.calls])
            if index >= cuts.drop_before or index == cuts.keep:
                yield from self._entry(entry, rounds, is_stub=index < cuts.stub_before)

    def _entry(self, entry: Entry, rounds: list[list[FinishedCall]], *, is_stub: bool) -> Iterator[HistoryEntry]:
        if isinstance(entry, UserSaid):
            yield UserMessage(entry.content)
            return
        yield AssistantMessage(entry.said, tuple(call.made for call in entry.calls), entry.native, entry.origin)
        if entry.calls or entry.asks:
            outcomes = tuple(self._outcome(entry, call, rounds, is_stub) for call in entry.calls)
            decisions = tuple(
                (ask, entry.decisions[ask.peer_request_id])
                for ask in entry.asks
                if ask.peer_request_id is not None and ask.peer_request_id in entry.decisions
            )
            yield ToolMessage(outcomes, decisions)

    def _outcome(self, entry: ModelSaid, call: Call, rounds: list[list[FinishedCall]], is_stub: bool) -> ToolOutcome:
        made = call.made
        result = entry.results.get(made.call_id, _MISSING)
        content, is_error = result.content, result.is_error
        if is_stub:
            content = (TextBlock(text=f"[The result of {_named(made)} was removed to save space.]"),)
        elif self._result_chars is not None:
            content = cut_content(content, self._result_chars)
        if self._guarded and entry.is_closed and call.problem is None:
            call_done = finished(call, result)
            found = guard.repetition(rounds, call_done)
            if found is not None:
                content, is_error = (TextBlock(text=guard.explanation(found, call_done)), *content), True
        return ToolOutcome(made.call_id, made.tool_name, content, is_error)


def cut_content(content: Sequence[ContentBlock], limit: int) -> tuple[ContentBlock, ...]:
    """Long texts keep head and tail around a marker that says how much is missing; other blocks stay."""
    return tuple(
        TextBlock(text=cut_text(block.text, limit)) if isinstance(block, TextBlock) else block for block in content
    )


def cut_text(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    missing = len(text) - head - tail
    return f"{text[:head]}\n[... {missing} of {len(text)} characters left out ...]\n{text[len(text) - tail :]}"


def size_of(messages: Sequence[HistoryEntry]) -> int:
    """A rough count of tokens: four characters each, a fixed price for an image and for a message's frame."""
    return sum(_size(message) for message in messages)


def _size(message: HistoryEntry) -> int:
    match message:
        case UserMessage(content):
            return 8 + _content_size(content)
        case AssistantMessage(said, calls, _, _):
            return 8 + len(text_said(said)) // 4 + sum(12 + len(call.arguments_json) // 4 for call in calls)
        case ToolMessage(results, _):
            return sum(12 + _content_size(result.content) for result in results)


def _content_size(content: Sequence[ContentBlock]) -> int:
    return sum(
        len(block.text) // 4 if isinstance(block, TextBlock) else 1200 if isinstance(block, ImageBlock) else 50
        for block in content
    )


def _named(call: CallMade) -> str:
    arguments = call.arguments_json
    shown = arguments if len(arguments) <= MAX_NAMED_ARGUMENTS else f"{arguments[:MAX_NAMED_ARGUMENTS]}..."
    return f"{call.tool_name}({shown})"


def _replacement(entries: Sequence[Entry], summary: str | None) -> str:
    """One line that stands for the entries left out."""
    if summary is not None:
        return f"[Earlier messages were replaced by this summary.]\n{summary}"
    calls = [call.made for entry in entries if isinstance(entry, ModelSaid) for call in entry.calls]
    named = ", ".join(_named(call) for call in calls[-MAX_NAMED_CALLS:])
    more = f"{len(calls) - MAX_NAMED_CALLS} others and " if len(calls) > MAX_NAMED_CALLS else ""
    tools = f" Tools called in them: {more}{named}." if calls else ""
    return f"[Earlier messages were removed to save space.{tools}]"
