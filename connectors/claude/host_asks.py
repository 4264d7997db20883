"""The CLI asks whether it may: permissions, questions, hooks. What the policy leaves open becomes a request. Pure."""

from __future__ import annotations

from bridge_mcp.protocol import CallRaised
from connectors._json import JsonObject, object_in, plain_text_in
from connectors.claude.asks import ELICITATION, answer_of, closed, request_of, tool_use_id
from connectors.claude.control import ControlWire
from connectors.claude.gate import Gate, hook_answer
from connectors.claude.host_tools import HostTools
from connectors.claude.permissions import own_suggestions
from connectors.claude.turn_reader import TurnReader
from harness.contract.requests import HostRequest, HostResponse
from harness.policy import Ruling, Verdict
from harness.turn.events import RequestRaised, RequestWithdrawn, TurnEvent

TURN_OVER = "The turn ended before this call was answered."


class HostAsks:
    """The asks of one process; those that wait stand under the ids of their control requests."""

    def __init__(self, wire: ControlWire, tools: HostTools, gate: Gate) -> None:
        self._wire = wire
        self._tools = tools
        self._gate = gate
        self._open: dict[str, JsonObject] = {}

    @property
    def are_open(self) -> bool:
        return bool(self._open)

    def asked(self, request_id: str, body: JsonObject, turn: TurnReader | None) -> list[TurnEvent]:
        """A permission or a question, over the control protocol."""
        known = self._known_answer(body, turn)
        if known is not None:
            self._wire.succeed(request_id, known)
            return []
        self._open[request_id] = body
        if turn is None or turn.is_interrupted:
            return []  # closed with the end of the turn
        return [RequestRaised(request_of(body, request_id, turn.written(tool_use_id(body))))]

    def hook_called(self, request_id: object, body: JsonObject, turn: TurnReader | None) -> None:
        """A call that is about to run, before the CLI's own rules have a look at it."""
        call = object_in(body.get("input"))
        name, arguments = plain_text_in(call.get("tool_name")), object_in(call.get("tool_input"))
        ruling = None if self._tools.has(name) else self._gate.ruling(name, arguments)
        self._wire.succeed(request_id, hook_answer(ruling))
        if turn is not None and ruling is not None and ruling.verdict == Verdict.DENY:
            turn.denied(tool_use_id(body))
            if turn.denials.note(name, arguments):
                self._wire.ask({"subtype": "interrupt"})

    def respond(self, request: HostRequest, response: HostResponse, turn: TurnReader | None) -> bool:
        """The host's answer; false when it is not for an ask that came over the control protocol and still waits."""
        asked = self._open.pop(request.peer_request_id or "", None)
        if asked is None:
            return False
        self._wire.succeed(request.peer_request_id, _answered(asked, request, response, turn))
        return True

    def withdrawn(self, request_id: str) -> list[TurnEvent]:
        """The CLI waits no more."""
        return [] if self._open.pop(request_id, None) is None else [RequestWithdrawn(request_id)]

    def close(self) -> None:
        """Answers what still waits, so that nothing of this turn is left in the CLI."""
        waiting, self._open = self._open, {}
        for request_id, asked in waiting.items():
            self._wire.succeed(request_id, closed(asked, TURN_OVER))

    # asks that come as calls of the approving tool

    def known_permission(self, call: CallRaised, turn: TurnReader | None) -> JsonObject | None:
        """The answer for which nobody has to be asked."""
        return self._known_answer(call.arguments, turn)

    def permission_request(self, call: CallRaised, turn: TurnReader) -> HostRequest:
        return request_of(own_suggestions(call.arguments), call.key, turn.written(tool_use_id(call.arguments)))

    def permission(
        self, call: CallRaised, request: HostRequest, response: HostResponse, turn: TurnReader | None
    ) -> JsonObject:
        return _answered(own_suggestions(call.arguments), request, response, turn)

    # inside

    def _known_answer(self, body: JsonObject, turn: TurnReader | None) -> JsonObject | None:
        name, arguments = plain_text_in(body.get("tool_name")), object_in(body.get("input"))
        if body.get("subtype") != ELICITATION:
            if self._tools.has(name):  # the host decides over its own tools when it runs them
                return {"behavior": "allow", "updatedInput": arguments}
            ruling = self._gate.ruling(name, arguments)
            if ruling is not None and ruling.verdict != Verdict.ASK:
                return _ruled(ruling, tool_use_id(body), arguments, turn)
        return closed(body, TURN_OVER) if turn is None or turn.is_over else None


def _ruled(ruling: Ruling, call_id: str, arguments: JsonObject, turn: TurnReader | None) -> JsonObject:
    """For a CLI that asks although its hook has been answered."""
    if ruling.verdict == Verdict.ALLOW:
        return {"behavior": "allow", "updatedInput": arguments}
    if turn is not None:
        turn.denied(call_id)
    return {"behavior": "deny", "message": ruling.reason, "interrupt": False}


def _answered(asked: JsonObject, request: HostRequest, response: HostResponse, turn: TurnReader | None) -> JsonObject:
    answer = answer_of(asked, request, response)
    if turn is not None and answer.get("behavior") == "deny":
        turn.denied(request.call_id)
    return answer
