"""The lines of `--output jsonl`: what a run sees and does, as it happens."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator

from harness.contract.output import OutputItem
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.value import Value
from harness.orchestrator.completion import Completion
from harness.orchestrator.routing import Route


class StartedLine(Value):
    """A turn begins. The first line of a run; again before a repair of structured output."""

    type: Literal["started"] = "started"
    conversation_id: str
    turn_id: str


class SourceLine(Value):
    """Who runs a tool source, and why: before the first line of a conversation's first run."""

    type: Literal["source"] = "source"
    source: str
    route: Route
    reason: str


class ItemLine(Value):
    """An item of the turn's stream, as on the native wire."""

    type: Literal["item"] = "item"
    item: OutputItem


class RequestLine(Value):
    """This host takes up a request."""

    type: Literal["request"] = "request"
    request: HostRequest


class ResponseLine(Value):
    """This host answers a request."""

    type: Literal["response"] = "response"
    response: HostResponse
    suspicious: list[str] = []
    """What in a tool's result looks as if it wanted to give the model orders; the result is passed on all the same."""


class ProgressLine(Value):
    """A tool of this host tells how far it is: `done` of `total`, in whatever unit it counts."""

    type: Literal["progress"] = "progress"
    request_id: str
    done: float
    total: float | None = None
    message: str | None = None


class FinishedLine(Completion):
    type: Literal["finished"] = "finished"


class FailedLine(Completion):
    """The run failed or was cancelled: the error shape."""

    type: Literal["failed"] = "failed"


Line: TypeAlias = Annotated[
    SourceLine | StartedLine | ItemLine | RequestLine | ProgressLine | ResponseLine | FinishedLine | FailedLine,
    Discriminator("type"),
]


def last_line(completion: Completion) -> FinishedLine | FailedLine:
    """`finished`, or `failed` where there is an error."""
    kind = FinishedLine if completion.error is None else FailedLine
    return kind(**{name: getattr(completion, name) for name in Completion.model_fields})
