"""Claude Code's stream-json wire: the control protocol in both directions, and the MCP tunnel inside it. Pure.

Verified against the CLI 2.1.332. One JSON object per line. `receive` takes the lines of one read and gives turn
events; what the CLI must be told collects until `data_to_send` takes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from bridge_mcp.mapping import error_result, result_of
from bridge_mcp.protocol import CallRaised, CallWithdrawn, Reply
from connectors._json import JsonObject, json_line, object_in, plain_text_in
from connectors.claude.argv import SERVER_NAME
from connectors.claude.asks import ELICITATION, OpenAsks, answer_of, closed, request_of, tool_use_id
from connectors.claude.denials import Denials
from connectors.claude.host_tools import HostTools
from connectors.claude.outcome import UsageMeter, not_logged_in
from connectors.claude.permissions import own_suggestions
from connectors.claude.turn_reader import TurnReader
from connectors.claude.versions import Version, parse_version
from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.contract.options import SystemPromptMode
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.value import JsonValue
from harness.errors import ConnectorUnavailable, ContentNotSupported, PeerProtocolError
from harness.turn.events import RequestRaised, RequestWithdrawn, TurnEvent, notice, raw

_INITIALIZE = "initialize"
_TOOL_NAMES = {"Task": "Agent"}
"""The CLI lists a tool under another name than it is asked for and called by."""
TURN_OVER = "The turn ended before this call was answered."


@dataclass(frozen=True, slots=True)
class Ready:
    """What the CLI said of itself when it answered `initialize`; older ones tell no version there."""

    version: Version | None


class ClaudeProtocol:
    """The wire of one CLI process: its start, then turns one after the other.

    `ready` is set once the CLI has answered `initialize`, `session_id` when it has taken up the first message.
    """

    def __init__(
        self,
        tools: HostTools,
        *,
        tunnels: bool = True,
        internal_tools: Sequence[str] = (),
        wants_raw: bool = False,
    ) -> None:
        self.ready: Ready | None = None
        self.session_id: str | None = None
        self.resume_failed = False
        """The session to resume is not there; the CLI exits."""
        self.stray_line: str | None = None
        """The first line that came before the answer to `initialize` and was no JSON."""
        self._tools = tools
        self._server = tools.server
        self._tunnels = tunnels and bool(tools.server.tools)
        self._internal_tools = set(internal_tools)
        self._wants_raw = wants_raw
        self._asks = OpenAsks()
        self._meter = UsageMeter()
        self._turn: TurnReader | None = None
        self._outbox: list[bytes] = []
        self._asked = 0

    # to the peer

    def data_to_send(self) -> bytes:
        """What was said since the last call."""
        data, self._outbox = b"".join(self._outbox), []
        return data

    def initialize(self, system_prompt: str | None, mode: SystemPromptMode) -> None:
        """Asks the CLI to get ready, and tells it our tools and the system prompt.

        Without a prompt of the caller the model gets an empty one; with mode `append` the CLI's own stays.
        """
        body: JsonObject = {"subtype": _INITIALIZE, "hooks": None}
        if self._tunnels:
            body["sdkMcpServers"] = [SERVER_NAME]
            # with a manifest the CLI needs no handshake; older ones ignore it and ask
            manifest = {
                "initializeResult": self._server.initialize_result(),
                "toolsListResult": self._server.tools_list_result(),
            }
            body["sdkMcpServerManifests"] = {SERVER_NAME: manifest}
        if mode == SystemPromptMode.REPLACE:
            body["systemPrompt"] = [system_prompt or ""]
        elif system_prompt is not None:
            body["appendSystemPrompt"] = system_prompt
        self._send({"type": "control_request", "request_id": _INITIALIZE, "request": body})

    def start_turn(self, content: Sequence[ContentBlock], message_uuid: str) -> None:
        """Sends the user's message and begins to read its turn.

        Raises:
            ContentNotSupported: a kind of block that cannot be carried; nothing was sent.
        """
        blocks = [_user_block(block) for block in content]
        is_plain = len(blocks) == 1 and blocks[0]["type"] == "text"
        self._turn = TurnReader(self._tools.has, self._meter)
        self._send(
            {
                "type": "user",
                "message": {"role": "user", "content": blocks[0]["text"] if is_plain else blocks},
                "parent_tool_use_id": None,
                "session_id": "",
                "uuid": message_uuid,
                # the text is the caller's: `@file` and `/command` in it mean nothing
                "client_composed": True,
            }
        )

    def interrupt(self) -> None:
        """Asks the CLI to stop the turn; its end comes as events. What it calls from here on is not for the host."""
        if self._turn is None or self._turn.is_over:
            return
        self._turn.is_interrupted = True
        self._asked += 1
        request = {"subtype": "interrupt"}
        self._send({"type": "control_request", "request_id": f"interrupt_{self._asked}", "request": request})

    def respond(self, request: HostRequest, response: HostResponse) -> None:
        """The host's answer; one that nobody waits for any more is dropped."""
        asked = self._asks.taken(request.peer_request_id)
        if asked is None:
            self._send_replies(self._server.answer(request.peer_request_id or "", result_of(response)))
            return
        self._succeed(request.peer_request_id, self._answered(asked, request, response))

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
        events: list[TurnEvent] = [raw("stdio", "from_peer", text)] if turn and self._wants_raw else []
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
        events += turn.read(line)
        if turn.is_over:
            self._turn = None
            self._close_open()
        return events

    def _close_open(self) -> None:
        """What the CLI still waits for gets an answer, so that nothing of this turn is left in it."""
        if self._tunnels:
            self._send_replies(self._server.answer_all(error_result(TURN_OVER)))
        for request_id, asked in self._asks.all_taken():
            self._succeed(request_id, closed(asked, TURN_OVER))

    def _session_begun(self, line: JsonObject) -> list[TurnEvent]:
        """The CLI says with every turn which tools it has: ours must be among them, and no others than asked for."""
        self.session_id = plain_text_in(line.get("session_id")) or self.session_id
        version = plain_text_in(line.get("claude_code_version"))
        if self.ready is not None and self.ready.version is None:
            self.ready = Ready(parse_version(version))
        tools = line.get("tools")
        if not isinstance(tools, list):
            return []
        named = {plain_text_in(name) for name in cast(list[object], tools)} - {""}
        present = {_TOOL_NAMES.get(name, name) for name in named}
        missing = sorted(self._tools.wire_names - present)
        if missing:
            raise ConnectorUnavailable(
                f"Claude Code {version} started without our tools; missing: {', '.join(missing)[:500]}",
                reason="tools_unavailable",
            )
        surplus = sorted(present - self._tools.wire_names - self._internal_tools - {self._tools.approve_name or ""})
        if surplus and not self.turn_is_over:
            return [notice("surplus_tools", f"Claude Code has tools nobody asked for: {', '.join(surplus)[:500]}")]
        return []

    # the control protocol: what the CLI asks

    def _control_request(self, line: JsonObject) -> list[TurnEvent]:
        request_id, body = line.get("request_id"), object_in(line.get("request"))
        subtype = plain_text_in(body.get("subtype"))
        match subtype:
            case "mcp_message":
                return self._mcp_message(request_id, body)
            case "can_use_tool" | "elicitation":
                return self._asked_host(plain_text_in(request_id), body)
            case "hook_callback":
                self._succeed(request_id, {})  # we register no hooks: nothing to say against it
                return []
            case _:
                kind = f"'control_request/{subtype[:80]}'"
                self._refuse(request_id, f"Unsupported control request: {subtype}")
                return [] if self._turn is None else self._turn.unknown(kind)

    def _asked_host(self, request_id: str, body: JsonObject) -> list[TurnEvent]:
        """A permission or a question. The host decides over its own tools when it runs them."""
        if body.get("subtype") != ELICITATION and self._tools.has(plain_text_in(body.get("tool_name"))):
            self._succeed(request_id, {"behavior": "allow", "updatedInput": object_in(body.get("input"))})
            return []
        turn = self._turn
        if turn is None or turn.is_over:
            self._succeed(request_id, closed(body, TURN_OVER))
            return []
        self._asks.opened(request_id, body)
        if turn.is_interrupted:
            return []  # closed with the end of the turn
        return [RequestRaised(request_of(body, request_id, turn.written(tool_use_id(body))))]

    def _withdrawn(self, request_id: JsonValue) -> list[TurnEvent]:
        """The CLI waits no more, for an ask or for a call that came through the tunnel."""
        if self._asks.taken(plain_text_in(request_id)) is not None:
            return [RequestWithdrawn(plain_text_in(request_id))]
        return _withdrawn(self._server.disconnected(request_id))

    def _mcp_message(self, request_id: object, body: JsonObject) -> list[TurnEvent]:
        if body.get("server_name") != SERVER_NAME or not self._tunnels:
            self._refuse(request_id, f"there is no MCP server '{body.get('server_name')}' here")
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
            self._succeed(request_id, {"mcp_response": {"jsonrpc": "2.0", "result": {}}})
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
        turn = self._turn
        return turn is None or not call.tells_id or turn.written(self._gated(call)) is not None

    def is_approval(self, call: CallRaised) -> bool:
        return self._tools.is_approval(call)

    def raised(self, call: CallRaised) -> HostRequest | None:
        """The request that a call over the bridge is for the host; null when no turn runs."""
        turn = self._turn
        if turn is None or turn.is_over:
            return None
        if self._tools.is_approval(call):
            return request_of(own_suggestions(call.arguments), call.key, turn.written(self._gated(call)))
        turn.raised(call.key)
        return self._tools.request_of(call, turn.written(call.key))

    def permission(self, call: CallRaised, request: HostRequest, response: HostResponse) -> JsonObject:
        """The host's answer to an ask that came as a call of the approving tool."""
        return self._answered(own_suggestions(call.arguments), request, response)

    def _gated(self, call: CallRaised) -> str:
        """The id of the call in the model's message."""
        return tool_use_id(call.arguments) if self._tools.is_approval(call) else call.key

    def _answered(self, asked: JsonObject, request: HostRequest, response: HostResponse) -> JsonObject:
        turn = self._turn
        answer = answer_of(asked, request, response, turn.denials if turn else Denials())
        if turn is not None and answer.get("behavior") == "deny":
            turn.denied(request.call_id)
        return answer

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

    def _send(self, message: JsonObject) -> None:
        self._outbox.append(json_line(message))

    def _send_replies(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            self._succeed(reply.reply_to, {"mcp_response": reply.message})

    def _succeed(self, request_id: object, response: JsonObject) -> None:
        body = {"subtype": "success", "request_id": request_id, "response": response}
        self._send({"type": "control_response", "response": body})

    def _refuse(self, request_id: object, error: str) -> None:
        body = {"subtype": "error", "request_id": request_id, "error": error}
        self._send({"type": "control_response", "response": body})


def _user_block(block: ContentBlock) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text}
        case ImageBlock():
            source = {"type": "base64", "media_type": block.media_type, "data": block.data}
            return {"type": "image", "source": source}
        case _:
            raise ContentNotSupported(f"connector 'claude' cannot carry a block of type '{block.type}' in a message")


def _withdrawn(calls: Sequence[CallWithdrawn]) -> list[TurnEvent]:
    return [RequestWithdrawn(call.key) for call in calls]
