"""The wire of `codex app-server`: JSON-RPC without the member `jsonrpc`, one object per line. Pure.

Verified against 0.171.0. The host's tools are dynamic tools of the thread; Codex keeps them with the thread, so that a
resumed one offers them again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from connectors._history_text import history_notice, with_history
from connectors._json import JsonObject, object_in, objects_in, plain_text_in
from connectors._jsonrpc import Answered, Asked, JsonRpc, Notified, Stray, events_of, key_of
from connectors._kept_policy import KeptPolicy
from connectors.codex import asks
from connectors.codex.outcome import UsageMeter
from connectors.codex.rules import asks_for_more, rule_arguments
from connectors.codex.thread import DynamicTools, effort_of
from connectors.codex.turn_reader import TurnReader
from harness.contract.content import ContentBlock, ImageBlock, TextBlock
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostRequest, HostResponse
from harness.errors import ConnectorUnavailable, ContentNotSupported, PeerProtocolError
from harness.turn.events import RequestRaised, RequestWithdrawn, TurnEvent, TurnFailed, notice
from harness.wire.json_rpc import METHOD_NOT_FOUND

CLIENT = {"name": "level2-harness", "title": "level2-harness", "version": "1"}
_TURN_OVER = "The turn ended before this call was answered."
_OPENED = "thread"


@dataclass(frozen=True, slots=True)
class Thread:
    """What Codex said of the thread it opened."""

    thread_id: str
    model: str | None
    turns: int


class CodexProtocol:
    """The wire of one process with one thread: its start, then turns one after the other.

    `thread` is set once Codex has opened it.
    """

    def __init__(self, options: ConversationOptions, tools: DynamicTools, policy: KeptPolicy | None = None) -> None:
        self.thread: Thread | None = None
        self.resume_failed = False
        """The thread to resume is not there."""
        self.version = ""
        self.turns: int | None = None
        """How many turns the thread has to its end; null until it has taken up a message and can be resumed."""
        self._options = options
        self._tools = tools
        self._policy = policy
        self._rpc = JsonRpc(version=None)
        self._asked: dict[str, Asked] = {}
        self._meter = UsageMeter()
        self._turn: TurnReader | None = None
        self._turn_id: str | None = None
        self._opening: tuple[str, JsonObject] | None = None
        self._has_spoken = False
        self._cwd = ""

    # to the peer

    def data_to_send(self) -> bytes:
        return self._rpc.data_to_send()

    def open_thread(self, params: JsonObject, thread_id: str | None = None) -> None:
        """Starts a thread with these parameters, or resumes this one."""
        self._cwd = plain_text_in(params.get("cwd"))
        if thread_id is not None:
            self._opening = ("thread/resume", {**params, "threadId": thread_id})
            self._has_spoken = True
        else:
            self._opening = (
                "thread/start",
                {**params, "dynamicTools": self._tools.specs, "experimentalRawEvents": True},
            )
            self._meter.thread_is_new()
        capabilities = {"experimentalApi": True, "requestAttestation": False}
        self._rpc.ask("initialize", {"clientInfo": CLIENT, "capabilities": capabilities})

    def start_turn(self, content: Sequence[ContentBlock], options: TurnOptions) -> list[TurnEvent]:
        """Sends the user's message.

        Raises:
            ContentNotSupported: a kind of block that cannot be carried; nothing was sent.
        """
        thread = self.thread
        if thread is None:
            raise PeerProtocolError("Codex has opened no thread yet")
        history = [] if self._has_spoken else self._options.history
        params: JsonObject = {
            "threadId": thread.thread_id,
            "input": [_input(block) for block in with_history(history, content)],
        }
        # a model given for one turn would stay for the next: each turn says which it wants
        model = options.model or thread.model
        schema = options.output_schema_json or self._options.output_schema_json
        effort = effort_of(self._options.effort)
        params |= {"model": model} if model is not None else {}
        params |= {"effort": effort} if effort is not None else {}
        params |= {"outputSchema": json.loads(schema)} if schema is not None else {}
        self._rpc.ask("turn/start", params)
        self._meter.start_turn()
        self._turn = TurnReader(self._meter, model, wants_output=schema is not None)
        self._turn_id = None
        self._has_spoken = True
        return [history_notice(history)] if history else []

    def interrupt(self) -> None:
        """Asks Codex to stop the turn; before it has told the turn's id, as soon as it does."""
        if self._turn is None or self._turn.is_over:
            return
        self._turn.is_interrupted = True
        self._send_interrupt()

    def respond(self, request: HostRequest, response: HostResponse) -> list[TurnEvent]:
        asked = self._asked.pop(request.peer_request_id or "", None)
        if asked is None:
            return []
        self._rpc.answer(asked.key, asks.answer_of(asked, request, response))
        # in one write with the answer: Codex keeps the result and does not call its model again
        self._stop_at_limit(request.call_id)
        if response.updated_arguments_json is not None:
            text = f"Codex runs '{request.tool_name}' only as the model wrote it: with other arguments it was denied"
            return [notice("arguments_not_changed", text)]
        return []

    @property
    def waits_for_host(self) -> bool:
        return bool(self._asked)

    def unfinished_calls(self) -> dict[str, str]:
        return {} if self._turn is None else self._turn.unfinished_calls

    # from the peer

    @property
    def turn_is_over(self) -> bool:
        return self._turn is None or self._turn.is_over

    def receive(self, lines: Sequence[bytes]) -> list[TurnEvent]:
        """The lines of one read. Between turns they give no events, but are answered.

        Raises:
            ConnectorUnavailable: Codex refused to start as it should.
            PeerProtocolError: it broke its protocol.
        """
        return events_of(lines, self._message, self._options.output_detail, lambda: self.turn_is_over)

    def _message(self, line: bytes) -> list[TurnEvent]:
        said = self._rpc.receive(line)
        match said:
            case Asked():
                return self._asks(said)
            case Notified():
                return self._notified(said)
            case Answered():
                return self._answered(said)
            case Stray():
                turn = None if self.turn_is_over or not said.text else self._turn
                return turn.unknown("a line that is no message") if turn is not None else []

    def _notified(self, notified: Notified) -> list[TurnEvent]:
        if notified.method == "configWarning":
            _check_config(notified.params)
        if notified.method == "serverRequest/resolved":
            return self._resolved(notified.params)
        turn = self._turn
        if turn is None or turn.is_over or self._is_foreign(notified.params):
            return []
        events = turn.read(notified)
        if not turn.is_over and not self._asked:
            self._stop_at_limit(None)
        if turn.is_over:
            self.turns = (self.turns or 0) + 1
            self._close_open()
        return events

    def _resolved(self, params: JsonObject) -> list[TurnEvent]:
        """Codex does not wait any more; after an answer of ours it says so too."""
        key = key_of(params.get("requestId"))
        self._rpc.forget(key)
        return [RequestWithdrawn(key)] if self._asked.pop(key, None) is not None else []

    def _is_foreign(self, params: JsonObject) -> bool:
        """Of another thread (a subagent's), or of a turn before this one."""
        thread_id, turn_id = params.get("threadId"), params.get("turnId") or object_in(params.get("turn")).get("id")
        ours = self.thread.thread_id if self.thread else None
        if thread_id is not None and thread_id != ours:
            return True
        return turn_id is not None and self._turn_id is not None and turn_id != self._turn_id

    def _answered(self, answer: Answered) -> list[TurnEvent]:
        match answer.purpose:
            case "initialize":
                self._initialized(answer)
            case "thread":
                self._thread_opened(answer)
            case "turn/start":
                return self._turn_started(answer)
            case _:
                pass
        return []

    def _initialized(self, answer: Answered) -> None:
        if answer.error is not None:
            raise PeerProtocolError(f"Codex refused to start: {answer.error.message}")
        told = re.search(r"/(\d+\.\d+\.\d+)", plain_text_in(answer.result.get("userAgent")))
        self.version = told[1] if told else ""
        self._rpc.notify("initialized")
        if self._opening is not None:
            method, params = self._opening
            self._rpc.ask(method, params, purpose=_OPENED)

    def _thread_opened(self, answer: Answered) -> None:
        if answer.error is not None:
            is_resume = self._opening is not None and self._opening[0] == "thread/resume"
            self.resume_failed = is_resume
            if not is_resume:
                raise PeerProtocolError(f"Codex opened no thread: {answer.error.message}", rpc_code=answer.error.code)
            return
        body = object_in(answer.result.get("thread"))
        thread_id = plain_text_in(body.get("id"))
        if not thread_id:
            raise PeerProtocolError("Codex opened a thread without an id")
        model = plain_text_in(answer.result.get("model")) or None
        self.thread = Thread(thread_id, model, len(objects_in(body.get("turns"))))
        self.turns = self.thread.turns or None

    def _turn_started(self, answer: Answered) -> list[TurnEvent]:
        turn = self._turn
        if turn is None or turn.is_over:
            return []
        if answer.error is not None:
            turn.is_over = True
            self._close_open()
            return [TurnFailed(PeerProtocolError(f"Codex refused the message: {answer.error.message}"))]
        self._turn_id = plain_text_in(object_in(answer.result.get("turn")).get("id")) or None
        self.turns = self.turns or 0
        if turn.is_interrupted:
            self._send_interrupt()
        return []

    # what Codex asks

    def _asks(self, asked: Asked) -> list[TurnEvent]:
        turn = self._turn
        if asked.method not in asks.KNOWN:
            self._rpc.refuse(asked.key, METHOD_NOT_FOUND, f"'{asked.method}' is not supported")
            return turn.unknown(f"the request '{asked.method[:80]}'") if turn and not turn.is_over else []
        if turn is None or turn.is_over or self._is_foreign(asked.params):
            self._rpc.answer(asked.key, asks.closed(asked, _TURN_OVER))
            return []
        self._asked[asked.key] = asked
        if turn.is_interrupted:
            return []  # closed with the end of the turn
        request = self._request(turn, asked)
        ruled = self._ruled(turn, asked, request)
        if ruled is not None:
            return [*turn.acted(), *self.respond(request, ruled)]
        return [*turn.acted(), RequestRaised(request)]

    def _request(self, turn: TurnReader, asked: Asked) -> HostRequest:
        if asked.method != asks.TOOL_CALL:
            return asks.request_of(asked, turn.items.get(plain_text_in(asked.params.get("itemId")), {}))
        call_id = plain_text_in(asked.params.get("callId"))
        written = turn.written.get(call_id)
        order = written.order if written else len(turn.asked)
        turn.asked.add(call_id)
        return asks.tool_call_of(asked, self._tools.ours, order, written.arguments_json if written else None)

    def _ruled(self, turn: TurnReader, asked: Asked, request: HostRequest) -> HostResponse | None:
        """What a delegated policy answers for the host."""
        if self._policy is None:
            return None
        if asked.method == asks.COMMAND:
            written = turn.written.get(plain_text_in(asked.params.get("itemId")))
            arguments = rule_arguments(asked.params)
            if asks_for_more(asked.params, self._cwd, written.arguments_json if written else None):
                return self._policy.denial(request, arguments)
            return self._policy.answer(request, arguments)
        if asked.method == asks.FILE_CHANGE and (asked.params.get("reason") or asked.params.get("grantRoot")):
            return self._policy.denial(request)
        return self._policy.denial(request) if asked.method == asks.PERMISSIONS else self._policy.answer(request)

    def _close_open(self) -> None:
        """What Codex still waits for gets an answer, so that nothing of this turn is left in it."""
        for asked in self._asked.values():
            self._rpc.answer(asked.key, asks.closed(asked, _TURN_OVER))
        self._asked = {}

    def _stop_at_limit(self, call_id: str | None) -> None:
        turn, limit = self._turn, self._options.limits.max_turns
        if turn is None or limit is None or turn.is_interrupted or turn.is_at_limit:
            return
        if turn.rounds.would_be_over(limit, call_id):
            turn.is_at_limit = True
            self._send_interrupt()

    def _send_interrupt(self) -> None:
        if self.thread is not None and self._turn_id is not None:
            self._rpc.ask("turn/interrupt", {"threadId": self.thread.thread_id, "turnId": self._turn_id})


def _check_config(params: JsonObject) -> None:
    """Codex goes on with another configuration than it was given, even with another provider: then it must not start.

    Raises:
        ConnectorUnavailable: it did so.
    """
    summary = plain_text_in(params.get("summary"))
    if "nvalid configuration" in summary or "is ignored" in summary:
        details = plain_text_in(params.get("details"))
        raise ConnectorUnavailable(
            f"Codex does not take its configuration: {summary} {details}".strip(), reason="wrong_version"
        )


def _input(block: ContentBlock) -> JsonObject:
    match block:
        case TextBlock():
            return {"type": "text", "text": block.text, "text_elements": []}
        case ImageBlock():
            return {"type": "image", "url": f"data:{block.media_type};base64,{block.data}"}
        case _:
            raise ContentNotSupported(f"connector 'codex' cannot carry a block of type '{block.type}' in a message")
