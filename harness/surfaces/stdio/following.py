"""Turns that a client follows: their items are told as they come, until the turn is over."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.output import TERMINAL, TextDelta, ThinkingDelta
from harness.errors import HarnessError, Internal
from harness.surfaces.stdio.methods import plain
from harness.wire.json_rpc import JsonObject
from harness.wire.problem import problem_of

ITEMS = "turn/items"
PROBLEM = "turn/problem"
_WAIT_MS = 60_000
_PACE_SECONDS = 0.005
"""Deltas that follow each other faster than this go into one notification: nobody reads faster, and each costs."""
_DELTAS = (TextDelta, ThinkingDelta)

Notify: TypeAlias = Callable[[str, JsonObject], Awaitable[None]]
TurnIds: TypeAlias = tuple[str, str]

logger = logging.getLogger(__name__)


class Following:
    """Each turn is followed once; who follows it again is told from there."""

    def __init__(self, llm: ConversationalLLM, notify: Notify, tasks: TaskGroup) -> None:
        self._llm = llm
        self._notify = notify
        self._tasks = tasks
        self._scopes: dict[TurnIds, anyio.CancelScope] = {}
        self._is_stopped = False

    async def check(self, ids: TurnIds, since: int) -> None:
        """Raises:
        HarnessError: there is nothing to follow.
        """
        await self._llm.poll_turn(*ids, since, 0, 1)

    def follow(self, ids: TurnIds, since: int) -> None:
        self.unfollow(ids)
        if self._is_stopped:
            return
        scope = self._scopes[ids] = anyio.CancelScope()
        self._tasks.start_soon(self._tell, ids, since, scope)

    def unfollow(self, ids: TurnIds) -> None:
        scope = self._scopes.pop(ids, None)
        if scope is not None:
            scope.cancel()

    def stop(self) -> None:
        """Nothing is told any more, now and in future."""
        self._is_stopped = True
        for ids in list(self._scopes):
            self.unfollow(ids)

    async def _tell(self, ids: TurnIds, since: int, scope: anyio.CancelScope) -> None:
        named = {"conversation_id": ids[0], "turn_id": ids[1]}
        with scope:
            try:
                await self._tell_items(ids, since, named)
            except HarnessError as error:
                await self._notify(PROBLEM, {**named, "problem": plain(problem_of(error))})
            except Exception:
                # the edge: the other calls go on
                logger.exception("following turn '%s' failed", ids[1])
                error = Internal("an internal error; stderr has the details")
                await self._notify(PROBLEM, {**named, "problem": plain(problem_of(error))})
            finally:
                if self._scopes.get(ids) is scope:
                    del self._scopes[ids]

    async def _tell_items(self, ids: TurnIds, since: int, named: JsonObject) -> None:
        while True:
            state = await self._llm.poll_turn(*ids, since, _WAIT_MS)
            told_at, over = anyio.current_time(), state.status in TERMINAL
            if state.new_output_items or over:
                await self._notify(ITEMS, {**named, "state": plain(state)})
            if over and not state.has_more:
                return
            since = state.sequence_no
            if state.new_output_items and all(isinstance(item, _DELTAS) for item in state.new_output_items):
                await anyio.sleep_until(told_at + _PACE_SECONDS)
