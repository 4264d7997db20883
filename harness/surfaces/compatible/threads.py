"""The conversations of one token that a further request may belong to, and which one that is (no I/O)."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from harness.contract.options import HistoryMessage
from harness.contract.requests import HostRequest
from harness.contract.tools import ToolDescriptor
from harness.contract.value import JsonValue
from harness.errors import HarnessError, TurnInProgress
from harness.surfaces.compatible.exchange import ModelRequest
from harness.surfaces.compatible.reading import TurnReading
from harness.surfaces.compatible.refusals import REPLY_NOT_FOUND, missing_tool_results, refused
from harness.surfaces.compatible.tips import split, tip


@dataclass(frozen=True, slots=True)
class Kind:
    """What a conversation is fixed to; a request of another kind begins another one."""

    model: str
    system_prompt: str
    tools: tuple[tuple[str, str, JsonValue], ...]
    output_schema_json: str | None = None

    @staticmethod
    def of(request: ModelRequest, output_schema_json: str | None = None) -> Kind:
        return Kind(request.model, (request.system_prompt or "").strip(), _tools(request.tools), output_schema_json)


@dataclass(eq=False)
class Thread:
    """One conversation, as the wire's clients can see it."""

    conversation_id: str
    kind: Kind | None
    """Null while nobody has said what it is: then its history does not lead to it."""
    is_foreign: bool = False
    """It was begun by another surface, and only named here: it is not ours to end."""
    tips: Collection[str] = ()
    """Where it stands: with the last assistant message as it was streamed, and without what was taken back."""
    waiting: dict[str, HostRequest] = field(default_factory=dict[str, HostRequest])
    """The calls that a client has seen and not answered, by the id on the wire."""
    reading: TurnReading | None = None
    """The turn that goes on when those are answered."""
    last_reply: str | None = None
    is_busy: bool = False
    """A reply grows."""
    touched_at: float = 0.0


@dataclass(frozen=True, slots=True)
class New:
    """What a request adds to its history."""

    history: Sequence[HistoryMessage]
    message: HistoryMessage

    @staticmethod
    def of(request: ModelRequest) -> New:
        """Raises:
        InvalidArgument: the assistant has the last word.
        """
        history, message = split(request.messages)
        if message is None or not (message.content or message.tool_results):
            raise refused("the last message must be the user's words or tool results", param="messages")
        return New(history, message)


def thread_for(threads: Iterable[Thread], request: ModelRequest, new: New, kind: Kind) -> Thread | None:
    """The conversation that a request continues; null where it begins one.

    Raises:
        InvalidArgument: it answers some of the calls that wait and not all of them.
        TurnInProgress: the conversation that it continues is at work.
    """
    known = list(threads)
    found = _by_reply(known, request) or _by_calls(known, new) or _by_tip(known, new, kind)
    if found is not None:
        check_answers(found, new)
    return found


def check_answers(thread: Thread, new: New) -> None:
    """Raises:
    InvalidArgument: calls of this conversation stay without a result, or a result has no call.
    TurnInProgress: a reply of this conversation grows, and this request is not equal to its own.
    """
    if thread.is_busy:
        raise _busy(thread)
    given = {result.call_id for result in new.message.tool_results}
    missing = [call_id for call_id in thread.waiting if call_id not in given]
    if missing:
        raise missing_tool_results(missing, thread.conversation_id)
    strange = sorted(given - thread.waiting.keys())
    if strange:
        raise refused(f"no call '{strange[0]}' waits for a result in this conversation", param="messages")


def _by_reply(threads: Sequence[Thread], request: ModelRequest) -> Thread | None:
    if request.previous_reply is None:
        return None
    found = [thread for thread in threads if thread.last_reply == request.previous_reply]
    if not found:
        raise refused(
            f"no reply '{request.previous_reply}' that can be continued here: it is unknown, expired, or continued "
            "already; send the whole history instead",
            reason=REPLY_NOT_FOUND,
            param="previous_response_id",
        )
    return found[0]


def _by_calls(threads: Sequence[Thread], new: New) -> Thread | None:
    """The call ids decide; where several conversations have them, the history that ends with that message does.

    One that is at work has its answers: others, from somebody who was told the same, belong to a history of their own.
    Conversations that are alike in this too stand at the same point, so either may go on.
    """
    ids = {result.call_id for result in new.message.tool_results}
    found = [thread for thread in threads if not thread.is_busy and not ids.isdisjoint(thread.waiting)]
    if len(found) <= 1:
        return found[0] if found else None
    stands_at = tip(new.history)
    found = [thread for thread in found if stands_at in thread.tips]
    return min(found, key=lambda thread: thread.touched_at) if found else None


def _by_tip(threads: Sequence[Thread], new: New, kind: Kind) -> Thread | None:
    """Exactly one that stands where the history ends; a history of nothing is no place to stand at."""
    if not new.history:
        return None
    stands_at = tip(new.history)
    found = [thread for thread in threads if not thread.is_busy and thread.kind == kind and stands_at in thread.tips]
    return found[0] if len(found) == 1 else None


def _busy(thread: Thread) -> HarnessError:
    return TurnInProgress(
        f"conversation '{thread.conversation_id}' is still answering another request: repeat this one when it is over",
        conversation_id=thread.conversation_id,
    )


def _tools(tools: Sequence[ToolDescriptor]) -> tuple[tuple[str, str, JsonValue], ...]:
    return tuple(sorted((tool.name, tool.description, _canonical(tool.input_schema_json)) for tool in tools))


def _canonical(schema_json: str) -> str:
    try:
        return json.dumps(json.loads(schema_json), sort_keys=True)
    except ValueError:
        return schema_json
