"""What steps are made of: calls, approvals, questions and the like, in the words of a script."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    model_validator,
)

from harness.contract.requests import OptionKind, Question, RequestOption

Style: TypeAlias = Literal["emit", "ask"]
"""How a request is raised: an event now and `deliver` later, or a task that waits in `TurnSink.ask`."""

THREE_OPTIONS = tuple(
    RequestOption(id=kind.value, kind=kind)
    for kind in (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.DENY)
)


class Scripted(BaseModel):
    """A part of a script: frozen, and unknown members are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _as_pieces(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


Pieces: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_as_pieces)]
"""Each piece arrives in a read of its own."""


class _WithArguments(Scripted):
    arguments: dict[str, JsonValue] = {}
    arguments_json: str | None = None
    """The arguments as text, passed on letter by letter."""

    @model_validator(mode="after")
    def _one_form_of_arguments(self) -> _WithArguments:
        if self.arguments and self.arguments_json is not None:
            raise ValueError("'arguments' and 'arguments_json' exclude each other: keep one")
        return self

    @property
    def arguments_text(self) -> str:
        if self.arguments_json is not None:
            return self.arguments_json
        return json.dumps(self.arguments, ensure_ascii=False, separators=(",", ":"))


class ScriptedCall(_WithArguments):
    """A tool call of the model. Ids may repeat and calls may be identical: that is what real peers do.

    A call with a `source` that was delegated is not routed: the peer runs it itself and answers with `result`.
    """

    name: str = Field(min_length=1)
    id: str | None = Field(default=None, min_length=1)
    peer_request_id: str | None = None
    order: int | None = None
    title: str | None = None
    description: str | None = None
    target: str | None = None
    read_only: bool | None = None
    parent_call_id: str | None = None
    source: str | None = None
    result: str = ""


class ScriptedApproval(_WithArguments):
    tool: str
    id: str | None = None
    """The peer's name of the request."""
    call_id: str | None = None
    """The call that waits for it: an `internal_tool` of this id is reported as refused when the approval was."""
    title: str | None = None
    description: str | None = None
    target: str | None = None
    read_only: bool | None = None
    parent_call_id: str | None = None
    options: tuple[RequestOption, ...] = THREE_OPTIONS


class ScriptedQuestion(Scripted):
    id: str | None = None
    call_id: str | None = None
    title: str | None = None
    description: str | None = None
    answer_schema_json: str | None = None
    questions: tuple[Question, ...] = Field(min_length=1)


class ScriptedInternalTool(_WithArguments):
    """A tool that the peer runs itself. With `result: null` its end is never reported."""

    name: str
    call_id: str
    source: str | None = None
    result: str | None = "ok"
    result_text: str | None = None
    delay_seconds: NonNegativeFloat = 0
    duration_ms: NonNegativeInt | None = None
    parent_call_id: str | None = None


class ScriptedNotice(Scripted):
    code: str
    text: str = ""


class ScriptedError(Scripted):
    """`code` of the table of errors; `detail` becomes the error's detail."""

    code: str
    message: str = "The script says so."
    detail: dict[str, JsonValue] = {}


class ScriptedRaw(Scripted):
    channel: str = "script"
    direction: str = "in"
    text: str


class Death(Scripted):
    """The peer is gone: `now`, or `later` when the turn has ended, so that the next turn finds it dead."""

    when: Literal["now", "later"] = "now"
    exit_code: int | None = None
    stderr: str | None = None
