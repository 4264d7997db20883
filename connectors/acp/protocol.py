"""The wire of an ACP agent: JSON-RPC 2.0, one object per line, protocol version 1. Pure.

The agent runs the loop; the host's tools reach it through the bridge, an MCP server that it is told of when the session
opens (`handshake`). Then turns follow, one after the other: the agent's updates are read by `turn_reader`, what it asks
its client is kept by `client_requests`. Updates of a session that is taken up replay its history and are no news.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge_mcp.correlation import Correlation
from connectors._history_text import history_notice, with_history
from connectors._json import JsonObject, object_in, objects_in, plain_text_in
from connectors._jsonrpc import Answered, Asked, JsonRpc, Notified, Stray, events_of
from connectors.acp.agent import Agent
from connectors.acp.client_requests import ClientRequests
from connectors.acp.handshake import Handshake, Opening
from connectors.acp.names import ToolNames
from connectors.acp.outcome import UsageMeter, end_of, failure_in, failure_of
from connectors.acp.tool_calls import ToolCalls
from connectors.acp.turn_reader import TurnReader
from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.output import StopReason
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.value import JsonValue
from harness.errors import ContentNotSupported, HarnessError
from harness.turn.events import TurnEnded, TurnEvent, TurnFailed, UsageReported

_PROMPTED = "prompt"


class AcpProtocol:
    """The wire of one process with one session: its start, then turns one after the other."""

    def __init__(self, agent: Agent, options: ConversationOptions, names: ToolNames, opening: Opening) -> None:
        self.agent_name = agent.name
        self.takes_json_for_structured = agent.takes_json_for_structured
        self.has_prompted = False
        """Whether the session has taken up a message."""
        self.meter = UsageMeter(agent)
        self._agent = agent
        self._options = options
        self._names = names
        self._rpc = JsonRpc()
        self._handshake = Handshake(agent, opening, self._rpc)
        self.requests = ClientRequests(self._rpc, agent.name, opening.rights.methods, opening.policy)
        """What the agent asks of us."""
        self._turn: TurnReader | None = None
        self._correlation = Correlation()
        self._commands: set[str] = set()
        self._failure: HarnessError | None = None
        self._failed_in_text = False

    # to the peer

    def data_to_send(self) -> bytes:
        return self._rpc.data_to_send()

    def initialize(self) -> None:
        self._handshake.initialize()

    def open_session(self, servers: list[JsonObject]) -> None:
        """After `initialize`: takes up the earlier session, or opens a new one, with these MCP servers."""
        self.has_prompted = self._handshake.takes_up is not None
        self._handshake.open_session(servers)

    def start_turn(self, content: Sequence[ContentBlock], options: TurnOptions) -> list[TurnEvent]:
        """Sends the user's message.

        Raises:
            ContentNotSupported: a block the agent does not take, or a text it would take for a command.
        """
        history = [] if self.has_prompted else self._options.history
        blocks = [self._block(block) for block in with_history(history, content)]
        self._check_command(content)
        self._correlation = Correlation()
        calls = ToolCalls(
            self._names,
            self._correlation,
            has_prefixed_ids=self._agent.has_prefixed_ids,
            source=self._agent.name,
        )
        self._turn = TurnReader(calls, self._agent.name)
        self._failure, self._failed_in_text = None, False
        self._rpc.ask("session/prompt", {"sessionId": self.session_id, "prompt": blocks}, purpose=_PROMPTED)
        self.has_prompted = True
        return [history_notice(history)] if history else []

    def interrupt(self) -> None:
        """Asks the agent to stop; what it has asked is answered as cancelled, as the protocol wants it."""
        turn = self._turn
        if turn is None or turn.is_over or turn.is_interrupted:
            return
        turn.is_interrupted = True
        self._rpc.notify("session/cancel", {"sessionId": self.session_id})
        self.requests.close()

    def respond(self, request: HostRequest, response: HostResponse) -> list[TurnEvent]:
        return self.requests.respond(request, response, self._turn)

    @property
    def waits_for_host(self) -> bool:
        return self.requests.are_open

    def unfinished_calls(self) -> dict[str, str]:
        return {} if self._turn is None else self._turn.calls.unfinished()

    # from the peer

    @property
    def is_initialized(self) -> bool:
        return self._handshake.is_initialized

    @property
    def session_id(self) -> str | None:
        """Null until the session can take a prompt."""
        return self._handshake.session_id

    @property
    def resume_failed(self) -> bool:
        """The session to take up is not there."""
        return self._handshake.resume_failed

    @property
    def version(self) -> str:
        return self._handshake.version

    @property
    def takes_http(self) -> bool:
        """Whether the agent connects to MCP servers over HTTP."""
        return self._handshake.takes_http

    @property
    def turn_is_over(self) -> bool:
        return self._turn is None or self._turn.is_over

    @property
    def is_interrupted(self) -> bool:
        return self._turn is not None and self._turn.is_interrupted

    @property
    def has_heard(self) -> bool:
        """Whether the agent has said anything in this turn."""
        return self._turn is not None and self._turn.has_heard

    @property
    def correlation(self) -> Correlation:
        """Of the running turn."""
        return self._correlation

    def receive(self, lines: Sequence[bytes]) -> list[TurnEvent]:
        """The lines of one read. Between turns they give no events, but are answered.

        Raises:
            ConnectorUnavailable: the agent cannot be used as asked.
            PeerProtocolError: it broke its protocol.
        """
        return events_of(lines, self._message, self._options.output_detail, lambda: self.turn_is_over)

    def vendor(self, notified: Notified) -> list[TurnEvent]:
        """A notification that is not ACP's."""
        return []

    def fail(self, error: HarnessError) -> None:
        """The turn has failed, whatever the agent calls its end."""
        self._failure = error

    def ended(self, end: TurnEnded | TurnFailed) -> TurnEnded | TurnFailed:
        """The end that the turn gets."""
        if self._failure is not None and not self.is_interrupted:
            return TurnFailed(self._failure)
        return end

    def acted(self) -> list[TurnEvent]:
        """The model acts through the bridge: what it said before was said on the way."""
        turn = self.running()
        return turn.acted() if turn is not None else []

    def running(self) -> TurnReader | None:
        return None if self.turn_is_over else self._turn

    # inside

    def _message(self, line: bytes) -> list[TurnEvent]:
        said = self._rpc.receive(line)
        turn = self.running()
        match said:
            case Asked():
                return self.requests.receive(said, turn)
            case Notified():
                if said.method == "session/update":
                    return self._updated(object_in(said.params.get("update")), said.params.get("sessionId"))
                return self.vendor(said)
            case Answered():
                return self._answered(said)
            case Stray():
                return turn.unknown("a line that is no message") if turn is not None and said.text else []

    def _updated(self, update: JsonObject, session_id: JsonValue) -> list[TurnEvent]:
        kind = update.get("sessionUpdate")
        if kind == "available_commands_update":
            names = [plain_text_in(one.get("name")) for one in objects_in(update.get("availableCommands"))]
            self._commands = {name for name in names if name}
        if kind == "usage_update":
            self.meter.cost_told(update)
        turn = self.running()
        if turn is None or session_id != self.session_id:
            return []
        status = object_in(object_in(object_in(update.get("_meta")).get("codex")).get("threadStatus"))
        if status.get("type") == "systemError":
            self._failed_in_text = True
        cost = self.meter.cost_so_far() if kind == "usage_update" else None
        return [*turn.read(update), *([UsageReported(cost)] if cost is not None else [])]

    def _answered(self, answer: Answered) -> list[TurnEvent]:
        if answer.purpose == _PROMPTED:
            return self._prompted(answer)
        self._handshake.answered(answer)
        return []

    def _prompted(self, answer: Answered) -> list[TurnEvent]:
        turn = self.running()
        if turn is None:
            return []
        end = failure_of(answer.error, self._agent) if answer.error is not None else end_of(answer.result)
        if turn.is_interrupted and not isinstance(end, TurnEnded):
            end = TurnEnded(StopReason.CANCELLED)
        if self._failed_in_text and self._failure is None and answer.error is None:
            self.fail(failure_in(turn.last_text))
        events = turn.finish()
        self.requests.close()
        usage = self.meter.usage_of(answer.result)
        if usage is not None:
            events.append(UsageReported(usage))
        return [*events, self.ended(end)]

    # what is said

    def _block(self, block: ContentBlock) -> JsonObject:
        match block:
            case TextBlock():
                return {"type": "text", "text": block.text}
            case ImageBlock() if self._handshake.prompt_kinds.get("image") is True:
                return {"type": "image", "data": block.data, "mimeType": block.media_type}
            case _:
                raise ContentNotSupported(f"'{self._agent.name}' cannot carry a block of type '{block.type}'")

    def _check_command(self, content: Sequence[ContentBlock]) -> None:
        first = content[0] if content else None
        if not isinstance(first, TextBlock) or not first.text.startswith("/"):
            return
        word = first.text[1:].split(maxsplit=1)[0] if first.text[1:].strip() else ""
        if word in self._commands:
            raise ContentNotSupported(
                f"'{self._agent.name}' takes a text that starts with '/{word}' for a command of its own"
            )
