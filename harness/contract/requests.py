"""Requests of a peer that park until the host answers, and the answers."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from harness.contract.content import ContentBlock
from harness.contract.value import OPEN, Value


class RequestKind(StrEnum):
    TOOL_CALL = "tool_call"
    APPROVAL = "approval"
    USER_QUESTION = "user_question"


class CallIdSource(StrEnum):
    """How sure we are that `call_id` is the provider's: told, found by correlation, or ours."""

    EXACT = "exact"
    MATCHED = "matched"
    MADE_UP = "made_up"


class OptionKind(StrEnum):
    ALLOW_ONCE = "allow_once"
    ALLOW_ALWAYS = "allow_always"
    DENY = "deny"
    DENY_AND_INTERRUPT = "deny_and_interrupt"
    OTHER = "other"


REFUSING = frozenset({OptionKind.DENY, OptionKind.DENY_AND_INTERRUPT})


class RequestOption(Value):
    """One choice the peer really offers; `id` is the peer's, or the kind's name where it has none."""

    id: str
    kind: Annotated[OptionKind | str, OPEN]
    label: str | None = None
    description: str | None = None


class QuestionOption(Value):
    id: str
    label: str
    description: str | None = None


class Question(Value):
    id: str
    text: str
    header: str | None = None
    options: list[QuestionOption] = []
    multi_select: bool = False
    allow_free_text: bool = False
    secret: bool = False


class HostRequest(Value):
    """What the peer waits for. Identity is (conversation, turn, `request_id`), never the tool's name.

    A connector leaves `request_id`, `opened_at` and `expires_at` empty: the conversation gives them (of another harness
    the `request_id` stays). It always sets `peer_request_id`, which is unique while the request is open and names it
    towards the session.
    """

    request_id: str = ""
    kind: Annotated[RequestKind | str, OPEN]
    call_id: str | None = None
    call_id_source: Annotated[CallIdSource | str, OPEN] = CallIdSource.EXACT
    peer_request_id: str | None = None
    order: int | None = None
    tool_name: str | None = None
    arguments_json: str | None = None
    options: list[RequestOption] = []
    questions: list[Question] = []
    answer_schema_json: str | None = None
    title: str | None = None
    description: str | None = None
    target: str | None = None
    read_only: bool | None = None
    parent_call_id: str | None = None
    opened_at: int = 0
    expires_at: int | None = None

    def option(self, selected: str | None) -> RequestOption | None:
        """The option named by its id, or by its kind where exactly one option has that kind."""
        for option in self.options:
            if option.id == selected:
                return option
        of_kind = [option for option in self.options if option.kind == selected]
        return of_kind[0] if len(of_kind) == 1 else None


class QuestionAction(StrEnum):
    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


class Answer(Value):
    question_id: str
    selected: list[str] = []
    text: str | None = None


class HostResponse(Value):
    """The host's answer to one request.

    A tool call is answered by `content` and `is_error`; an approval by `selected_option`, with `reason` and
    `updated_arguments_json` where it applies; a question by `action` and `answers`.
    """

    request_id: str
    content: list[ContentBlock] = []
    structured_content_json: str | None = None
    is_error: bool = False
    selected_option: str | None = None
    updated_arguments_json: str | None = None
    answers: list[Answer] = []
    action: Annotated[QuestionAction | str | None, OPEN] = None
    reason: str | None = None


class RequestOutcome(StrEnum):
    """`refused`: an approval denied or a question declined. A tool result with `is_error` is `answered`."""

    ANSWERED = "answered"
    REFUSED = "refused"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"
    CANCELLED = "cancelled"
    LOST = "lost"


class AnsweredBy(StrEnum):
    HOST = "host"
    POLICY = "policy"
    DEADLINE = "deadline"
    PEER = "peer"


class OpenRequest(Value):
    """A waiting request with the rest of its identity, as the directory lists it."""

    conversation_id: str
    turn_id: str
    request: HostRequest
