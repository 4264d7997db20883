"""One turn of a server, read over one event stream and shared by all who poll it here."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import anyio

from harness.contract.output import TERMINAL, OutputItem
from harness.contract.state import TurnState
from harness.errors import HarnessError, Internal, from_code
from harness.remote.server_connection import ServerConnection, StreamCut
from harness.wire.problem import decode_problem
from harness.wire.sse import ServerSentEvent, SseReader

_WINDOW_BYTES = 16 * 1024 * 1024
_LINGER_SECONDS = 60.0
"""A feed that nobody polls for this long is closed; the next poll opens another."""
_FRUITLESS_ATTEMPTS = 5
"""How often in a row a stream may break off without having brought anything."""
_FIRST_PAUSE_SECONDS = 0.1

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Step:
    """The turn at one event: its items are those after `since`."""

    since: int
    state: TurnState
    size: int


class TurnFeed:
    """Keeps the latest steps of the turn; run it in a task."""

    def __init__(self, connection: ServerConnection, path: str, turn_id: str, since: int) -> None:
        self.turn_id = turn_id
        self.is_closed = False
        self._connection = connection
        self._path = path
        self._start = since
        self._steps: list[_Step] = []
        self._kept_bytes = 0
        self._failure: HarnessError | None = None
        self._changed = anyio.Event()
        self._waiting = 0
        self._last_used = anyio.current_time()
        self._answered: set[str] = set()
        self._cancelled = False

    @property
    def is_over(self) -> bool:
        return bool(self._steps) and self._steps[-1].state.status in TERMINAL

    # for those who poll

    async def newer_than(self, since: int, max_items: int) -> TurnState | None:
        """The turn as soon as it has an item after `since` or is over; waits until then.

        Null when only the server can tell: the items are not kept here, or are more than `max_items` in one event.

        Raises:
            HarnessError: the server refused or is gone.
        """
        self._waiting += 1
        try:
            while not (self.is_over or (self._head > since and self._shows_own_calls())):
                if self._failure is not None:
                    raise from_code(self._failure.code, self._failure.message, self._failure.detail)
                if since < self._first_since:
                    return None
                await self._changed.wait()
        finally:
            self._waiting -= 1
            self._last_used = anyio.current_time()
        return self._joined(since, max_items)

    def note_answers(self, request_ids: Iterable[str]) -> None:
        """The server has taken these answers: a state that does not show it yet is not given out any more."""
        self._answered.update(request_ids)

    def note_cancel(self) -> None:
        """The same for a cancel."""
        self._cancelled = True

    # the task

    async def run(self) -> None:
        """Follows the turn to its end; what goes wrong is told to those who poll."""
        try:
            await self._follow()
        except HarnessError as error:
            self._failure = error
        except Exception:
            logger.exception("the feed of turn '%s' failed", self.turn_id)
            self._failure = Internal(f"reading turn '{self.turn_id}' failed; the log has the details")
        finally:
            self.is_closed = True
            self._note()

    async def _follow(self) -> None:
        fruitless = 0
        while not self.is_over and not self.is_closed:
            before, why = self._head, "it ended the stream before the turn was over"
            try:
                await self._read_stream(resumes=fruitless > 0 or bool(self._steps))
            except StreamCut as cut:
                why = f"the stream broke off ({cut})"
            fruitless = fruitless + 1 if self._head == before else 1
            if fruitless > _FRUITLESS_ATTEMPTS:
                raise self._connection.lost(why)
            if fruitless > 1:
                await anyio.sleep(_FIRST_PAUSE_SECONDS * 2 ** (fruitless - 2))

    async def _read_stream(self, *, resumes: bool) -> None:
        params = {} if resumes else {"since_sequence_no": self._head}
        headers = {"Last-Event-ID": str(self._head)} if resumes else {}
        reader = SseReader()
        async with self._connection.events(self._path, params, headers) as chunks:
            async for chunk in chunks:
                for event in reader.feed(chunk):
                    self._take(event)
                if self.is_over or self._is_forgotten():
                    return

    def _take(self, event: ServerSentEvent) -> None:
        if event.event == "problem":
            raise decode_problem(event.data, 0)
        if event.event not in ("state", "resync"):
            return
        state = self._connection.read(TurnState, event.data)
        self._steps.append(_Step(self._head, state, len(event.data)))
        self._kept_bytes += len(event.data)
        if self._kept_bytes > _WINDOW_BYTES * 1.1:  # rarely, as it moves what stays
            self._drop_oldest()
        self._note()

    def _drop_oldest(self) -> None:
        dropped = 0
        while self._kept_bytes > _WINDOW_BYTES and dropped < len(self._steps) - 1:
            self._kept_bytes -= self._steps[dropped].size
            dropped += 1
        del self._steps[:dropped]

    def _is_forgotten(self) -> bool:
        """Looked at with every event and heartbeat."""
        if self._waiting == 0 and anyio.current_time() - self._last_used > _LINGER_SECONDS:
            self.is_closed = True
        return self.is_closed

    def _note(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()

    # what is kept

    @property
    def _head(self) -> int:
        return self._steps[-1].state.sequence_no if self._steps else self._start

    @property
    def _first_since(self) -> int:
        return self._steps[0].since if self._steps else self._start

    def _shows_own_calls(self) -> bool:
        """A host that was told 'accepted' never sees that request open again, whatever is still on its way."""
        latest = self._steps[-1].state
        if self._cancelled and not latest.cancel_requested:
            return False
        return not any(request.request_id in self._answered for request in latest.pending_requests)

    def _joined(self, since: int, max_items: int) -> TurnState | None:
        if since < self._first_since:
            return None
        items: list[OutputItem] = []
        last: _Step | None = None
        first = bisect_right(self._steps, since, key=_number)
        for step in self._steps[first : first + max_items] or self._steps[-1:]:
            new = [item for item in step.state.new_output_items if item.sequence_no > since]
            if len(items) + len(new) > max_items:
                break
            items += new
            last = step
        if last is None:
            return None  # the first event with something new does not fit
        newest = self._steps[-1]
        has_more = last is not newest or last.state.has_more
        return last.state.model_copy(
            update={
                "new_output_items": items,
                "has_more": has_more,
                "sequence_no": max(since, last.state.sequence_no),
            }
        )


def _number(step: _Step) -> int:
    return step.state.sequence_no
