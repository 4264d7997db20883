"""The MCP server that an inner harness sees: JSON-RPC messages in, messages and events out. No I/O, no clock.

Speaks the handshake era up to 2025-11-25 and answers `server/discover` of 2026-07-28 with -32601, so that the known
peers fall back. Messages are plain dicts and pass as they came. A request carries `reply_to`, whatever the transport
needs to find its way back (a control request's id, a held POST); it returns untouched with the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from harness.contract.value import JsonValue
from harness.wire.json_rpc import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND

JsonObject: TypeAlias = dict[str, JsonValue]

PROTOCOL_VERSION = "2025-11-25"
KNOWN_VERSIONS = frozenset({"2024-11-05", "2025-03-26", "2025-06-18", PROTOCOL_VERSION})


@dataclass(frozen=True, slots=True)
class Reply:
    """A message for the peer, to be sent where `reply_to` says."""

    message: JsonObject
    reply_to: object = None


@dataclass(frozen=True, slots=True)
class CallRaised:
    """The peer calls a tool and waits. `key` names the call towards `McpServer.answer`.

    `key` is the peer's tool-use id where it tells one (`tells_id`), else an id of ours.
    """

    key: str
    tells_id: bool
    tool_name: str
    arguments: JsonObject
    meta: JsonObject


@dataclass(frozen=True, slots=True)
class CallWithdrawn:
    """Nobody waits for this call any more; an answer to it is dropped."""

    key: str


@dataclass(frozen=True, slots=True)
class ToolsListed:
    """The peer has been told our tools."""


McpEvent: TypeAlias = Reply | CallRaised | CallWithdrawn | ToolsListed


@dataclass(frozen=True, slots=True)
class _Waiter:
    """One request that waits for a call's answer."""

    rpc_id: str | int
    connection: int
    reply_to: object
    progress_token: str | int | None


@dataclass(slots=True)
class _OpenCall:
    waiters: list[_Waiter]
    progress: int = 0


def no_call_id(params: JsonObject) -> str | None:
    """For peers that tell no tool-use id in the params of a call."""
    return None


@dataclass
class McpServer:
    """One MCP server towards one peer: several calls open at once, answered in any order, each exactly once.

    A call that comes twice under one tool-use id, while the first is open or since the last `message_started`, is one
    call: the second request gets the first one's answer.
    """

    tools: Sequence[JsonObject]
    name: str = "host"
    version: str = "1"
    instructions: str | None = None
    call_id_of: Callable[[JsonObject], str | None] = no_call_id
    _open: dict[str, _OpenCall] = field(default_factory=dict[str, _OpenCall], init=False)
    _answered: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject], init=False)
    _connection: int = field(default=0, init=False)
    _calls: int = field(default=0, init=False)

    # the peer's side

    def receive(self, message: JsonValue, reply_to: object = None) -> list[McpEvent]:
        """One message of the peer. Bad ones are answered with an error where an answer is due, never raised."""
        if not isinstance(message, dict):
            return [_error(None, reply_to, INVALID_REQUEST, "a message is one JSON object")]
        message = cast(JsonObject, message)
        rpc_id, method = message.get("id"), message.get("method")
        if "method" not in message and ("result" in message or "error" in message):
            return []  # we ask nothing, so nothing waits for it
        if message.get("jsonrpc") != "2.0" or not isinstance(method, str):
            return [_error(rpc_id, reply_to, INVALID_REQUEST, "'jsonrpc' must be \"2.0\" and 'method' a text")]
        if "id" not in message:
            return self._notified(method, _object(message.get("params")))
        if isinstance(rpc_id, bool) or not isinstance(rpc_id, str | int):
            return [_error(None, reply_to, INVALID_REQUEST, "'id' must be a text or a whole number")]
        params = message.get("params", {})
        if not isinstance(params, dict):
            return [_error(rpc_id, reply_to, INVALID_PARAMS, "'params' must be an object")]
        return self._requested(rpc_id, method, cast(JsonObject, params), reply_to)

    def disconnected(self, reply_to: object) -> list[CallWithdrawn]:
        """The place where an answer would have gone is no more: what waited only there is withdrawn."""
        return self._without(lambda waiter: waiter.reply_to == reply_to)

    def is_waiting(self, reply_to: object) -> bool:
        """Whether an answer will come to this place."""
        return any(waiter.reply_to == reply_to for call in self._open.values() for waiter in call.waiters)

    def message_started(self) -> None:
        """The model speaks again: it has read all answers, so the same tool-use id is a new call from here on."""
        self._answered.clear()

    # the host's side

    @property
    def open_calls(self) -> tuple[str, ...]:
        """The keys of the calls that wait, in order of arrival."""
        return tuple(self._open)

    def answer(self, key: str, result: JsonObject) -> list[Reply]:
        """The result for everyone who waits for this call; nothing if nobody does."""
        call = self._open.pop(key, None)
        if call is None:
            return []
        self._answered[key] = result
        return [_result(waiter.rpc_id, waiter.reply_to, result) for waiter in call.waiters]

    def answer_all(self, result: JsonObject) -> list[Reply]:
        """The same result for every open call."""
        return [reply for key in self.open_calls for reply in self.answer(key, result)]

    def progress(self, key: str, text: str | None = None) -> list[Reply]:
        """A sign of life for those who asked for it with a progress token."""
        call = self._open.get(key)
        if call is None:
            return []
        call.progress += 1
        replies: list[Reply] = []
        for waiter in call.waiters:
            if waiter.progress_token is None:
                continue
            params: JsonObject = {"progressToken": waiter.progress_token, "progress": call.progress}
            if text is not None:
                params["message"] = text
            message: JsonObject = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            replies.append(Reply(message, waiter.reply_to))
        return replies

    # what peers that need no handshake are told in advance

    def initialize_result(self, version: str = PROTOCOL_VERSION) -> JsonObject:
        result: JsonObject = {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self.name, "version": self.version},
        }
        if self.instructions is not None:
            result["instructions"] = self.instructions
        return result

    def tools_list_result(self) -> JsonObject:
        return {"tools": list(self.tools)}

    # inside

    def _requested(self, rpc_id: str | int, method: str, params: JsonObject, reply_to: object) -> list[McpEvent]:
        match method:
            case "initialize":
                # ids start again with every connection; calls of an earlier one stay open for its replays
                self._connection += 1
                asked = params.get("protocolVersion")
                version = asked if isinstance(asked, str) and asked in KNOWN_VERSIONS else PROTOCOL_VERSION
                return [_result(rpc_id, reply_to, self.initialize_result(version))]
            case "ping":
                return [_result(rpc_id, reply_to, {})]
            case "tools/list":
                return [_result(rpc_id, reply_to, self.tools_list_result()), ToolsListed()]
            case "tools/call":
                return self._called(rpc_id, params, reply_to)
            case _:
                return [_error(rpc_id, reply_to, METHOD_NOT_FOUND, f"Method not found: {method}")]

    def _called(self, rpc_id: str | int, params: JsonObject, reply_to: object) -> list[McpEvent]:
        name, arguments = params.get("name"), params.get("arguments", {})
        if not any(tool["name"] == name for tool in self.tools):
            return [_error(rpc_id, reply_to, INVALID_PARAMS, f"Unknown tool: {name}")]
        if not isinstance(arguments, dict):
            return [_error(rpc_id, reply_to, INVALID_PARAMS, "'arguments' must be an object")]
        meta = _object(params.get("_meta"))
        told = self.call_id_of(params)
        self._calls += 1
        key = told if told is not None else f"call-{self._calls}"
        if key in self._answered:
            return [_result(rpc_id, reply_to, self._answered[key])]
        token = meta.get("progressToken")
        waiter = _Waiter(rpc_id, self._connection, reply_to, token if isinstance(token, str | int) else None)
        if key in self._open:
            self._open[key].waiters.append(waiter)
            return []
        self._open[key] = _OpenCall([waiter])
        return [CallRaised(key, told is not None, cast(str, name), cast(JsonObject, arguments), meta)]

    def _notified(self, method: str, params: JsonObject) -> list[McpEvent]:
        if method != "notifications/cancelled":
            return []
        rpc_id = params.get("requestId")
        return list(self._without(lambda w: w.rpc_id == rpc_id and w.connection == self._connection))

    def _without(self, is_gone: Callable[[_Waiter], bool]) -> list[CallWithdrawn]:
        withdrawn: list[CallWithdrawn] = []
        for key, call in list(self._open.items()):
            call.waiters = [waiter for waiter in call.waiters if not is_gone(waiter)]
            if not call.waiters:
                del self._open[key]
                withdrawn.append(CallWithdrawn(key))
        return withdrawn


def _object(value: JsonValue) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def _result(rpc_id: str | int, reply_to: object, result: JsonObject) -> Reply:
    return Reply({"jsonrpc": "2.0", "id": rpc_id, "result": result}, reply_to)


def _error(rpc_id: JsonValue, reply_to: object, code: int, text: str) -> Reply:
    known = rpc_id if isinstance(rpc_id, str | int) and not isinstance(rpc_id, bool) else None
    return Reply({"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": text}}, reply_to)
