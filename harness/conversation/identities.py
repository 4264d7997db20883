"""Gives requests their ids: the provider's call id where there is one, unique within the conversation."""

from __future__ import annotations

from collections.abc import Iterable

from harness.contract.options import HistoryMessage
from harness.contract.requests import HostRequest, RequestKind

_PREFIX = {RequestKind.APPROVAL: "a", RequestKind.USER_QUESTION: "q"}


def call_ids_in(history: Iterable[HistoryMessage]) -> list[str]:
    """Ids that a conversation was begun with; whoever knows the history knows them as other calls."""
    return [call.call_id for message in history for call in message.tool_calls]


class Identities:
    """The request ids of one conversation; an id that was given once is never given again."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._next = len(self._used)  # at least as high as the highest number given

    def request_id(self, request: HostRequest) -> str:
        """For a tool call its call id, with `~2`, `~3` ... when the peer repeats it; for others ids of ours.

        A peer that is a harness itself has given the id already, and it stays.
        """
        if request.request_id:
            return self._take(request.request_id, "~", 2)
        if request.kind == RequestKind.TOOL_CALL and request.call_id:
            return self._take(request.call_id, "~", 2)
        prefix = _PREFIX.get(RequestKind(request.kind), "t") if request.kind in RequestKind else "r"
        self._next += 1
        return self._take(f"{prefix}{self._next}", "~", 2)

    def _take(self, wanted: str, separator: str, start: int) -> str:
        given, number = wanted, start
        while given in self._used:
            given, number = f"{wanted}{separator}{number}", number + 1
        self._used.add(given)
        return given
