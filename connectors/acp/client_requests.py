"""What an agent asks of its client, from its arrival until it is answered. Pure.

Permissions and questions are raised here. Files and terminals are done elsewhere (`client_side`): their calls are
handed out with `take_calls` and come back as an answer or a refusal, unless the turn has ended before.
"""

from __future__ import annotations

from connectors._json import JsonObject, object_in, objects_in, plain_text_in
from connectors._jsonrpc import Asked, JsonRpc
from connectors._kept_policy import KeptPolicy
from connectors.acp import asks
from connectors.acp.client_calls import NEED_TURN, Write
from connectors.acp.turn_reader import TurnReader
from harness.contract.requests import HostRequest, HostResponse
from harness.turn.events import RequestRaised, TurnEvent, notice
from harness.wire.json_rpc import METHOD_NOT_FOUND, REQUEST_CANCELLED

_TURN_OVER = "the turn is over"


class ClientRequests:
    """`served` names the methods of files and terminals that are done for the agent; `policy` answers for the host."""

    def __init__(
        self, rpc: JsonRpc, agent_name: str, served: frozenset[str] = frozenset(), policy: KeptPolicy | None = None
    ) -> None:
        self._rpc = rpc
        self._agent_name = agent_name
        self._served = served
        self._policy = policy
        self._asked: dict[str, Asked] = {}
        self._calls: dict[str, Asked] = {}
        self._new_calls: list[Asked] = []
        self._allowed: list[Write] = []

    def receive(self, asked: Asked, turn: TurnReader | None) -> list[TurnEvent]:
        """`turn` is the one that runs; between turns nobody can be asked."""
        if asked.method in self._served:
            return self._call(asked, turn)
        if asked.method not in asks.KNOWN:
            self._rpc.refuse(asked.key, METHOD_NOT_FOUND, f"'{asked.method}' is not supported")
            return turn.unknown(f"the request '{asked.method[:80]}'") if turn is not None else []
        if turn is None or turn.is_interrupted:
            self._rpc.answer(asked.key, asks.closed(asked))
            return []
        if asked.method == asks.ELICITATION:
            self._asked[asked.key] = asked
            call_id = turn.calls.model_id(plain_text_in(asked.params.get("toolCallId")))
            return [*turn.acted(), *self._raised(asks.question_of(asked, call_id), turn)]
        return self._permission(asked, turn)

    def respond(self, request: HostRequest, response: HostResponse, turn: TurnReader | None) -> list[TurnEvent]:
        """The host's answer; nothing where the agent does not wait for it any more."""
        asked = self._asked.pop(request.peer_request_id or "", None)
        if asked is None:
            return []
        if asked.method == asks.ELICITATION:
            self._rpc.answer(asked.key, asks.elicited(asked, request, response))
            return []
        answer, is_allowed = asks.permission_of(request, response)
        call_id = plain_text_in(object_in(asked.params.get("toolCall")).get("toolCallId"))
        if is_allowed:
            self._allowed += _writes_in(object_in(asked.params.get("toolCall")))
        elif turn is not None:
            turn.calls.refused(call_id)
        self._rpc.answer(asked.key, answer)
        if response.updated_arguments_json is not None:
            told = f"{self._agent_name} runs '{request.tool_name}' only as the model wrote it: it was denied"
            return [notice("arguments_not_changed", told)]
        return []

    @property
    def are_open(self) -> bool:
        return bool(self._asked or self._calls)

    def close(self) -> None:
        """The turn is over or given up: what is open is answered as cancelled, as the protocol wants it."""
        for asked in self._asked.values():
            self._rpc.answer(asked.key, asks.closed(asked))
        self._asked = {}
        for key in self._calls:
            self._rpc.refuse(key, REQUEST_CANCELLED, _TURN_OVER)
        self._calls, self._new_calls, self._allowed = {}, [], []

    # files and terminals

    def take_calls(self) -> list[Asked]:
        """What is to be done and was not handed out before."""
        calls, self._new_calls = self._new_calls, []
        return calls

    def waits_for(self, asked: Asked) -> bool:
        """Whether it is still to be done."""
        return asked.key in self._calls

    def answer(self, asked: Asked, result: JsonObject) -> None:
        if self._calls.pop(asked.key, None) is not None:
            self._rpc.answer(asked.key, result)

    def refuse(self, asked: Asked, code: int, message: str) -> None:
        if self._calls.pop(asked.key, None) is not None:
            self._rpc.refuse(asked.key, code, message)

    def was_allowed(self, write: Write) -> bool:
        """Whether the host has allowed this very text for this very file when the agent asked for a permission."""
        if write not in self._allowed:
            return False
        self._allowed.remove(write)
        return True

    # inside

    def _call(self, asked: Asked, turn: TurnReader | None) -> list[TurnEvent]:
        if asked.method in NEED_TURN and (turn is None or turn.is_interrupted):
            self._rpc.refuse(asked.key, REQUEST_CANCELLED, _TURN_OVER)
            return []
        self._calls[asked.key] = asked
        self._new_calls.append(asked)
        return []

    def _permission(self, asked: Asked, turn: TurnReader) -> list[TurnEvent]:
        told = object_in(asked.params.get("toolCall"))
        call_id = plain_text_in(told.get("toolCallId"))
        events = [*turn.acted(), *turn.calls.update(told, asks=True)]
        if turn.calls.is_ours(call_id):
            self._rpc.answer(asked.key, asks.allowance_of(asked))
            return events
        self._asked[asked.key] = asked
        request = asks.approval_of(
            asked,
            turn.calls.merged(call_id),
            call_id=turn.calls.model_id(call_id),
            tool_name=turn.calls.name_of(call_id),
        )
        return [*events, *self._raised(request, turn)]

    def _raised(self, request: HostRequest, turn: TurnReader) -> list[TurnEvent]:
        ruled = self._policy.answer(request) if self._policy is not None else None
        return [RequestRaised(request)] if ruled is None else self.respond(request, ruled, turn)


def _writes_in(call: JsonObject) -> list[Write]:
    """The changes of files that a permission showed."""
    return [
        Write(plain_text_in(one.get("path")), plain_text_in(one.get("newText")))
        for one in objects_in(call.get("content"))
        if one.get("type") == "diff"
    ]
