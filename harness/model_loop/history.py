"""The history of one conversation with a bare model, as records of the session log.

A record is appended when something is promised: the user's message, a whole answer, a result. What an earlier process
left is read back the same way, so a turn goes on where it stood. Entries are never changed and hold everything whole;
what is left out of a long prompt is `context.py`'s affair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from pydantic import TypeAdapter

from harness.connector import SessionLog
from harness.contract.content import ContentBlock, TextBlock
from harness.contract.options import HistoryMessage, HistoryRole
from harness.contract.requests import CallIdSource, HostRequest, HostResponse
from harness.contract.usage import UsageInfo, add_usage
from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.model_loop.chat_model import CallMade, Said
from harness.model_loop.cuts import Cuts

_CONTENT: TypeAdapter[list[ContentBlock]] = TypeAdapter(list[ContentBlock])


@dataclass(frozen=True, slots=True)
class UserSaid:
    content: tuple[ContentBlock, ...]
    begins_turn: bool = True
    """False for words of the loop's own, such as the wish for a corrected answer."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call under its unique id; `problem` (code, text) answers it without the host."""

    made: CallMade
    id_source: CallIdSource = CallIdSource.EXACT
    problem: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Result:
    content: tuple[ContentBlock, ...]
    is_error: bool = False


@dataclass(slots=True)
class ModelSaid:
    """An answer; its results and decisions arrive later, each once."""

    item_id: str = ""
    said: tuple[Said, ...] = ()
    calls: tuple[Call, ...] = ()
    asks: tuple[HostRequest, ...] = ()
    stop: str = ""
    native: JsonValue = None
    origin: str | None = None
    usage: UsageInfo | None = None
    estimate: int = 0
    """Our uncalibrated guess of its prompt, to be compared with the provider's figure."""
    results: dict[str, Result] = field(default_factory=dict[str, Result])
    decisions: dict[str, HostResponse] = field(default_factory=dict[str, HostResponse])

    @property
    def is_untouched(self) -> bool:
        """Nobody has answered anything of it yet, so it may not even have been shown."""
        return not self.decisions and not any(c.problem is None and c.made.call_id in self.results for c in self.calls)

    @property
    def is_closed(self) -> bool:
        return len(self.results) == len(self.calls) and len(self.decisions) == len(self.asks)


Entry: TypeAlias = UserSaid | ModelSaid


class History:
    """All entries, oldest first: the seeded ones, then those of the log."""

    def __init__(self, seeded: Sequence[HistoryMessage], log: SessionLog) -> None:
        self._log = log
        self.entries: list[Entry] = list(_seeded(seeded))
        self.cuts = Cuts()
        """What is left out of the prompt; only ever grows."""
        self.calls_begun = 0
        self._side_usage: list[tuple[int, UsageInfo]] = []
        for record in cast(Sequence[Mapping[str, JsonValue]], log.records()):
            self._recall(record)

    # what is true now

    @property
    def open_answer(self) -> ModelSaid | None:
        """The newest answer, while a result or a decision of it is missing."""
        newest = self.entries[-1] if self.entries else None
        return newest if isinstance(newest, ModelSaid) and not newest.is_closed else None

    @property
    def call_ids(self) -> set[str]:
        return {call.made.call_id for entry in self.entries if isinstance(entry, ModelSaid) for call in entry.calls}

    @property
    def wants_correction(self) -> bool:
        """The loop has asked this turn's answer to be said again."""
        said = [entry for entry in self.entries[self.turn_starts_at() :] if isinstance(entry, UserSaid)]
        return any(not entry.begins_turn for entry in said)

    def answers_of_turn(self) -> list[ModelSaid]:
        """The model's answers since the user's last message."""
        found: list[ModelSaid] = []
        for entry in reversed(self.entries):
            if isinstance(entry, ModelSaid):
                found.append(entry)
            elif entry.begins_turn:
                break
        return found[::-1]

    def turn_starts_at(self) -> int:
        """The index of the user's last message."""
        starts = (i for i in range(len(self.entries) - 1, -1, -1) if _begins_turn(self.entries[i]))
        return next(starts, 0)

    def usage(self, since: int = 0) -> UsageInfo | None:
        """What all model calls after that entry took together."""
        parts = [entry.usage for entry in self.entries[since:] if isinstance(entry, ModelSaid)]
        parts += [usage for place, usage in self._side_usage if place > since]
        total: UsageInfo | None = None
        for part in parts:
            total = add_usage(total, part)
        return total

    # what is added

    def begin_turn(self, content: Sequence[ContentBlock]) -> None:
        self._add({"kind": "user", "content": _CONTENT.dump_python(list(content), mode="json")})

    def ask_again(self, text: str) -> None:
        content = _CONTENT.dump_python([TextBlock(text=text)], mode="json")
        self._add({"kind": "user", "content": content, "begins_turn": False})

    def begin_call(self) -> str:
        """A model call begins: the id of its item, never given before."""
        item_id = f"m{self.calls_begun + 1}"
        self._add({"kind": "calling", "item_id": item_id})
        return item_id

    def add_answer(self, answer: ModelSaid) -> ModelSaid:
        self._add(
            {
                "kind": "model",
                "item_id": answer.item_id,
                "said": [[one.text, one.phase] for one in answer.said],
                "calls": [_call_record(call) for call in answer.calls],
                "asks": [ask.to_dict() for ask in answer.asks],
                "stop": answer.stop,
                "native": answer.native,
                "origin": answer.origin,
                "usage": answer.usage.to_dict() if answer.usage is not None else None,
                "estimate": answer.estimate,
            }
        )
        return cast(ModelSaid, self.entries[-1])

    def add_result(self, call_id: str, result: Result) -> None:
        """The first result of a call of the newest answer counts; any other is dropped."""
        answer = self.open_answer
        is_awaited = answer is not None and any(call.made.call_id == call_id for call in answer.calls)
        if answer is not None and is_awaited and call_id not in answer.results:
            content = _CONTENT.dump_python(list(result.content), mode="json")
            self._add({"kind": "result", "call_id": call_id, "content": content, "is_error": result.is_error})

    def add_decision(self, peer_request_id: str, response: HostResponse) -> None:
        answer = self.open_answer
        is_awaited = answer is not None and any(ask.peer_request_id == peer_request_id for ask in answer.asks)
        if answer is not None and is_awaited and peer_request_id not in answer.decisions:
            self._add({"kind": "decision", "peer_request_id": peer_request_id, "response": response.to_dict()})

    def cut(self, cuts: Cuts, usage: UsageInfo | None = None) -> None:
        """From now on these parts are left out; `usage` is what a summary of them cost."""
        self._add({"kind": "cuts", **cuts.to_record(), "usage": usage.to_dict() if usage is not None else None})

    # records

    def _add(self, record: Mapping[str, JsonValue]) -> None:
        self._log.append(record)
        self._recall(record)

    def _recall(self, record: Mapping[str, JsonValue]) -> None:
        match record["kind"]:
            case "user":
                content = tuple(_CONTENT.validate_python(record["content"]))
                self.entries.append(UserSaid(content, record.get("begins_turn", True)))
            case "calling":
                self.calls_begun += 1
            case "model":
                self.entries.append(_answer_of(record))
            case "result":
                content = tuple(_CONTENT.validate_python(record["content"]))
                self._newest_answer().results[record["call_id"]] = Result(content, record["is_error"])
            case "decision":
                response = HostResponse.model_validate(record["response"])
                self._newest_answer().decisions[record["peer_request_id"]] = response
            case "cuts":
                self.cuts = Cuts.of_record(record)
                if record["usage"] is not None:
                    self._side_usage.append((len(self.entries), UsageInfo.model_validate(record["usage"])))
            case _:
                pass  # a record of a newer version

    def _newest_answer(self) -> ModelSaid:
        return next(entry for entry in reversed(self.entries) if isinstance(entry, ModelSaid))


def check_seeded(history: Sequence[HistoryMessage]) -> None:
    """Raises:
    InvalidArgument: a call without its one result in the next message, or a result without a call.
    """
    open_calls: set[str] = set()
    seen: set[str] = set()
    for message in history:
        if message.role == HistoryRole.ASSISTANT:
            _check_none_open(open_calls)
            for call in message.tool_calls:
                if call.call_id in seen or not call.call_id:
                    raise InvalidArgument(f"'history' has the call id '{call.call_id}' twice or empty")
                seen.add(call.call_id)
                open_calls.add(call.call_id)
        for result in message.tool_results:
            if result.call_id not in open_calls:
                raise InvalidArgument(
                    f"'history' has a result for '{result.call_id}', which no call before it waits for"
                )
            open_calls.remove(result.call_id)
        if message.role == HistoryRole.USER and message.content:
            _check_none_open(open_calls)
    _check_none_open(open_calls)


def _check_none_open(open_calls: Iterable[str]) -> None:
    missing = next(iter(sorted(open_calls)), None)
    if missing is not None:
        raise InvalidArgument(f"'history' has no result for the call '{missing}': add it to the message after the call")


def _seeded(history: Sequence[HistoryMessage]) -> Iterable[Entry]:
    newest = ModelSaid()
    for message in history:
        if message.role == HistoryRole.ASSISTANT:
            text = "\n".join(block.text for block in message.content if isinstance(block, TextBlock))
            calls = tuple(Call(CallMade(c.call_id, c.tool_name, c.arguments_json)) for c in message.tool_calls)
            newest = ModelSaid(said=(Said(text),) if text else (), calls=calls)
            yield newest
            continue
        for result in message.tool_results:
            newest.results[result.call_id] = Result(tuple(result.content), result.is_error)
        if message.content:
            yield UserSaid(tuple(message.content))


def _begins_turn(entry: Entry) -> bool:
    return isinstance(entry, UserSaid) and entry.begins_turn


def _call_record(call: Call) -> JsonValue:
    made = call.made
    return [made.call_id, made.tool_name, made.arguments_json, call.id_source, list(call.problem or ())]


def _call_of(record: Sequence[JsonValue]) -> Call:
    call_id, tool_name, arguments_json, id_source, problem = record
    return Call(
        CallMade(call_id, tool_name, arguments_json), CallIdSource(id_source), tuple(problem) if problem else None
    )


def _answer_of(record: Mapping[str, JsonValue]) -> ModelSaid:
    usage = record["usage"]
    return ModelSaid(
        item_id=record["item_id"],
        said=tuple(Said(text, phase) for text, phase in record["said"]),
        calls=tuple(_call_of(call) for call in record["calls"]),
        asks=tuple(HostRequest.model_validate(ask) for ask in record["asks"]),
        stop=record["stop"],
        native=record["native"],
        origin=record["origin"],
        usage=UsageInfo.model_validate(usage) if usage is not None else None,
        estimate=record["estimate"],
    )
