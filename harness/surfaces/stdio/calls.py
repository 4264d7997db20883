"""What each method does. A call that waits can be given up, and is answered then with what there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

import anyio

from harness.contract.state import TurnState
from harness.contract.value import JsonValue
from harness.surfaces.call import MAX_WAIT_MS, OwnedLLM
from harness.surfaces.operations import ContractOperation
from harness.surfaces.stdio.following import Following
from harness.surfaces.stdio.methods import (
    OPERATIONS,
    FollowedTurn,
    FollowOption,
    TurnToFollow,
    plain,
    read_params,
    result_of,
)
from harness.wire.bodies import ConnectorInfo, ConnectorList
from harness.wire.json_rpc import JsonObject, RpcId


@dataclass(frozen=True, slots=True)
class Reply:
    """A result, and what begins when the client has been told."""

    result: JsonObject
    then: Callable[[], None] | None = None


_Own: TypeAlias = Callable[[JsonObject], Awaitable[Reply]]


class Calls:
    """Runs the calls of one client."""

    def __init__(self, llm: OwnedLLM, connectors: tuple[ConnectorInfo, ...], following: Following) -> None:
        self._llm = llm
        self._connectors = connectors
        self._following = following
        self._parked: dict[anyio.CancelScope, RpcId | None] = {}
        self._is_settled = False
        self._own: Mapping[str, _Own] = {
            "submit_user_message": self._submit_user_message,
            "follow_turn": self._follow_turn,
            "unfollow_turn": self._unfollow_turn,
            "list_connectors": self._list_connectors,
        }
        self.methods: tuple[str, ...] = (*OPERATIONS, *(name for name in self._own if name not in OPERATIONS))

    async def run(self, rpc_id: RpcId | None, method: str, params: JsonObject) -> Reply:
        """The reply to one of the `methods`.

        Raises:
            HarnessError: it failed.
        """
        own = self._own.get(method)
        if own is not None:
            return await own(params)
        operation = OPERATIONS[method]
        named = dict(read_params(operation.takes, params))
        if method == "poll_turn":
            return Reply(plain(await self._poll_turn(rpc_id, **named)))
        return Reply(result_of(operation, await self._asked(operation, named)))

    def give_up(self, rpc_id: RpcId) -> None:
        """The client waits no longer. Whatever does not wait is answered soon anyway."""
        for scope, waits_for in self._parked.items():
            if waits_for == rpc_id:
                scope.cancel()

    def settle(self) -> None:
        """Nothing waits any more, now and in future."""
        self._is_settled = True
        self._following.stop()
        for scope in self._parked:
            scope.cancel()

    # inside

    async def _asked(self, operation: ContractOperation, named: Mapping[str, JsonValue]) -> JsonValue:
        return await cast("Callable[..., Awaitable[JsonValue]]", getattr(self._llm, operation.name))(**named)

    async def _poll_turn(
        self,
        rpc_id: RpcId | None,
        conversation_id: str,
        turn_id: str,
        since_sequence_no: int,
        max_wait_ms: int,
        max_items: int,
    ) -> TurnState:
        if max_wait_ms > 0 and not self._is_settled:
            with anyio.CancelScope() as scope:
                self._parked[scope] = rpc_id
                try:
                    wait_ms = min(max_wait_ms, MAX_WAIT_MS)
                    return await self._llm.poll_turn(conversation_id, turn_id, since_sequence_no, wait_ms, max_items)
                finally:
                    del self._parked[scope]
        # also when the wait above was given up
        return await self._llm.poll_turn(conversation_id, turn_id, since_sequence_no, 0, max_items)

    async def _submit_user_message(self, params: JsonObject) -> Reply:
        operation = OPERATIONS["submit_user_message"]
        named = dict(read_params(operation.takes, params))
        follow = read_params(FollowOption, params).follow
        turn_id = str(await self._asked(operation, named))
        ids = (str(named["conversation_id"]), turn_id)
        return Reply(result_of(operation, turn_id), (lambda: self._following.follow(ids, 0)) if follow else None)

    async def _follow_turn(self, params: JsonObject) -> Reply:
        turn = read_params(TurnToFollow, params)
        ids, since = (turn.conversation_id, turn.turn_id), turn.since_sequence_no
        await self._following.check(ids, since)
        return Reply({}, lambda: self._following.follow(ids, since))

    async def _unfollow_turn(self, params: JsonObject) -> Reply:
        turn = read_params(FollowedTurn, params)
        self._following.unfollow((turn.conversation_id, turn.turn_id))
        return Reply({})

    async def _list_connectors(self, params: JsonObject) -> Reply:
        return Reply(plain(ConnectorList(connectors=list(self._connectors))))
