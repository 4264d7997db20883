"""JSON-RPC 2.0, one message per line <-> values (pure).

What is written is ASCII, so that no reader on the way takes anything inside a string for a line's end. What is read may
hold unpaired surrogates: they become U+FFFD.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from harness.contract.value import JsonValue
from harness.errors import InvalidArgument
from harness.wire.json_text import read_plain

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
"""Not of JSON-RPC itself: LSP, MCP and ACP have it."""

RpcId: TypeAlias = str | int
JsonObject: TypeAlias = dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class RpcFault:
    """What a request is answered with in place of a result."""

    code: int
    message: str
    data: JsonValue = None


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """The other side asks and waits."""

    id: RpcId
    method: str
    params: JsonObject = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class RpcNotification:
    method: str
    params: JsonObject = field(default_factory=dict[str, JsonValue])


@dataclass(frozen=True, slots=True)
class RpcAnswer:
    """To a request of ours."""

    id: RpcId | None
    result: JsonValue = None
    fault: RpcFault | None = None


@dataclass(frozen=True, slots=True)
class RpcMalformed:
    """A line that is no message: it is answered with this fault, under its id as far as one can be read."""

    id: RpcId | None
    fault: RpcFault


RpcMessage: TypeAlias = RpcRequest | RpcNotification | RpcAnswer | RpcMalformed


def read_message(line: bytes) -> RpcMessage:
    """What a line says."""
    try:
        value = read_plain(line, "the line")
    except InvalidArgument as error:
        return RpcMalformed(None, RpcFault(PARSE_ERROR, error.message))
    if not isinstance(value, dict):
        return RpcMalformed(None, RpcFault(INVALID_REQUEST, "the line is JSON, but no object"))
    message = cast(JsonObject, value)
    rpc_id = _id_of(message.get("id"))
    if "method" in message:
        return _asked(message, rpc_id)
    if "result" in message or "error" in message:
        return RpcAnswer(rpc_id, message.get("result"), _fault_of(message.get("error")))
    return RpcMalformed(rpc_id, RpcFault(INVALID_REQUEST, "the message has neither 'method' nor 'result' nor 'error'"))


def request_line(rpc_id: RpcId, method: str, params: JsonObject) -> bytes:
    return _line({"id": rpc_id, "method": method, "params": params})


def notification_line(method: str, params: JsonObject) -> bytes:
    return _line({"method": method, "params": params})


def result_line(rpc_id: RpcId, result: JsonValue) -> bytes:
    return _line({"id": rpc_id, "result": result})


def fault_line(rpc_id: RpcId | None, fault: RpcFault) -> bytes:
    data = {} if fault.data is None else {"data": fault.data}
    return _line({"id": rpc_id, "error": {"code": fault.code, "message": fault.message, **data}})


def _asked(message: JsonObject, rpc_id: RpcId | None) -> RpcMessage:
    method, params = message["method"], message.get("params")
    if not isinstance(method, str):
        return RpcMalformed(rpc_id, RpcFault(INVALID_REQUEST, "'method' is no text"))
    if params is not None and not isinstance(params, dict):
        return RpcMalformed(rpc_id, RpcFault(INVALID_PARAMS, f"the 'params' of '{method}' are no object"))
    members = cast(JsonObject, params or {})
    if "id" not in message:
        return RpcNotification(method, members)
    if rpc_id is None:
        return RpcMalformed(None, RpcFault(INVALID_REQUEST, f"the 'id' of '{method}' is neither a number nor a text"))
    return RpcRequest(rpc_id, method, members)


def _id_of(value: JsonValue) -> RpcId | None:
    return value if isinstance(value, str | int) and not isinstance(value, bool) else None


def _fault_of(value: JsonValue) -> RpcFault | None:
    if value is None:
        return None
    members = cast(JsonObject, value) if isinstance(value, dict) else {}
    code, message = members.get("code"), members.get("message")
    told = message if isinstance(message, str) and message else "an error without a message"
    return RpcFault(code if isinstance(code, int) else INTERNAL_ERROR, told, members.get("data"))


def _line(message: JsonObject) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode("ascii") + b"\n"
