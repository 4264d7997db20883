"""Where every provider's wire hands in its requests, and gets replies.

One desk serves all wires that share conversations. A request goes through it like this: an equal one that is being
answered, or was a moment ago, shares its reply; else the conversation that it continues is found, or begun; its new
message is submitted, or its tool results answer the calls that wait there; and a reply grows from the turn.

What the desk knows is in memory only, and bounded. After a restart calls that still wait (`resume: exact`) are found
again by their ids, and conversations by `X-Harness-Conversation` or the id of their last reply; any other request
begins a new conversation with the history that it brings.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import anyio
from anyio.abc import TaskGroup

from harness.errors import ConnectorUnavailable
from harness.surfaces.call import Call, Served
from harness.surfaces.compatible.exchange import ModelRequest, Terms
from harness.surfaces.compatible.reply import Reply
from harness.surfaces.compatible.room import Room
from harness.surfaces.compatible.threads import Thread
from harness.surfaces.compatible.working import Work, ended
from harness.surfaces.tokens import Token, token_of


class Desk:
    """Turns requests of a provider's wire into turns of conversations, and these into replies.

    Made once per server and dialect, with the server's task group: replies outlive the HTTP requests that they answer.
    """

    def __init__(self, served: Served, group: TaskGroup, *, surface: str) -> None:
        self._served = served
        self._settings = served.compatible
        self._group = group
        self._surface = surface
        self._rooms: dict[Token, Room] = {}
        self._has_ended = anyio.Event()
        group.start_soon(self._end_abandoned)

    async def ask(self, call: Call, request: ModelRequest, terms: Terms) -> Reply:
        """The reply to a request, as soon as its conversation has taken it; it may be that of an equal request.

        The caller reads it within `Reply.read`. What breaks later is the reply's last part.

        Raises:
            InvalidArgument: the request cannot be answered as it is, and nothing was changed; `detail.reason` has the
                wire's code, `detail.param` the field.
            HarnessError: the conversation refused it, or the connector cannot be used.
        """
        if self._served.waiters.settled:
            raise ConnectorUnavailable("this server is stopping", reason="stopping")
        room = self._rooms.setdefault(token_of(call.http_request), Room(call.llm))
        reply = room.equal(request, terms, anyio.current_time())
        if reply is None:
            self._make_room()
            reply = Reply(request.model)
            room.note(request, terms, reply)
            work = Work(self._served, self._surface, room, call.llm, request, terms, reply)
            self._group.start_soon(self._run, work)
        with reply.read():
            await reply.begun()
        return reply

    async def _run(self, work: Work) -> None:
        await work.run()
        self._has_ended.set()

    def _make_room(self) -> None:
        """Of too many conversations the one that nobody has touched for longest makes room."""
        known = [(thread, room) for room in self._rooms.values() for thread in room.threads.values()]
        if len(known) < self._settings.max_conversations:
            return
        oldest = min((one for one in known if not one[0].is_busy), key=lambda one: one[0].touched_at, default=None)
        if oldest is not None:
            self._leave(oldest[1], [oldest[0]])

    def _leave(self, room: Room, threads: Iterable[Thread]) -> None:
        for thread in threads:
            room.threads.pop(thread.conversation_id, None)
            self._group.start_soon(ended, room.llm, thread)

    async def _end_abandoned(self) -> None:
        """Sleeps until the next conversation or recorded reply is due; only the end of a reply makes a new one so."""
        seconds = self._settings.abandoned_seconds
        while True:
            self._has_ended = anyio.Event()
            now = anyio.current_time()
            for room in self._rooms.values():
                room.drop_recorded(now)
                self._leave(room, room.abandoned(now - seconds))
            due_at = min((at for room in self._rooms.values() for at in room.due_at(seconds)), default=math.inf)
            with anyio.move_on_after(due_at - now):
                await self._has_ended.wait()
