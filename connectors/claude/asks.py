"""What the CLI asks of the host -> the request, and the host's answer in the CLI's words. Pure."""

from __future__ import annotations

from connectors._json import JsonObject, plain_text_in
from connectors.claude.messages import ModelCall
from connectors.claude.permissions import approval_of, permission_of
from connectors.claude.questions import ASK_TOOL, answered_input, elicitation_of, elicited, questions_of
from harness.contract.requests import HostRequest, HostResponse

ELICITATION = "elicitation"


def request_of(body: JsonObject, peer_request_id: str, written: ModelCall | None) -> HostRequest:
    """The request that this ask is for the host."""
    if body.get("subtype") == ELICITATION:
        return elicitation_of(body, peer_request_id)
    if body.get("tool_name") == ASK_TOOL:
        return questions_of(body, peer_request_id, written)
    return approval_of(body, peer_request_id, written)


def answer_of(body: JsonObject, request: HostRequest, response: HostResponse) -> JsonObject:
    """The host's answer in the CLI's words."""
    if body.get("subtype") == ELICITATION:
        return elicited(body, request, response)
    answer = answered_input if body.get("tool_name") == ASK_TOOL else permission_of
    return answer(body, request, response)


def closed(body: JsonObject, reason: str) -> JsonObject:
    """The answer that nobody gave."""
    if body.get("subtype") == ELICITATION:
        return {"action": "cancel"}
    return {"behavior": "deny", "message": reason, "interrupt": False}


def tool_use_id(body: JsonObject) -> str:
    return plain_text_in(body.get("tool_use_id"))
