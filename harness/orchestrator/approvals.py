"""Who answers approvals and questions. Nothing here ever makes up an answer, and nobody's silence is a pass."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

import anyio

from harness.contract.requests import (
    REFUSING,
    Answer,
    HostRequest,
    HostResponse,
    OptionKind,
    Question,
    QuestionAction,
    RequestKind,
)
from harness.errors import InvalidArgument, NotSupported
from harness.orchestrator.refusals import Refusal, RefusalKind


class ApprovalMode(StrEnum):
    ALLOW = "allow"
    DENY = "deny"
    ASK = "ask"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Decision:
    response: HostResponse
    refusal: Refusal | None = None


class Approver(Protocol):
    """Decides one approval or question."""

    async def decide(self, request: HostRequest) -> Decision | None:
        """Null leaves it to somebody else, until its deadline. Cancelled when it is resolved otherwise."""
        ...


AskPerson: TypeAlias = Callable[[HostRequest], Awaitable[HostResponse]]
"""Shows a request to a person and returns what they said."""

Answers: TypeAlias = Mapping[str, str | Sequence[str]]
"""Answers known beforehand: a question's id, header or text -> an option's id or label (or several), or free text."""


class Allowing:
    """Allows once whatever is asked. A question cannot be allowed: it is declined."""

    async def decide(self, request: HostRequest) -> Decision | None:
        if request.kind != RequestKind.APPROVAL:
            return declined(request, Refusal(RefusalKind.APPROVAL_UNAVAILABLE, "Nobody is there to answer questions."))
        for kind in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS):
            for option in request.options:
                if option.kind == kind:
                    return Decision(HostResponse(request_id=request.request_id, selected_option=option.id))
        raise NotSupported(f"approval '{request.request_id}' of '{request.tool_name}' offers no way to allow it")


class Denying:
    """Denies and declines, and says why."""

    def __init__(
        self, reason: str = "The host denies this.", kind: RefusalKind = RefusalKind.APPROVAL_UNAVAILABLE
    ) -> None:
        self._refusal = Refusal(kind, reason)

    async def decide(self, request: HostRequest) -> Decision | None:
        return declined(request, self._refusal)


class Asking:
    """Asks a person, one thing at a time."""

    def __init__(self, ask: AskPerson) -> None:
        self._ask = ask
        self._one_at_a_time = anyio.Lock()

    async def decide(self, request: HostRequest) -> Decision | None:
        async with self._one_at_a_time:
            response = await self._ask(request)
        if not refuses(request, response):
            return Decision(response)
        return Decision(response, Refusal(RefusalKind.REJECTED, response.reason or "A person rejected this."))


class Waiting:
    """Leaves every request open for another host, such as an inbox."""

    async def decide(self, request: HostRequest) -> Decision | None:
        return None


class Prepared:
    """Gives answers that are known beforehand, and leaves the rest to another approver."""

    def __init__(self, answers: Answers, otherwise: Approver) -> None:
        self._answers = answers
        self._otherwise = otherwise

    async def decide(self, request: HostRequest) -> Decision | None:
        found = [answer_to_question(question, self._answers) for question in request.questions]
        known = [answer for answer in found if answer is not None]
        if request.kind != RequestKind.USER_QUESTION or not known or len(known) < len(found):
            return await self._otherwise.decide(request)
        response = HostResponse(request_id=request.request_id, action=QuestionAction.ACCEPT, answers=known)
        return Decision(response)


def answer_to_question(question: Question, answers: Answers) -> Answer | None:
    """The answer that is known for a question, by its id, header or text; null if there is none."""
    keys = (question.id, question.header, question.text)
    given = next((answers[key] for key in keys if key is not None and key in answers), None)
    if given is None:
        return None
    wanted = [given] if isinstance(given, str) else list(given)
    ids = {name: option.id for option in question.options for name in (option.label, option.id)}
    if all(name in ids for name in wanted):
        return Answer(question_id=question.id, selected=[ids[name] for name in wanted])
    return Answer(question_id=question.id, text=", ".join(wanted))


def approver_for(mode: ApprovalMode | str | Approver, ask: AskPerson | None = None) -> Approver:
    """The approver that a mode stands for; `ask` needs somebody to ask.

    Raises:
        InvalidArgument: an unknown mode, or `ask` without anybody.
    """
    if not isinstance(mode, str):
        return mode
    match mode:
        case ApprovalMode.ALLOW:
            return Allowing()
        case ApprovalMode.DENY:
            return Denying(kind=RefusalKind.DENIED)
        case ApprovalMode.WAIT:
            return Waiting()
        case ApprovalMode.ASK if ask is not None:
            return Asking(ask)
        case ApprovalMode.ASK:
            raise InvalidArgument("approval mode 'ask' needs somebody to ask: give a callable, or use 'deny'")
        case _:
            raise InvalidArgument(f"unknown approval mode '{mode}'; known: {', '.join(ApprovalMode)}")


def declined(request: HostRequest, refusal: Refusal) -> Decision:
    """The mildest refusal that the peer offers.

    Raises:
        NotSupported: the approval has no option that refuses.
    """
    if request.kind != RequestKind.APPROVAL:
        action = QuestionAction.DECLINE
        return Decision(HostResponse(request_id=request.request_id, action=action, reason=refusal.text), refusal)
    for kind in (OptionKind.DENY, OptionKind.DENY_AND_INTERRUPT):
        for option in request.options:
            if option.kind == kind:
                response = HostResponse(request_id=request.request_id, selected_option=option.id, reason=refusal.text)
                return Decision(response, refusal)
    raise NotSupported(f"approval '{request.request_id}' of '{request.tool_name}' offers no way to refuse it")


def refuses(request: HostRequest, response: HostResponse) -> bool:
    if request.kind == RequestKind.APPROVAL:
        option = request.option(response.selected_option)
        return option is not None and option.kind in REFUSING
    return response.action in (QuestionAction.DECLINE, QuestionAction.CANCEL)
