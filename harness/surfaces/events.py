"""A turn as server-sent events.

`event: state` carries a `TurnState` whose items are those after the previous event, and status, pending requests and
usage at its number: whoever keeps the last event and joins the items has the turn, with one parse per message. Its
`id` is that number, so `Last-Event-ID` resumes exactly behind it. `event: resync` is the same where earlier items are
gone (the gap ends before `first_sequence_no`; what carries state is all there, deltas are missing). `event: problem`
carries an error that ended the stream early. Every `heartbeat_seconds` without an event there is a comment. The stream
ends after the state that has a terminal status; when the server stops it ends earlier.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from harness.contract.output import TERMINAL, TextDelta, ThinkingDelta
from harness.contract.state import TurnState
from harness.errors import HarnessError, Internal
from harness.surfaces.call import Call, whole_number
from harness.wire.json_text import write_json
from harness.wire.problem import encode_problem
from harness.wire.sse import HEARTBEAT, encode_event

EVENT_STREAM = "text/event-stream"
_HEADERS = [
    (b"content-type", f"{EVENT_STREAM}; charset=utf-8".encode()),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_LAST_WORDS_SECONDS = 1.0
_PACE_SECONDS = 0.005
"""Deltas that follow each other faster than this go into one event: nobody reads faster, and each event costs."""
_DELTAS = (TextDelta, ThinkingDelta)

logger = logging.getLogger(__name__)


def wants_events(call: Call) -> bool:
    return EVENT_STREAM in call.http_request.headers.get("accept", "")


async def event_stream(call: Call) -> Response:
    """The stream from where the client stands. A first look finds errors while they can still be an HTTP status."""
    resumed = call.http_request.headers.get("last-event-id")
    since = call.number("since_sequence_no", 0)
    if resumed is not None:
        since = whole_number(resumed, "header 'Last-Event-ID'")
    max_items = call.number("max_items", 1000, minimum=1)
    state = await call.llm.poll_turn(call.conversation_id, call.turn_id, since, 0, max_items)
    if resumed is not None and state.status in TERMINAL and not state.new_output_items:
        # an EventSource connects again for ever; 204 tells it to stop
        return Response(status_code=204)
    return _EventStream(call, since, max_items)


class _EventStream(Response):
    def __init__(self, call: Call, since: int, max_items: int) -> None:
        super().__init__()
        self._call = call
        self._since = since
        self._poll = partial(
            call.llm.poll_turn,
            call.conversation_id,
            call.turn_id,
            max_wait_ms=int(call.served.heartbeat_seconds * 1000),
            max_items=max_items,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        async with self._call.served.waiters.parked(receive), aclosing(self._frames()) as frames:
            async for frame in frames:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
        with anyio.move_on_after(_LAST_WORDS_SECONDS):
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _frames(self) -> AsyncGenerator[bytes]:
        since = self._since
        try:
            while True:
                state = await self._poll(since_sequence_no=since)
                over = state.status in TERMINAL
                sent_at = anyio.current_time()
                if state.new_output_items or over:
                    yield _state_frame(state, since)
                else:
                    yield HEARTBEAT
                if over:
                    return
                since = state.sequence_no
                if state.new_output_items and all(isinstance(item, _DELTAS) for item in state.new_output_items):
                    await anyio.sleep_until(sent_at + _PACE_SECONDS)
        except HarnessError as error:
            yield encode_event("problem", encode_problem(error))
        except Exception:
            logger.exception("the event stream of turn '%s' failed", self._call.turn_id)
            yield encode_event("problem", encode_problem(Internal("an internal error; the server's log has more")))


def _state_frame(state: TurnState, since: int) -> bytes:
    event = "resync" if since + 1 < state.first_sequence_no else "state"
    return encode_event(event, write_json(state), event_id=str(state.sequence_no))
