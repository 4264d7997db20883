"""What a conversation and a turn are asked to be."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, SerializerFunctionWrapHandler, model_serializer

from harness.contract.content import ContentBlock
from harness.contract.tools import ToolCall, ToolDescriptor, ToolResult
from harness.contract.value import OPEN, Label, Value

DEFAULT_IDLE_MS = 600_000
UNATTENDED_APPROVAL_MS = 300_000


class SystemPromptMode(StrEnum):
    REPLACE = "replace"
    APPEND = "append"


class Effort(StrEnum):
    NONE = "none"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    EXTRA_HIGH = "extra_high"


class OutputDetail(StrEnum):
    TEXT = "text"
    ACTIVITY = "activity"
    RAW = "raw"


class ToolMode(StrEnum):
    AUTO = "auto"
    NONE = "none"
    ANY = "any"
    ONE = "one"


class HistoryRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class HistoryMessage(Value):
    role: HistoryRole
    content: list[ContentBlock] = []
    tool_calls: list[ToolCall] = []
    tool_results: list[ToolResult] = []


class Limits(Value):
    """`max_turns` (model calls) and `max_output_tokens` count per turn, the budgets per conversation; null = none."""

    max_turns: Annotated[int | None, Field(ge=1)] = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    token_budget: Annotated[int | None, Field(ge=1)] = None
    cost_budget_usd: Annotated[float | None, Field(gt=0)] = None


def _zero_is_none(value: int | None) -> int | None:
    return value or None


Milliseconds: TypeAlias = Annotated[int | None, Field(ge=0), AfterValidator(_zero_is_none)]


class Timeouts(Value):
    """Milliseconds; null = none. `idle_ms` stops while a request is open; an expired approval is a denial.

    On a wire 0 means none: nulls are omitted there, and what is omitted has its default.
    """

    tool_ms: Milliseconds = None
    approval_ms: Milliseconds = UNATTENDED_APPROVAL_MS
    turn_ms: Milliseconds = None
    idle_ms: Milliseconds = DEFAULT_IDLE_MS

    @model_serializer(mode="wrap")
    def _none_is_zero(self, write: SerializerFunctionWrapHandler) -> dict[str, int | None]:
        written: dict[str, int | None] = write(self)
        for name, field in type(self).model_fields.items():
            if field.default is not None and getattr(self, name) is None:
                written[name] = 0
        return written


class ConversationOptions(Value):
    """`internal_tools` is empty by default: the peer acts as a pure LLM.

    `connector` may carry a variant that stands for options (`claude:bridge`); `connector_options_json` is validated by
    the connector's own `config.py`.
    """

    connector: str | None = None
    model: str | None = None
    system_prompt: str | None = None
    system_prompt_mode: SystemPromptMode = SystemPromptMode.REPLACE
    tools: list[ToolDescriptor] = []
    internal_tools: list[str] = []
    history: list[HistoryMessage] = []
    resume_from: str | None = None
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    cwd: str | None = None
    effort: Effort | None = None
    output_schema_json: str | None = None
    output_detail: Annotated[OutputDetail | str, OPEN] = OutputDetail.ACTIVITY
    client_key: str | None = None
    labels: list[Label] = []
    prestart: bool = False
    connector_options_json: str | None = None
    hops: list[str] = []
    """The ids of the harnesses it came through, first to last; each adds its own, callers leave it empty."""


class TurnOptions(Value):
    """A set field replaces for this turn only; what the connector cannot honour is `not_supported`."""

    client_key: str | None = None
    model: str | None = None
    tool_names: list[str] | None = None
    tool_mode: ToolMode | None = None
    effort: Effort | None = None
    temperature: Annotated[float | None, Field(allow_inf_nan=False)] = None
    max_output_tokens: Annotated[int | None, Field(ge=1)] = None
    instructions: str | None = None
    output_schema_json: str | None = None
