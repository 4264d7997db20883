"""What can be asked for: the contract's operations under their own names, and how params, results and errors look."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TypeVar

from pydantic import ValidationError

from harness.contract.value import JsonValue, Value
from harness.errors import HarnessError, Internal, InvalidArgument
from harness.surfaces.operations import CONTRACT_OPERATIONS, ContractOperation
from harness.trace.redaction import Redactor, secrets_of_environment
from harness.wire.bodies import ConversationCreated, ConversationList, RequestList, TurnCreated
from harness.wire.json_rpc import INTERNAL_ERROR, INVALID_PARAMS, JsonObject, RpcFault
from harness.wire.json_text import invalid_value, write_json
from harness.wire.problem import problem_of

V = TypeVar("V", bound=Value)

CALL_FAILED = -32000
"""An error of ours that JSON-RPC has no number for; `data.code` tells which."""

OPERATIONS: Mapping[str, ContractOperation] = {one.name: one for one in CONTRACT_OPERATIONS}

_BODIES: Mapping[str, Callable[[JsonValue], Value]] = {
    "begin_conversation": lambda given: ConversationCreated(conversation_id=given),
    "fork_conversation": lambda given: ConversationCreated(conversation_id=given),
    "submit_user_message": lambda given: TurnCreated(turn_id=given),
    "list_conversations": lambda given: ConversationList(conversations=given),
    "list_requests": lambda given: RequestList(requests=given),
}


class FollowOption(Value):
    """A further param of `submit_user_message`."""

    follow: bool = False
    """Tell the turn's items as they come, as `follow_turn` does."""


class TurnToFollow(Value):
    """The params of `follow_turn`."""

    conversation_id: str
    turn_id: str
    since_sequence_no: int = 0


class FollowedTurn(Value):
    """The params of `unfollow_turn`."""

    conversation_id: str
    turn_id: str


def read_params(kind: type[V], params: JsonObject) -> V:
    """Raises:
    InvalidArgument: they are not such ones; the message names the member.
    """
    try:
        return kind.model_validate(params)
    except ValidationError as error:
        raise invalid_value(error, "the params") from None


def result_of(operation: ContractOperation, given: JsonValue) -> JsonObject:
    """The same as the body of the native wire; an empty object for nothing."""
    if operation.gives is None:
        return {}
    body = _BODIES.get(operation.name)
    return plain(given if body is None else body(given))


def plain(value: Value) -> JsonObject:
    """The value as the native wire has it."""
    return json.loads(write_json(value))


def fault_of(error: HarnessError) -> RpcFault:
    """`data` is the problem that the native wire would tell."""
    error = Redactor(secrets_of_environment(os.environ)).error(error)
    return RpcFault(_number_of(error), error.message, plain(problem_of(error)))


def _number_of(error: HarnessError) -> int:
    match error:
        case InvalidArgument():
            return INVALID_PARAMS
        case Internal():
            return INTERNAL_ERROR
        case _:
            return CALL_FAILED
