"""Lets a reply grow out of a turn, until the turn ends or the client is to run its tools."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import anyio

from harness.contract.requests import HostRequest
from harness.contract.state import TurnState
from harness.surfaces.call import OwnedLLM
from harness.surfaces.compatible.asides import call_of, is_aside, refusal_of, wire_id
from harness.surfaces.compatible.exchange import CallPart, ReplyEnd, ReplyEnded, ReplyFailed
from harness.surfaces.compatible.reading import TurnReading
from harness.surfaces.compatible.reply import Reply

_WAIT_MS = 30_000


@dataclass(frozen=True, slots=True)
class Grown:
    """What ends a reply. Whoever reads it may ask again at once, so the conversation must be ready for that before."""

    end: ReplyEnded | ReplyFailed
    waiting: dict[str, HostRequest] = field(default_factory=dict[str, HostRequest])
    """The calls that wait for the client, by their ids on the wire."""


@dataclass(frozen=True, slots=True)
class Growth:
    """What one reply grows from."""

    llm: OwnedLLM
    conversation_id: str
    reading: TurnReading
    reply: Reply
    quiet_seconds: float
    requests_as_calls: bool
    """Approvals and questions are put to the client; else they are refused once the server's policy has not decided."""

    async def run(self) -> Grown:
        """Returns when the reply lacks nothing but its end."""
        self.reading.begin_reply()
        quiet_at = 0.0
        calls: list[HostRequest] = []
        while True:
            state = await self._poll(quiet_at if calls else None)
            for part in self.reading.read(state):
                if isinstance(part, ReplyEnded | ReplyFailed):
                    return Grown(part)
                self.reply.add(part)
            await self._refuse(state)
            calls = self._calls(state)
            now = anyio.current_time()
            if self.reading.says_something:
                quiet_at = now + self.quiet_seconds
            elif calls and now >= quiet_at and not state.has_more:
                return self._end_with(calls)

    async def _poll(self, until: float | None) -> TurnState:
        wait_ms = _WAIT_MS if until is None else max(0, math.ceil((until - anyio.current_time()) * 1000))
        return await self.llm.poll_turn(self.conversation_id, self.reading.turn_id, self.reading.seen, wait_ms)

    def _calls(self, state: TurnState) -> list[HostRequest]:
        return [one for one in self.reading.untold(state) if self.requests_as_calls or not is_aside(one)]

    async def _refuse(self, state: TurnState) -> None:
        """Nobody hangs on an approval or a question that no client can see."""
        if self.requests_as_calls:
            return
        for request in [one for one in self.reading.untold(state) if is_aside(one)]:
            self.reading.told.add(request.request_id)
            response = refusal_of(request)
            if response is None:
                await self.llm.cancel_turn(self.conversation_id, self.reading.turn_id)
                return
            await self.llm.submit_responses(self.conversation_id, self.reading.turn_id, [response])

    def _end_with(self, calls: list[HostRequest]) -> Grown:
        self.reading.told |= {request.request_id for request in calls}
        told = [CallPart(call_of(request, self.conversation_id)) for request in calls]
        self.reply.add(*self.reading.called(), *told)
        waiting = {wire_id(request, self.conversation_id): request for request in calls}
        return Grown(ReplyEnded(ReplyEnd.TOOL_CALLS, self.reading.cost()), waiting)
