"""Copilot's server mode for its SDKs: JSON-RPC 2.0 with lengths, version 3, verified against 1.0.102. Pure.

The host's tools are external tools of the session: calls come as events with the model's own ids and are answered by
requests of ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from connectors._history_text import history_notice, with_history
from connectors._json import JsonObject, number_in, object_in, plain_text_in
from connectors._jsonrpc import Answered, Asked, JsonRpc, Notified, events_of
from connectors._kept_policy import KeptPolicy
from connectors._length_framer import framed
from connectors.copilot import sdk_asks
from connectors.copilot.agent import HOW_TO_INSTALL
from connectors.copilot.events import not_logged_in
from connectors.copilot.sdk_reader import SdkReader
from harness.contract.content import ContentBlock, ImageBlock, TextBlock, text_of
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.tools import ToolDescriptor
from harness.errors import ConnectorUnavailable, ContentNotSupported, PeerProtocolError
from harness.turn.events import RequestRaised, RequestWithdrawn, TurnEvent, TurnFailed, notice
from harness.wire.json_rpc import METHOD_NOT_FOUND

PROTOCOL_VERSION = 3
_OPENED, _SENT = "session", "send"
_QUESTION = "userInput.request"


@dataclass(frozen=True, slots=True)
class SdkOpening:
    """What the session is created with; `is_resumed` where it is an earlier one."""

    session_id: str
    params: JsonObject
    is_resumed: bool = False


class CopilotSdkProtocol:
    """The wire of one process with one session: its start, then turns one after the other."""

    def __init__(
        self,
        options: ConversationOptions,
        tools: dict[str, ToolDescriptor],
        opening: SdkOpening,
        policy: KeptPolicy | None = None,
    ) -> None:
        self.session_id: str | None = None
        """Set once the session can take a message."""
        self.resume_failed = False
        self.version = ""
        self.has_spoken = opening.is_resumed
        """Whether the session has taken up a message."""
        self._options = options
        self._tools = tools
        self._opening = opening
        self._policy = policy
        self._rpc = JsonRpc(encode=framed)
        self._turn: SdkReader | None = None
        self._asked: dict[str, Asked] = {}
        self._open_calls: set[str] = set()
        self._open_permissions: dict[str, JsonObject] = {}

    # to the peer

    def data_to_send(self) -> bytes:
        return self._rpc.data_to_send()

    def connect(self) -> None:
        self._rpc.ask("connect", {"supportedTaskKinds": ["agent", "client", "shell"]})

    def start_turn(self, content: Sequence[ContentBlock], options: TurnOptions) -> list[TurnEvent]:
        """Sends the user's message.

        Raises:
            ContentNotSupported: a kind of block that cannot be carried; nothing was sent.
        """
        history = [] if self.has_spoken else self._options.history
        blocks = with_history(history, content)
        prompt = text_of([block for block in blocks if isinstance(block, TextBlock)])
        if prompt.startswith("/"):
            raise ContentNotSupported("Copilot takes a text that starts with '/' for a command of its own")
        params: JsonObject = {"sessionId": self.session_id, "prompt": prompt}
        attachments = [_attachment(block) for block in blocks if not isinstance(block, TextBlock)]
        if attachments:
            params["attachments"] = attachments
        self._turn = SdkReader(self._tools)
        self._rpc.ask("session.send", params, purpose=_SENT)
        self.has_spoken = True
        return [history_notice(history)] if history else []

    def interrupt(self) -> None:
        turn = self._turn
        if turn is None or turn.is_over or turn.is_interrupted:
            return
        turn.is_interrupted = True
        self._rpc.ask("session.abort", {"sessionId": self.session_id})

    def respond(self, request: HostRequest, response: HostResponse) -> list[TurnEvent]:
        key = request.peer_request_id or ""
        if key in self._open_calls:
            self._open_calls.discard(key)
            result = sdk_asks.tool_result(response)
            self._handle("session.tools.handlePendingToolCall", key, result)
        elif key in self._open_permissions:
            answer = sdk_asks.permission_of(self._open_permissions.pop(key), request, response)
            self._handle("session.permissions.handlePendingPermissionRequest", key, answer)
            if response.updated_arguments_json is not None:
                told = f"Copilot runs '{request.tool_name}' only as the model wrote it: it was denied"
                return [notice("arguments_not_changed", told)]
        elif key in self._asked:
            self._rpc.answer(self._asked.pop(key).key, sdk_asks.answer_of(response))
        return []

    @property
    def waits_for_host(self) -> bool:
        return bool(self._open_calls or self._open_permissions or self._asked)

    def unfinished_calls(self) -> dict[str, str]:
        return {} if self._turn is None else self._turn.unfinished_calls

    # from the peer

    @property
    def turn_is_over(self) -> bool:
        return self._turn is None or self._turn.is_over

    def receive(self, lines: Sequence[bytes]) -> list[TurnEvent]:
        """The messages of one read. Between turns they give no events, but are answered.

        Raises:
            ConnectorUnavailable: Copilot cannot be used as asked.
            PeerProtocolError: it broke its protocol.
        """
        return events_of(lines, self._message, self._options.output_detail, lambda: self.turn_is_over)

    def _message(self, line: bytes) -> list[TurnEvent]:
        said = self._rpc.receive(line)
        match said:
            case Asked():
                return self._asks(said)
            case Notified(method="session.event"):
                return self._event(object_in(said.params.get("event")), said.params)
            case Answered():
                return self._answered(said)
            case _:
                return []

    def _event(self, event: JsonObject, params: JsonObject) -> list[TurnEvent]:
        turn = self._turn
        if turn is None or turn.is_over or params.get("sessionId") != self.session_id:
            return []
        kind, data = plain_text_in(event.get("type")), object_in(event.get("data"))
        key = plain_text_in(data.get("requestId"))
        match kind:
            case "external_tool.requested":
                return self._called(turn, key, data)
            case "external_tool.completed":
                is_open = key in self._open_calls
                self._open_calls.discard(key)
                return [RequestWithdrawn(key)] if is_open else []
            case "permission.requested":
                return self._permission(turn, key, object_in(data.get("permissionRequest")))
            case "permission.completed":
                return [RequestWithdrawn(key)] if self._open_permissions.pop(key, None) is not None else []
            case _:
                events = turn.read(kind, data)
                if turn.is_over:
                    self._close_open()
                return events

    def _called(self, turn: SdkReader, key: str, data: JsonObject) -> list[TurnEvent]:
        request = sdk_asks.tool_call_of(key, data, self._tools, turn.written)
        if turn.is_interrupted:
            return []
        self._open_calls.add(key)
        return [*turn.acted(), RequestRaised(request)]

    def _permission(self, turn: SdkReader, key: str, asked: JsonObject) -> list[TurnEvent]:
        if turn.is_interrupted:
            return []
        self._open_permissions[key] = asked
        return [*turn.acted(), *self._raised(sdk_asks.approval_of(key, asked, turn.written))]

    def _asks(self, asked: Asked) -> list[TurnEvent]:
        turn = self._turn
        if asked.method != _QUESTION:
            self._rpc.refuse(asked.key, METHOD_NOT_FOUND, f"'{asked.method}' is not supported")
            is_running = turn is not None and not turn.is_over
            return turn.unknown(f"the request '{asked.method[:80]}'") if turn is not None and is_running else []
        if turn is None or turn.is_over or turn.is_interrupted:
            self._rpc.answer(asked.key, sdk_asks.NO_ANSWER)
            return []
        # its own requests and those told as events have keys of two kinds: a number here, a UUID there
        self._asked[asked.key] = asked
        return [*turn.acted(), *self._raised(sdk_asks.question_of(asked, turn.asking_call))]

    def _raised(self, request: HostRequest) -> list[TurnEvent]:
        ruled = self._policy.answer(request) if self._policy is not None else None
        return [RequestRaised(request)] if ruled is None else self.respond(request, ruled)

    def _answered(self, answer: Answered) -> list[TurnEvent]:
        match answer.purpose:
            case "connect":
                self._connected(answer)
            case "session":
                self._opened(answer)
            case "send" if answer.error is not None and self._turn is not None:
                self._turn.is_over = True
                return [TurnFailed(PeerProtocolError(f"Copilot refused the message: {answer.error.message}"))]
            case _:
                pass
        return []

    def _connected(self, answer: Answered) -> None:
        told = number_in(answer.result.get("protocolVersion"))
        if answer.error is not None or told != PROTOCOL_VERSION:
            raise ConnectorUnavailable(
                f"Copilot's server mode speaks version {told}, not {PROTOCOL_VERSION}; use the option mode=acp, "
                f"or {HOW_TO_INSTALL}",
                reason="wrong_version",
            )
        self.version = plain_text_in(answer.result.get("version"))
        method = "session.resume" if self._opening.is_resumed else "session.create"
        self._rpc.ask(method, {**self._opening.params, "sessionId": self._opening.session_id}, purpose=_OPENED)

    def _opened(self, answer: Answered) -> None:
        if answer.error is None:
            self.session_id = plain_text_in(answer.result.get("sessionId")) or self._opening.session_id
            return
        if self._opening.is_resumed:
            self.resume_failed = True
            return
        text = answer.error.message
        if "auth" in text.lower() or "log in" in text.lower():
            raise not_logged_in()
        raise PeerProtocolError(f"Copilot opened no session: {text}")

    def _handle(self, method: str, request_id: str, result: JsonObject) -> None:
        self._rpc.ask(method, {"sessionId": self.session_id, "requestId": request_id, "result": result})

    def _close_open(self) -> None:
        """Calls and permissions Copilot has closed itself; a question still waits for its answer."""
        self._open_calls.clear()
        self._open_permissions.clear()
        for asked in self._asked.values():
            self._rpc.answer(asked.key, sdk_asks.NO_ANSWER)
        self._asked = {}


def _attachment(block: ContentBlock) -> JsonObject:
    if isinstance(block, ImageBlock):
        return {"type": "blob", "data": block.data, "mimeType": block.media_type}
    raise ContentNotSupported(f"connector 'copilot' cannot carry a block of type '{block.type}' in a message")
