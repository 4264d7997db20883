"""What a scripted peer can do, one step at a time. A step is a mapping; the member that names it says which it is."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Discriminator, Field, JsonValue, NonNegativeFloat, Tag

from connectors.fake.parts import (
    Death,
    Pieces,
    Scripted,
    ScriptedApproval,
    ScriptedCall,
    ScriptedError,
    ScriptedInternalTool,
    ScriptedNotice,
    ScriptedQuestion,
    ScriptedRaw,
    Style,
)
from harness.contract.content import ContentBlock, as_content
from harness.contract.output import PlanEntry, StopReason
from harness.contract.usage import UsageInfo


class _Raises(Scripted):
    wait: bool = True
    """Whether the peer goes on only when all requests of the step are resolved."""
    style: Style | None = None


class CallsStep(_Raises):
    """A round: the calls of one model message, opened together."""

    calls: tuple[ScriptedCall, ...] = Field(min_length=1)


class ApprovalStep(_Raises):
    approval: ScriptedApproval


class QuestionStep(_Raises):
    question: ScriptedQuestion


class WaitStep(Scripted):
    """Until these requests are resolved, named by call id or the peer's id; `all` for every open one."""

    wait: Literal["all"] | tuple[str, ...]


class WithdrawStep(Scripted):
    """The peer no longer waits for this request."""

    withdraw: str


class TextStep(Scripted):
    """Streamed text; it may quote `{{results.<call id>}}`, the text that the peer received for that call."""

    text: Pieces
    item_id: str | None = None
    parent_call_id: str | None = None


class ThinkingStep(Scripted):
    thinking: Pieces
    item_id: str | None = None
    parent_call_id: str | None = None


def _as_content(value: Any) -> Any:
    return as_content(value) if isinstance(value, str) else value


class MessageStep(Scripted):
    """A whole message: a text, which may quote like streamed text, or content blocks."""

    message: Annotated[tuple[ContentBlock, ...], BeforeValidator(_as_content)]
    phase: str | None = None
    item_id: str | None = None
    parent_call_id: str | None = None


class DiscardStep(Scripted):
    """The peer restarts a message: what was streamed under this item id does not count."""

    discard: str
    reason: str = "restarted"


class InternalToolStep(Scripted):
    internal_tool: ScriptedInternalTool


class PlanStep(Scripted):
    plan: tuple[PlanEntry, ...]


class UsageStep(Scripted):
    usage: UsageInfo


class NoticeStep(Scripted):
    notice: ScriptedNotice


class RawStep(Scripted):
    """Raw traffic, shown when the conversation asked for it."""

    raw: ScriptedRaw


class DelayStep(Scripted):
    delay_seconds: NonNegativeFloat


class UntilStep(Scripted):
    """For scripts in Python: goes on when this event (an `anyio.Event`) is set."""

    until: Any


class ErrorStep(Scripted):
    error: ScriptedError


def _as_death(value: Any) -> Any:
    return {"when": value} if isinstance(value, str) else {} if value is True else value


class DieStep(Scripted):
    die: Annotated[Death, BeforeValidator(_as_death)]


class HangStep(Scripted):
    """Nothing more happens until the peer is interrupted."""

    hang: Literal[True]


class EndStep(Scripted):
    """The peer's end of the turn. What follows in the script is a late event of a finished turn."""

    end: StopReason
    structured_output: JsonValue = None
    """What the turn's schema asked for; null means none."""

    @property
    def structured_output_json(self) -> str | None:
        return None if self.structured_output is None else json.dumps(self.structured_output, ensure_ascii=False)


_STEPS: dict[str, type[Scripted]] = {
    "calls": CallsStep,
    "approval": ApprovalStep,
    "question": QuestionStep,
    "withdraw": WithdrawStep,
    "text": TextStep,
    "thinking": ThinkingStep,
    "message": MessageStep,
    "discard": DiscardStep,
    "internal_tool": InternalToolStep,
    "plan": PlanStep,
    "usage": UsageStep,
    "notice": NoticeStep,
    "raw": RawStep,
    "delay_seconds": DelayStep,
    "until": UntilStep,
    "error": ErrorStep,
    "die": DieStep,
    "hang": HangStep,
    "end": EndStep,
    "wait": WaitStep,  # last: `wait` is also a member of the steps that raise requests
}
STEP_NAMES = tuple(_STEPS)


def _step_tag(value: Any) -> str | None:
    names = type(value).model_fields if isinstance(value, Scripted) else cast(Collection[object], value)
    return next((name for name in _STEPS if name in names), None)


Step: TypeAlias = Annotated[
    Annotated[CallsStep, Tag("calls")]
    | Annotated[ApprovalStep, Tag("approval")]
    | Annotated[QuestionStep, Tag("question")]
    | Annotated[WithdrawStep, Tag("withdraw")]
    | Annotated[TextStep, Tag("text")]
    | Annotated[ThinkingStep, Tag("thinking")]
    | Annotated[MessageStep, Tag("message")]
    | Annotated[DiscardStep, Tag("discard")]
    | Annotated[InternalToolStep, Tag("internal_tool")]
    | Annotated[PlanStep, Tag("plan")]
    | Annotated[UsageStep, Tag("usage")]
    | Annotated[NoticeStep, Tag("notice")]
    | Annotated[RawStep, Tag("raw")]
    | Annotated[DelayStep, Tag("delay_seconds")]
    | Annotated[UntilStep, Tag("until")]
    | Annotated[ErrorStep, Tag("error")]
    | Annotated[DieStep, Tag("die")]
    | Annotated[HangStep, Tag("hang")]
    | Annotated[EndStep, Tag("end")]
    | Annotated[WaitStep, Tag("wait")],
    Discriminator(_step_tag, custom_error_type="unknown_step", custom_error_message="is no step"),
]
Steps: TypeAlias = tuple[Step, ...]
