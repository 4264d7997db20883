"""A ruling as the answer to a request, where it is one (pure)."""

from __future__ import annotations

from harness.contract.content import TextBlock
from harness.contract.requests import HostRequest, HostResponse, OptionKind, QuestionAction, RequestKind
from harness.policy.decision import Ruling, Verdict
from harness.turn.answers import denying_option


def answer_of(request: HostRequest, ruling: Ruling) -> HostResponse | None:
    """Null where somebody else has to answer: who is asked, whoever runs an allowed tool, or a peer that offers
    neither option.
    """
    if ruling.verdict == Verdict.ASK:
        return None
    if request.kind == RequestKind.APPROVAL:
        return _to_approval(request, ruling)
    if ruling.verdict == Verdict.ALLOW:
        return None
    if request.kind == RequestKind.USER_QUESTION:
        return HostResponse(request_id=request.request_id, action=QuestionAction.DECLINE, reason=ruling.reason)
    text = f"The tool '{request.tool_name}' was not run: {ruling.reason}."
    return HostResponse(request_id=request.request_id, content=[TextBlock(text=text)], is_error=True)


def _to_approval(request: HostRequest, ruling: Ruling) -> HostResponse | None:
    """Allowing is for once: an `allow_always` would let the peer decide about calls that nobody has seen."""
    if ruling.verdict == Verdict.DENY:
        option = denying_option(request)
    else:
        option = next((one.id for one in request.options if one.kind == OptionKind.ALLOW_ONCE), None)
    if option is None:
        return None
    return HostResponse(
        request_id=request.request_id,
        selected_option=option,
        updated_arguments_json=ruling.changed_arguments_json,
        reason=ruling.reason if ruling.verdict == Verdict.DENY else None,
    )
