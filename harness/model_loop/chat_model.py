"""The port of the model loop: one model call. A connector for a bare model implements `ChatModel` and nothing else.

Neutral words on both sides: what the model is told (`ModelRequest`), what it says while it speaks (`Heard`), and what
it has said (`ModelAnswer`). A vendor's JSON stays in the connector.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from harness.contract.content import ContentBlock
from harness.contract.options import Effort, ToolMode
from harness.contract.output import StopReason
from harness.contract.requests import HostRequest, HostResponse
from harness.contract.tools import ToolDescriptor
from harness.contract.usage import UsageInfo
from harness.contract.value import JsonValue
from harness.errors import ProviderError
from harness.turn.events import OutputProduced


@dataclass(frozen=True, slots=True)
class CallMade:
    """A tool call of the model. Without an id, or with one that was there before, the loop makes one up."""

    call_id: str
    tool_name: str
    arguments_json: str
    """The provider's text where the wire carries text, else compact JSON; it need not be JSON."""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of an answer; `phase` only where the provider tells it."""

    text: str
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class UserMessage:
    content: tuple[ContentBlock, ...]


@dataclass(frozen=True, slots=True)
class AssistantMessage:
    """What a model said earlier. `native` is what its connector gave for passing back verbatim; `origin` says which.

    The ids in `calls` are unique; where they differ from those in `native`, `calls` counts.
    """

    said: tuple[Said, ...]
    calls: tuple[CallMade, ...] = ()
    native: JsonValue = None
    origin: str | None = None


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The one result of a call, as the model shall see it."""

    call_id: str
    tool_name: str
    content: tuple[ContentBlock, ...]
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolMessage:
    """All results of a round, in the order of its calls; then the answers to what else the answer asked the host."""

    results: tuple[ToolOutcome, ...]
    decisions: tuple[tuple[HostRequest, HostResponse], ...] = ()


HistoryEntry: TypeAlias = UserMessage | AssistantMessage | ToolMessage


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. `tools` are those on offer now; a mode that cannot be honoured is `NotSupported`."""

    model: str | None
    system: str
    messages: tuple[HistoryEntry, ...]
    tools: tuple[ToolDescriptor, ...] = ()
    tool_mode: ToolMode = ToolMode.AUTO
    effort: Effort | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    output_schema_json: str | None = None
    is_cut: bool = False
    """Older parts are left out or shortened: what a provider keeps of the conversation is something else."""
    estimated_tokens: int = 0
    """Our calibrated guess of the prompt's size."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A whole answer. Calls that were cut off are left out, and `stop` says `max_tokens`."""

    said: tuple[Said, ...] = ()
    calls: tuple[CallMade, ...] = ()
    asks: tuple[HostRequest, ...] = ()
    """Approvals and questions of the provider's own tools; they are answered together with the calls."""
    stop: StopReason = StopReason.END_TURN
    usage: UsageInfo | None = None
    native: JsonValue = None
    must_continue: bool = False
    """The provider paused: the loop calls again with this answer in the history."""


class Heard(Protocol):
    """What the loop hears while the model speaks. Sync, never blocks; each call is shown at once."""

    def one_read(self) -> AbstractContextManager[None]:
        """What is heard meanwhile came in one read of the wire and is shown together."""
        ...

    def text(self, text: str, message: int = 0) -> None:
        """A piece of the answer's message with that number."""
        ...

    def thinking(self, text: str) -> None: ...

    def show(self, *events: OutputProduced) -> None:
        """Activity of the provider's own tools, and notices."""
        ...

    def unknown(self, kind: str) -> None:
        """Something the connector does not know: one notice per kind and turn."""
        ...

    def raw(self, direction: str, text: str) -> None:
        """The wire's text; shown with `output_detail: raw` only."""
        ...


class MalformedAnswer(ProviderError):
    """The provider could not read what its model wrote. Nothing was executed: the call may be repeated.

    It has no code of its own, so on every wire it is a `provider_error`.
    """


class ChatModel(Protocol):
    """A model behind one vendor's wire. Cancelling `answer` closes the connection, so that the provider stops."""

    @property
    def origin(self) -> str:
        """Which connector and mode gave a `native`; another's is not passed back."""
        ...

    @property
    def context_window(self) -> int | None:
        """Tokens of prompt and answer together, where known; may become known by an overflow."""
        ...

    async def answer(self, request: ModelRequest, heard: Heard) -> ModelAnswer:
        """One model call, from the request to the provider's end of the answer.

        Raises:
            ContextOverflow: the provider refused the prompt as too long.
            ProviderError: it refused or failed; a stream without its end is reason `network`.
            NotSupported: it cannot honour the request; nothing was sent.
        """
        ...


def text_said(said: Sequence[Said]) -> str:
    """The messages of an answer as one text."""
    return "\n".join(one.text for one in said if one.text)
