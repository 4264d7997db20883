"""What a run came to: the members of `--output json`."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated, Any

from pydantic import field_serializer
from pydantic_core import to_jsonable_python

from harness.contract.content import ContentBlock
from harness.contract.output import ErrorInfo, StopReason, TurnStatus
from harness.contract.requests import RequestKind
from harness.contract.usage import UsageInfo
from harness.contract.value import OPEN, JsonValue, Value
from harness.errors import HarnessError, from_code
from harness.orchestrator.refusals import RefusalKind

SHOWN_ARGUMENT_CHARS = 300


class CallOutcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    """Answered with an error, or a tool call that ran into its deadline."""
    REFUSED = "refused"
    """Denied, declined, or an approval that nobody gave in time."""
    UNKNOWN = "unknown"
    """Withdrawn, cancelled, lost or still open: whether it took effect nobody knows."""


class Call(Value):
    """One request of the peer and what became of it. `arguments` is JSON text."""

    request_id: str
    call_id: str | None = None
    kind: Annotated[RequestKind | str, OPEN]
    tool: str | None = None
    arguments: str | None = None
    outcome: CallOutcome
    refusal_kind: RefusalKind | None = None
    refusal: str | None = None
    duration_ms: int | None = None
    result: list[ContentBlock] | None = None
    """What was answered; only written with `--full`."""

    def shortened(self) -> Call:
        """Without results, and with the start of long arguments."""
        arguments = self.arguments
        if arguments is not None and len(arguments) > SHOWN_ARGUMENT_CHARS:
            arguments = arguments[: SHOWN_ARGUMENT_CHARS - 3] + "..."
        return self.model_copy(update={"arguments": arguments, "result": None})


class Completion(Value):
    """The end of a run. A failed or cancelled one has `error` and `exit_code`, and whatever exists of the rest.

    `usage` and `calls` are those of all turns of the run: a repair of structured output is a turn of its own.
    """

    content: str | None = None
    status: Annotated[TurnStatus | str, OPEN]
    stop_reason: Annotated[StopReason | str | None, OPEN] = None
    conversation_id: str | None = None
    turn_id: str | None = None
    usage: UsageInfo | None = None
    structured_output: JsonValue = None
    """Any JSON value; in Python an object of the type that was asked for."""
    calls: list[Call] = []
    tool_calls: int = 0
    failed_tool_calls: int = 0
    refused_tool_calls: int = 0
    thinking: str | None = None
    duration_ms: int
    error: ErrorInfo | None = None
    exit_code: int | None = None

    @field_serializer("structured_output", when_used="json")
    def _plain(self, value: Any) -> JsonValue:
        # as plain JSON, so that leaving out our nulls leaves the caller's own alone
        return to_jsonable_python(value)

    def to_json(self, *, full: bool = False) -> str:
        """One line of JSON; `full` keeps long arguments and adds the results."""
        return self._shown(full).model_dump_json(exclude_none=True)

    def to_dict(self, *, full: bool = False) -> dict[str, JsonValue]:
        return self._shown(full).model_dump(mode="json", exclude_none=True)

    def raise_for_error(self) -> None:
        """Raises the turn's error, if it failed.

        Raises:
            HarnessError: of the class that the error's code stands for.
        """
        if self.status == TurnStatus.FAILED and self.error is not None:
            raise error_of(self.error)

    def _shown(self, full: bool) -> Completion:
        return self if full else self.model_copy(update={"calls": [call.shortened() for call in self.calls]})


def error_of(info: ErrorInfo) -> HarnessError:
    """The exception that an error in a stream stands for."""
    return from_code(info.code, info.message, json.loads(info.detail_json) if info.detail_json else None)


def info_of(error: HarnessError) -> ErrorInfo:
    return ErrorInfo(code=error.code, message=error.message, retryable=error.retryable, detail_json=error.detail_json)
