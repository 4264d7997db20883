"""What the tools take and give: the parameters of the contract's operations, by their names."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field

from harness.contract.content import ContentBlock
from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostResponse
from harness.contract.tools import ToolSourceDescriptor
from harness.contract.value import Value

MAX_WAIT_MS = 60_000


class Arguments(Value):
    """The arguments of one tool. Values inside are read generously, but an argument nobody knows is a mistake."""

    model_config = ConfigDict(extra="forbid")


class NoArguments(Arguments):
    """Nothing."""


class OptionsArguments(Arguments):
    options: ConversationOptions = ConversationOptions()


class ConversationArguments(Arguments):
    conversation_id: str


class TurnArguments(ConversationArguments):
    turn_id: str


class MessageArguments(ConversationArguments):
    content: Annotated[list[ContentBlock], Field(min_length=1)]
    options: TurnOptions | None = None


class PollArguments(TurnArguments):
    since_sequence_no: Annotated[int, Field(ge=0)] = 0
    """The number of the last item you have; 0 for none."""
    max_wait_ms: Annotated[int, Field(ge=0)] = 0
    """How long to wait for something newer; at most 60000."""
    max_items: Annotated[int, Field(ge=1)] = 1000


class ResponsesArguments(TurnArguments):
    responses: list[HostResponse]


class SourcesArguments(ConversationArguments):
    sources: list[ToolSourceDescriptor]


class PolicyArguments(ConversationArguments):
    policy: RequestPolicy
