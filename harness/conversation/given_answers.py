"""How far the answers of the host came on their way to the peer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from harness.contract.requests import HostRequest, HostResponse
from harness.conversation.journal import Journal
from harness.conversation.recovery import GivenAnswer
from harness.store.port import AnswerDelivered, AnswerRecorded, AnswerState


class GivenAnswers:
    """Answers that the peer of one turn does not surely have; each step is journaled."""

    def __init__(self, turn_id: str, journal: Journal | None, *, are_history: bool) -> None:
        self._turn_id = turn_id
        self._journal = journal
        self._are_history = are_history
        """What is accepted is in the history of a model loop: it is delivered by being recorded."""
        self._given: dict[str, GivenAnswer] = {}
        self._is_left = False

    def pending(self) -> Collection[GivenAnswer]:
        return self._given.values()

    def accept(self, request: HostRequest, response: HostResponse, *, has_session: bool) -> None:
        """Accepted; where the same commit releases it to a session, it is on its way from then on."""
        self._given[request.request_id] = GivenAnswer(request, response, AnswerState.ACCEPTED)
        if self._journal is None:
            return
        if self._are_history:
            state = AnswerState.DELIVERED
        else:
            state = AnswerState.DELIVERING if has_session else AnswerState.ACCEPTED
        self._journal.note(AnswerRecorded(self._turn_id, response, state))

    def note_sending(self, request_id: str) -> None:
        given = self._given.get(request_id)
        if given is not None:
            self._given[request_id] = replace(given, state=AnswerState.DELIVERING)

    def note_delivered(self, request_id: str | None) -> None:
        if request_id is None or self._given.pop(request_id, None) is None:
            return
        if self._journal is not None and not self._is_left:
            self._journal.note_later(AnswerDelivered(self._turn_id, request_id))

    def leave(self) -> None:
        """This process is about to end: whether the peer still got something is for nobody to say."""
        self._is_left = True
