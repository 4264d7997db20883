"""The port of a tool source, and what a tool gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from harness.contract.content import ContentBlock, TextBlock
from harness.contract.tools import ToolCall, ToolDescriptor
from harness.orchestrator.refusals import Refusal, RefusalKind
from harness.orchestrator.tool_context import ToolContext


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of one call as the model shall see it; a failure is data (`is_error`), never an exception."""

    content: Sequence[ContentBlock] = field(default_factory=list[ContentBlock])
    is_error: bool = False
    structured_content_json: str | None = None
    refusal: Refusal | None = None
    """Set when the tool was not run."""


@runtime_checkable
class ToolProvider(Protocol):
    """Where tools come from. One with connections or processes is an async context manager that its owner enters."""

    @property
    def label(self) -> str:
        """For messages: "tools.py", "MCP server 'github'"."""
        ...

    async def list_tools(self) -> Sequence[ToolDescriptor]:
        """Asked once per registry: the list is frozen for the conversation."""
        ...

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """Runs one of its tools; the arguments fit the schema. Cancelled when nobody waits for the result any more."""
        ...


def failure(text: str, refused: RefusalKind | None = None) -> ToolOutcome:
    """An error result; `refused` says that the tool was not run, and why."""
    refusal = None if refused is None else Refusal(refused, text)
    return ToolOutcome([TextBlock(text=without_surrogates(text))], is_error=True, refusal=refusal)


def without_surrogates(text: str) -> str:
    """Unpaired surrogates cannot leave as text: they become U+FFFD (contract 4)."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
