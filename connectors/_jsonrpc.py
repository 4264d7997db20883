"""JSON-RPC between two parties that both ask: our ids, what each side still waits for, the shape of messages. Pure.

Ids count per direction, so both sides may have a 0 open at the same time. A request of the peer is named by `key`, a
text, from its arrival until it is answered; each is answered once, later answers are dropped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias, cast

from connectors._json import JsonObject, json_line, number_in, object_in, plain_text_in
from harness.contract.options import OutputDetail
from harness.contract.value import JsonValue
from harness.turn.events import TurnEvent, raw


@dataclass(frozen=True, slots=True)
class RpcError:
    """What the peer said instead of a result."""

    code: int
    message: str
    data: JsonValue = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The peer asks and waits; answered by its `key`."""

    key: str
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Notified:
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer to a request of ours; `purpose` is what it was asked for."""

    purpose: str
    result: JsonObject
    error: RpcError | None = None


@dataclass(frozen=True, slots=True)
class Stray:
    """A line that is no message, or an answer nobody waits for."""

    text: str


RpcEvent: TypeAlias = Asked | Notified | Answered | Stray


class JsonRpc:
    """One side of a connection. What it says collects until `data_to_send` takes it.

    `version` is the member `jsonrpc` of our messages, null for peers that write none; `encode` puts a message into
    the peer's frame.
    """

    def __init__(self, *, version: str | None = "2.0", encode: Callable[[JsonObject], bytes] = json_line) -> None:
        self._head: JsonObject = {} if version is None else {"jsonrpc": version}
        self._encode = encode
        self._outbox: list[bytes] = []
        self._sent = 0
        self._ours: dict[int, str] = {}
        self._theirs: dict[str, str | int] = {}

    # to the peer

    def data_to_send(self) -> bytes:
        """What was said since the last call."""
        data, self._outbox = b"".join(self._outbox), []
        return data

    def ask(self, method: str, params: JsonObject, *, purpose: str | None = None) -> None:
        """Sends a request; its answer comes as `Answered` with this purpose, by default the method."""
        self._sent += 1
        self._ours[self._sent] = purpose or method
        self._send({"id": self._sent, "method": method, "params": params})

    def notify(self, method: str, params: JsonObject | None = None) -> None:
        self._send({"method": method} | ({} if params is None else {"params": params}))

    def answer(self, key: str, result: JsonValue) -> bool:
        """The result of the peer's request; false where it does not wait any more, then nothing is sent."""
        return self._settle(key, {"result": result})

    def refuse(self, key: str, code: int, message: str) -> bool:
        return self._settle(key, {"error": {"code": code, "message": message}})

    def forget(self, key: str) -> bool:
        """The peer took the request back; whether it was open."""
        return self._theirs.pop(key, None) is not None

    # from the peer

    @property
    def open_requests(self) -> tuple[str, ...]:
        """The keys of the peer's requests that wait for us, in order of arrival."""
        return tuple(self._theirs)

    def is_waiting_for(self, purpose: str) -> bool:
        """Whether a request of ours with this purpose has no answer yet."""
        return purpose in self._ours.values()

    def receive(self, data: bytes) -> RpcEvent:
        """One message."""
        text = data.decode("utf-8", "replace")
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            return Stray(text.strip())
        message = cast(JsonObject, value)
        method, rpc_id = message.get("method"), message.get("id")
        if not isinstance(method, str):
            return self._answered(message, text)
        method, params = plain_text_in(method), object_in(message.get("params"))
        if isinstance(rpc_id, bool) or not isinstance(rpc_id, str | int):
            return Notified(method, params)
        key = key_of(rpc_id)
        self._theirs[key] = rpc_id
        return Asked(key, method, params)

    # inside

    def _answered(self, message: JsonObject, text: str) -> RpcEvent:
        rpc_id = message.get("id")
        purpose = self._ours.pop(rpc_id, None) if isinstance(rpc_id, int) else None
        if purpose is None:
            return Stray(text.strip())
        error = message.get("error")
        if error is None:
            return Answered(purpose, object_in(message.get("result")))
        body = object_in(error)
        code = number_in(body.get("code"))
        said = plain_text_in(body.get("message")) or plain_text_in(error) or "an error without a message"
        return Answered(purpose, {}, RpcError(int(code or 0), said, body.get("data")))

    def _settle(self, key: str, answer: JsonObject) -> bool:
        rpc_id = self._theirs.pop(key, None)
        if rpc_id is None:
            return False
        self._send({"id": rpc_id, **answer})
        return True

    def _send(self, message: JsonObject) -> None:
        self._outbox.append(self._encode({**self._head, **message}))


def key_of(rpc_id: JsonValue) -> str:
    """The name of a peer's request: the number 1 and the text "1" are two."""
    return json.dumps(rpc_id)


def events_of(
    lines: Iterable[bytes],
    read: Callable[[bytes], list[TurnEvent]],
    detail: OutputDetail | str,
    is_over: Callable[[], bool],
) -> list[TurnEvent]:
    """What the lines of one read say; of a turn that is to be shown raw each behind its own text."""
    events: list[TurnEvent] = []
    for line in lines:
        if detail == OutputDetail.RAW and not is_over():
            events.append(raw("stdio", "from_peer", line.decode("utf-8", "replace")))
        events += read(line)
    return events
