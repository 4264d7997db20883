"""Which call of the peer's stream a `tools/call` is, where the two carry no common id. Pure.

The stream tells of a call by its id, its tool and, sometimes later or never, its arguments; the bridge gets tool and
arguments. Equal ones are interchangeable and taken in the stream's order. Whoever finds nothing at once may wait a
moment, because a request can overtake the stream, and then ask for the last time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, cast

from harness.contract.requests import CallIdSource
from harness.contract.value import JsonValue

JsonObject: TypeAlias = dict[str, JsonValue]


@dataclass(slots=True)
class SeenCall:
    """A call as the peer's stream has told it so far."""

    call_id: str
    order: int
    tool_name: str | None = None
    arguments: JsonObject | None = None
    """Null while, or where, the peer does not tell them; empty ones may still be filled."""
    is_written: bool = False
    """The peer goes on with it: its arguments will not change any more."""
    is_taken: bool = False
    is_closed: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """`call_id` is null where it had to be made up."""

    call_id: str | None
    source: CallIdSource
    order: int | None = None


class Correlation:
    """The calls of one turn. Each is found once."""

    def __init__(self) -> None:
        self._calls: dict[str, SeenCall] = {}

    # from the peer's stream

    def see(
        self,
        call_id: str,
        *,
        tool_name: str | None = None,
        arguments: JsonObject | None = None,
        is_written: bool = False,
    ) -> None:
        """The stream tells of a call, for the first time or more of it."""
        call = self._calls.setdefault(call_id, SeenCall(call_id, len(self._calls)))
        call.tool_name = tool_name or call.tool_name
        if arguments or call.arguments is None:
            call.arguments = arguments if arguments is not None else call.arguments
        call.is_written = call.is_written or is_written

    def close(self, call_id: str) -> None:
        """The stream says that the call is over: no later request is it."""
        call = self._calls.get(call_id)
        if call is not None:
            call.is_closed = True

    def has_seen(self, call_id: str) -> bool:
        return call_id in self._calls

    # from the bridge

    def find(
        self, tool_name: str, arguments: JsonObject, *, told_id: str | None = None, is_last_try: bool = False
    ) -> Found | None:
        """The call that this request is; null while the stream may still tell. The last try always finds something."""
        if told_id is not None:
            told = self._calls.get(told_id)
            if told is not None:
                told.is_taken = True
            return Found(told_id, CallIdSource.EXACT, told.order if told is not None else None)
        call = self._candidate(tool_name, arguments, is_last_try=is_last_try)
        if call is not None:
            call.is_taken = True
            return Found(call.call_id, CallIdSource.MATCHED, call.order)
        return Found(None, CallIdSource.MADE_UP) if is_last_try else None

    def _candidate(self, tool_name: str, arguments: JsonObject, *, is_last_try: bool) -> SeenCall | None:
        named = [
            call
            for call in self._calls.values()
            if call.tool_name == tool_name and not call.is_taken and not call.is_closed
        ]
        equal = [call for call in named if call.arguments is not None and same_json(call.arguments, arguments)]
        # empty arguments that may still be filled come after those that are meant so
        found = next((call for call in equal if call.is_written), None) or next(iter(equal), None)
        if found is not None:
            return found
        untold = [call for call in named if call.arguments is None]
        if untold and (is_last_try or all(call.is_written for call in untold)):
            return untold[0]
        unfinished = [call for call in named if not call.arguments and not call.is_written]
        return unfinished[0] if is_last_try and unfinished else None


def same_json(first: JsonValue, second: JsonValue) -> bool:
    """Equal as JSON: true is not 1, and the order of keys means nothing."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        one, other = cast(JsonObject, first), cast(JsonObject, second)
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(first, list) and isinstance(second, list):
        ours, theirs = cast(list[JsonValue], first), cast(list[JsonValue], second)
        return len(ours) == len(theirs) and all(map(same_json, ours, theirs))
    return bool(first == second)
