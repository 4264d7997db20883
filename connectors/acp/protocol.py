"""The wire of an ACP agent: JSON-RPC 2.0, one object per line, protocol version 1. Pure.

The agent runs the loop; the host's tools reach it through the bridge, an MCP server that it is told of when the session
opens. What it asks its client comes here: permissions and questions. Updates of a session that is taken up replay its
history and are no news.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bridge_mcp.correlation import Correlation
from connectors._history_text import history_notice, with_history
from connectors._json import JsonObject, number_in, object_in, objects_in, plain_text_in
from connectors._jsonrpc import METHOD_NOT_FOUND, Answered, Asked, JsonRpc, Notified, Stray
from connectors.acp import asks
from connectors.acp.agent import Agent
from connectors.acp.names import ToolNames
from connectors.acp.outcome import UsageMeter, end_of, error_of, failure_in, failure_of
from connectors.acp.tool_calls import ToolCalls
from connectors.acp.turn_reader import TurnReader
from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.contract.options import ConversationOptions, OutputDetail, TurnOptions
from harness.contract.output import StopReason
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.value import JsonValue
from harness.errors import (
    ConnectorUnavailable,
    ContentNotSupported,
    HarnessError,
    NotSupported,
    PeerProtocolError,
)
from harness.turn.events import RequestRaised, TurnEnded, TurnEvent, TurnFailed, UsageReported, notice, raw

PROTOCOL_VERSION = 1
CLIENT = {"name": "level2-harness", "title": "level2-harness", "version": "1"}
_OPENED, _PROMPTED = "session", "prompt"


@dataclass(frozen=True, slots=True)
class Opening:
    """What a session is opened with; `session_id` is that of an earlier one to take up."""

    params: JsonObject
    session_id: str | None = None
    model: str | None = None
    mode: str | None = None
    auth_method: str | None = None
    capabilities: JsonObject | None = None


class AcpProtocol:
    """The wire of one process with one session: its start, then turns one after the other."""

    def __init__(self, agent: Agent, options: ConversationOptions, names: ToolNames, opening: Opening) -> None:
        self.session_id: str | None = None
        """Set once the session can take a prompt."""
        self.resume_failed = False
        """The session to take up is not there."""
        self.version = ""
        self.agent_name = agent.name
        self.has_prompted = False
        """Whether the session has taken up a message."""
        self.takes_http = False
        """Whether the agent connects to MCP servers over HTTP."""
        self.is_initialized = False
        self.meter = UsageMeter(agent)
        self._agent = agent
        self._options = options
        self._names = names
        self._opening = opening
        self._rpc = JsonRpc()
        self._asked: dict[str, Asked] = {}
        self._turn: TurnReader | None = None
        self._correlation = Correlation()
        self._commands: set[str] = set()
        self._prompt_kinds: JsonObject = {}
        self._failure: HarnessError | None = None
        self._failed_in_text = False
        self._opened_id = ""
        self._left_to_set: list[tuple[str, JsonObject]] = []

    # to the peer

    def data_to_send(self) -> bytes:
        return self._rpc.data_to_send()

    def initialize(self) -> None:
        capabilities: JsonObject = {"elicitation": {"form": {}}, **(self._opening.capabilities or {})}
        params: JsonObject = {"protocolVersion": PROTOCOL_VERSION, "clientCapabilities": capabilities}
        self._rpc.ask("initialize", {**params, "clientInfo": CLIENT})

    def open_session(self, servers: list[JsonObject]) -> None:
        """After `initialize`: takes up the earlier session, or opens a new one, with these MCP servers."""
        params: JsonObject = {**self._opening.params, "mcpServers": servers}
        method = "session/new"
        if self._opening.session_id is not None and self._agent.resume is not None:
            method = self._agent.resume
            params["sessionId"] = self._opening.session_id
            self.has_prompted = True
        self._left_to_set = [(method, params)]
        if self._opening.auth_method is not None:
            self._rpc.ask("authenticate", {"methodId": self._opening.auth_method})
        else:
            self._ask_next()

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
        self._close_open()

    def respond(self, request: HostRequest, response: HostResponse) -> list[TurnEvent]:
        asked = self._asked.pop(request.peer_request_id or "", None)
        if asked is None:
            return []
        if asked.method == asks.ELICITATION:
            self._rpc.answer(asked.key, asks.elicited(asked, request, response))
            return []
        answer, is_allowed = asks.permission_of(request, response)
        call_id = plain_text_in(object_in(asked.params.get("toolCall")).get("toolCallId"))
        if not is_allowed and self._turn is not None:
            self._turn.calls.refused(call_id)
        self._rpc.answer(asked.key, answer)
        if response.updated_arguments_json is not None:
            told = f"{self._agent.name} runs '{request.tool_name}' only as the model wrote it: it was denied"
            return [notice("arguments_not_changed", told)]
        return []

    # from the peer

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
        events: list[TurnEvent] = []
        for line in lines:
            if not self.turn_is_over and self._options.output_detail == OutputDetail.RAW:
                events.append(raw("stdio", "from_peer", line.decode("utf-8", "replace")))
            events += self._message(line)
        return events

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
                return self._asks(said)
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
        if answer.purpose == "initialize":
            self._initialized(answer)
            return []
        if answer.error is not None:
            self._refused(answer)
            return []
        if answer.purpose == _OPENED:
            self._opened_id = plain_text_in(answer.result.get("sessionId")) or (self._opening.session_id or "")
            if not self._opened_id:
                raise PeerProtocolError(f"'{self._agent.name}' opened a session without an id")
            self._left_to_set = self._settings(answer.result)
        self._ask_next()
        return []

    def _ask_next(self) -> None:
        if not self._left_to_set:
            self.session_id = self._opened_id
            return
        method, params = self._left_to_set.pop(0)
        is_opening = method in ("session/new", "session/resume", "session/load")
        self._rpc.ask(method, params, purpose=_OPENED if is_opening else method)

    def _initialized(self, answer: Answered) -> None:
        if answer.error is not None:
            raise error_of(answer.error, self._agent)
        told = number_in(answer.result.get("protocolVersion"))
        if told != PROTOCOL_VERSION:
            raise ConnectorUnavailable(
                f"'{self._agent.name}' speaks version {told} of ACP, not {PROTOCOL_VERSION}; {self._agent.remedy}",
                reason="wrong_version",
            )
        info = object_in(answer.result.get("agentInfo"))
        self.version = plain_text_in(info.get("version"))
        capabilities = object_in(answer.result.get("agentCapabilities"))
        self.takes_http = object_in(capabilities.get("mcpCapabilities")).get("http") is True
        self._prompt_kinds = object_in(capabilities.get("promptCapabilities"))
        self.is_initialized = True

    def _refused(self, answer: Answered) -> None:
        """The session did not come about."""
        assert answer.error is not None
        if answer.purpose == _OPENED and self._opening.session_id is not None:
            self.resume_failed = True
            return
        error = error_of(answer.error, self._agent)
        if answer.purpose in ("session/set_config_option", "session/set_model"):
            raise NotSupported(f"'{self._agent.name}' has no model '{self._opening.model}': {answer.error.message}")
        raise (
            error
            if isinstance(error, ConnectorUnavailable)
            else PeerProtocolError(f"'{self._agent.name}' refused '{answer.purpose}': {answer.error.message}")
        )

    def _settings(self, opened: JsonObject) -> list[tuple[str, JsonObject]]:
        """What the session still has to be told: the mode in which it asks us, and the model."""
        session: JsonObject = {"sessionId": self._opened_id}
        calls: list[tuple[str, JsonObject]] = []
        modes = object_in(opened.get("modes"))
        known = [plain_text_in(one.get("id")) for one in objects_in(modes.get("availableModes"))]
        mode = self._opening.mode
        if mode is not None and mode != modes.get("currentModeId"):
            if known and mode not in known:
                raise NotSupported(f"'{self._agent.name}' has no mode '{mode}'; it has: {', '.join(known)}")
            calls.append(("session/set_mode", {**session, "modeId": mode}))
        if self._opening.model is not None:
            calls += self._model_call(opened, session, self._opening.model)
        return calls

    def _model_call(self, opened: JsonObject, session: JsonObject, model: str) -> list[tuple[str, JsonObject]]:
        for option in objects_in(opened.get("configOptions")):
            if option.get("category") == "model" or option.get("id") == "model":
                if option.get("currentValue") == model:
                    return []
                params: JsonObject = {**session, "configId": option.get("id"), "value": model}
                return [("session/set_config_option", params)]
        models = object_in(opened.get("models"))
        if not models:
            raise NotSupported(f"'{self._agent.name}' lets nobody choose its model; it was asked for '{model}'")
        if models.get("currentModelId") == model:
            return []
        return [("session/set_model", {**session, "modelId": model})]

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
        self._close_open()
        usage = self.meter.usage_of(answer.result)
        if usage is not None:
            events.append(UsageReported(usage))
        return [*events, self.ended(end)]

    # what the agent asks

    def _asks(self, asked: Asked) -> list[TurnEvent]:
        turn = self.running()
        if asked.method not in asks.KNOWN:
            self._rpc.refuse(asked.key, METHOD_NOT_FOUND, f"'{asked.method}' is not supported")
            return turn.unknown(f"the request '{asked.method[:80]}'") if turn is not None else []
        if turn is None or turn.is_interrupted:
            self._rpc.answer(asked.key, asks.closed(asked))
            return []
        if asked.method == asks.ELICITATION:
            self._asked[asked.key] = asked
            call_id = turn.calls.model_id(plain_text_in(asked.params.get("toolCallId")))
            return [*turn.acted(), RequestRaised(asks.question_of(asked, call_id))]
        return self._permission(turn, asked)

    def _permission(self, turn: TurnReader, asked: Asked) -> list[TurnEvent]:
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
        return [*events, RequestRaised(request)]

    def _close_open(self) -> None:
        for asked in self._asked.values():
            self._rpc.answer(asked.key, asks.closed(asked))
        self._asked = {}

    # what is said

    def _block(self, block: ContentBlock) -> JsonObject:
        match block:
            case TextBlock():
                return {"type": "text", "text": block.text}
            case ImageBlock() if self._prompt_kinds.get("image") is True:
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
