"""Claude Code's stream-json wire: the control protocol in both directions, and the MCP tunnel inside it. Pure.

Verified against the CLI 2.1.332 and 2.1.197. One JSON object per line. `receive` takes the lines of one read and gives
turn events; what the CLI must be told collects until `data_to_send` takes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from bridge_mcp.mapping import error_result, result_of
from bridge_mcp.protocol import CallRaised, CallWithdrawn, Reply
from connectors._json import JsonObject, object_in, plain_text_in
from connectors.claude.argv import SERVER_NAME
from connectors.claude.control import ControlWire
from connectors.claude.gate import HOOKS as GATE_HOOKS
from connectors.claude.gate import Gate
from connectors.claude.history_check import HOOK_ID as HISTORY_HOOK
from connectors.claude.history_check import HOOKS as HISTORY_HOOKS
from connectors.claude.history_check import HistoryCheck
from connectors.claude.host_asks import TURN_OVER, HostAsks
from connectors.claude.host_tools import HostTools
from connectors.claude.outcome import UsageMeter, not_logged_in
from connectors.claude.prompt import system_prompt_fields, tunnel_fields, user_message
from connectors.claude.tool_check import ToolCheck
from connectors.claude.turn_reader import TurnReader
from connectors.claude.versions import Version, parse_version
from harness.contract.content import ContentBlock
from harness.contract.options import SystemPromptMode
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.value import JsonValue
from harness.errors import PeerProtocolError
from harness.turn.events import RequestRaised, RequestWithdrawn, TurnEvent, raw

_INITIALIZE = "initialize"


@dataclass(frozen=True, slots=True)
class Ready:
    """What the CLI said of itself when it answered `initialize`; older ones tell no version there."""

    version: Version | None


@dataclass(frozen=True, slots=True)
class Setting:
    """What one conversation's protocol has to know of it."""

    tools: HostTools
    gate: Gate
    tunnels: bool = True
    """Whether the host's tools go through the control protocol."""
    internal_tools: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    """The delegated MCP servers, by name."""
    wants_raw: bool = False
    output_schema_json: str | None = None
    history: HistoryCheck | None = None
    """What a resumed session must know."""
    totals: Mapping[str, JsonObject] | None = None
    """What earlier processes of a resumed session have used."""


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """What to remember of a turn whose message stands in the CLI's history."""

    message_uuid: str
    last_message: str | None
    totals: Mapping[str, JsonObject]


class ClaudeProtocol:
    """The wire of one CLI process: its start, then turns one after the other.

    `ready` is set once the CLI has answered `initialize`, `session_id` when it has taken up the first message.
    """

    def __init__(self, setting: Setting) -> None:
        self.ready: Ready | None = None
        self.session_id: str | None = None
        self.resume_failed = False
        """The session to resume is not there; the CLI exits."""
        self.stray_line: str | None = None
        """The first line that came before the answer to `initialize` and was no JSON."""
        self._setting = setting
        self._tools = setting.tools
        self._server = setting.tools.server
        self._tunnels = setting.tunnels and bool(self._server.tools)
        self._wire = ControlWire()
        self._asks = HostAsks(self._wire, setting.tools, setting.gate)
        self._tool_check = ToolCheck(setting.tools, setting.internal_tools, setting.sources)
        self._history = setting.history
        self._meter = UsageMeter(setting.totals)
        self._ended: EndedTurn | None = None
        self._turn: TurnReader | None = None

    # to the peer

    def data_to_send(self) -> bytes:
        """What was said since the last call."""
        return self._wire.data_to_send()

    def initialize(self, system_prompt: str | None, mode: SystemPromptMode) -> None:
        """Asks the CLI to get ready, and tells it our tools and the system prompt."""
        hooks: JsonObject = {}
        if self._setting.gate.is_needed:
            hooks |= GATE_HOOKS
        if self._history is not None and self._history.is_due:
            hooks |= HISTORY_HOOKS
        body: JsonObject = {"subtype": _INITIALIZE, "hooks": hooks or None}
        if self._setting.output_schema_json is not None:
            body["jsonSchema"] = json.loads(self._setting.output_schema_json)
        if self._tunnels:
            body |= tunnel_fields(self._server)
        self._wire.ask(body | system_prompt_fields(system_prompt, mode), _INITIALIZE)

    def start_turn(self, content: Sequence[ContentBlock], message_uuid: str) -> None:
        """Sends the user's message and begins to read its turn.

        Raises:
            ContentNotSupported: a kind of block that cannot be carried; nothing was sent.
        """
        message = user_message(content, message_uuid)
        self._turn = TurnReader(message_uuid, self._tools.has, self._meter)
        self._wire.send(message)

    def interrupt(self) -> None:
        """Asks the CLI to stop the turn; its end comes as events. What it calls from here on is not for the host."""
        if self._turn is None or self._turn.is_over:
            return
        self._turn.is_interrupted = True
        self._wire.ask({"subtype": "interrupt"})

    @property
    def waits_for_host(self) -> bool:
        """Whether it is the host's turn to say something."""
        return self._asks.are_open or bool(self._server.open_calls)

    def unfinished_calls(self) -> dict[str, str]:
        """The calls that the model has begun and whose end has not come: id -> tool."""
        return {} if self._turn is None else self._turn.unfinished_calls()

    def take_ended(self) -> EndedTurn | None:
        """The turn that ended since the last call, if its message has reached the model."""
        ended, self._ended = self._ended, None
        return ended

    def respond(self, request: HostRequest, response: HostResponse) -> None:
        """The host's answer; one that nobody waits for any more is dropped."""
        if not self._asks.respond(request, response, self._turn):
            self._send_replies(self._server.answer(request.peer_request_id or "", result_of(response)))

    # from the peer

    @property
    def turn_is_over(self) -> bool:
        return self._turn is None or self._turn.is_over

    def receive(self, lines: Sequence[bytes]) -> list[TurnEvent]:
        """The lines of one read. Between turns they give no events, but are answered.

        Raises:
            ConnectorUnavailable: the CLI is not logged in, or it started without our tools.
            PeerProtocolError: it refused to start.
        """
        events: list[TurnEvent] = []
        for line in lines:
            events += self._line(line)
        return events

    def _line(self, data: bytes) -> list[TurnEvent]:
        turn = self._turn if not self.turn_is_over else None
        text = data.decode("utf-8", "replace")
        events: list[TurnEvent] = [raw("stdio", "from_peer", text)] if turn and self._setting.wants_raw else []
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            line = None
        if not isinstance(line, dict):
            if self.ready is None and self.stray_line is None and text.strip():
                self.stray_line = text.strip()[:200]
            return events + (turn.skipped() if turn and text.strip() else [])
        line = cast(JsonObject, line)
        match line.get("type"):
            case "control_request":
                return events + self._control_request(line)
            case "control_cancel_request":
                return events + self._withdrawn(line.get("request_id"))
            case "control_response":
                self._control_response(object_in(line.get("response")))
                return events
            case _:
                return events + self._turn_line(line)

    def _turn_line(self, line: JsonObject) -> list[TurnEvent]:
        if line.get("type") == "system" and line.get("subtype") == "init":
            events = self._session_begun(line)
        else:
            events = []
            if object_in(line.get("event")).get("type") == "message_start":
                self._server.message_started()
        turn = self._turn
        if turn is None:
            # only a session that cannot be resumed ends before the first message
            self.resume_failed |= line.get("type") == "result" and self.ready is None
            return events
        read = turn.read(line)
        if turn.is_over and self._history is not None:
            events += self._history.turn_over()
        events += read
        if turn.is_over:
            self._turn = None
            if turn.messages.message_ids:
                self._ended = EndedTurn(turn.message_uuid, turn.last_message, self._meter.totals)
            if self._tunnels:
                self._send_replies(self._server.answer_all(error_result(TURN_OVER)))
            self._asks.close()
        return events

    def _session_begun(self, line: JsonObject) -> list[TurnEvent]:
        """The CLI says with every turn who it is and what it has."""
        self.session_id = plain_text_in(line.get("session_id")) or self.session_id
        if self.ready is not None and self.ready.version is None:
            self.ready = Ready(parse_version(plain_text_in(line.get("claude_code_version"))))
        events = self._tool_check.read(line)
        return [] if self.turn_is_over else events

    # the control protocol: what the CLI asks

    def _control_request(self, line: JsonObject) -> list[TurnEvent]:
        request_id, body = line.get("request_id"), object_in(line.get("request"))
        subtype = plain_text_in(body.get("subtype"))
        match subtype:
            case "mcp_message":
                return self._mcp_message(request_id, body)
            case "can_use_tool" | "elicitation":
                return self._asks.asked(plain_text_in(request_id), body, self._turn)
            case "hook_callback":
                return self._hook_called(request_id, body)
            case _:
                kind = f"'control_request/{subtype[:80]}'"
                self._wire.refuse(request_id, f"Unsupported control request: {subtype}")
                return [] if self._turn is None else self._turn.unknown(kind)

    def _hook_called(self, request_id: JsonValue, body: JsonObject) -> list[TurnEvent]:
        if body.get("callback_id") != HISTORY_HOOK:
            self._asks.hook_called(request_id, body, self._turn)
            return []
        self._wire.succeed(request_id, {})
        return [] if self._history is None else self._history.hook_called(body)

    def _withdrawn(self, request_id: JsonValue) -> list[TurnEvent]:
        """The CLI waits no more, for an ask or for a call that came through the tunnel."""
        return self._asks.withdrawn(plain_text_in(request_id)) or _withdrawn(self._server.disconnected(request_id))

    def _mcp_message(self, request_id: object, body: JsonObject) -> list[TurnEvent]:
        if body.get("server_name") != SERVER_NAME or not self._tunnels:
            self._wire.refuse(request_id, f"there is no MCP server '{body.get('server_name')}' here")
            return []
        message = body.get("message")
        events: list[TurnEvent] = []
        for event in self._server.receive(message, reply_to=request_id):
            match event:
                case Reply():
                    self._send_replies([event])
                case CallRaised():
                    events += self._called(event)
                case CallWithdrawn():
                    events += _withdrawn([event])
                case _:
                    pass
        if isinstance(message, dict) and "id" not in message:
            self._wire.succeed(request_id, {"mcp_response": {"jsonrpc": "2.0", "result": {}}})
        return events

    def _called(self, call: CallRaised) -> list[TurnEvent]:
        turn = self._turn
        if turn is None or turn.is_over:
            self._send_replies(self._server.answer(call.key, error_result(TURN_OVER)))
            return []
        turn.raised(call.key)
        if turn.is_interrupted:
            return []  # closed with the end of the turn
        return [RequestRaised(self._tools.request_of(call, turn.written(call.key)))]

    # what comes over the bridge

    def has_written(self, call: CallRaised) -> bool:
        """Whether the stream has told this call, so that its request can say how the model wrote it."""
        call_id = plain_text_in(call.arguments.get("tool_use_id")) if self._tools.is_approval(call) else call.key
        return self._turn is None or not call.tells_id or self._turn.written(call_id) is not None

    def known_permission(self, call: CallRaised) -> JsonObject | None:
        """The answer to a permission that nobody has to be asked for."""
        return self._asks.known_permission(call, self._turn)

    def raised(self, call: CallRaised) -> HostRequest | None:
        """The request that a call is for the host; null when no turn runs."""
        turn = self._turn
        if turn is None or turn.is_over:
            return None
        if self._tools.is_approval(call):
            return self._asks.permission_request(call, turn)
        turn.raised(call.key)
        return self._tools.request_of(call, turn.written(call.key))

    def permission(self, call: CallRaised, request: HostRequest, response: HostResponse) -> JsonObject:
        """The host's answer to an ask that came as a call of the approving tool."""
        return self._asks.permission(call, request, response, self._turn)

    # the control protocol: what the CLI answers

    def _control_response(self, response: JsonObject) -> None:
        if response.get("request_id") != _INITIALIZE or self.ready is not None:
            return
        if response.get("subtype") != "success":
            raise PeerProtocolError(f"Claude Code refused to start: {plain_text_in(response.get('error'))}")
        answer = object_in(response.get("response"))
        account = object_in(answer.get("account"))
        # "none" and first party: other providers have credentials that the CLI does not name here
        has_none = account.get("tokenSource") == "none" and account.get("apiKeySource", "none") == "none"
        if has_none and account.get("apiProvider", "firstParty") == "firstParty":
            raise not_logged_in()
        self.ready = Ready(parse_version(str(answer.get("claude_code_version"))))

    # inside

    def _send_replies(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            self._wire.succeed(reply.reply_to, {"mcp_response": reply.message})


def _withdrawn(calls: Sequence[CallWithdrawn]) -> list[TurnEvent]:
    return [RequestWithdrawn(call.key) for call in calls]
