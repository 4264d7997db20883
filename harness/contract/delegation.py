"""What a host hands to the peer: tool sources it may use itself, and decisions it may take itself."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from harness.contract.tools import ToolSourceDescriptor
from harness.contract.value import OPEN, Value


class PolicyMode(StrEnum):
    DEFAULT = "default"
    READ_ONLY = "read_only"
    ACCEPT_EDITS = "accept_edits"
    DONT_ASK = "dont_ask"
    BYPASS = "bypass"


class QuestionPolicy(StrEnum):
    ROUTE = "route"
    DECLINE = "decline"


class ArgumentPattern(Value):
    name: str
    pattern: str


class PolicyRule(Value):
    """`Tool(pattern)` is its short text form; `tool` is a glob."""

    tool: str = "*"
    kind: str | None = None
    connector: str | None = None
    arguments: list[ArgumentPattern] = []
    reason: str | None = None


class RequestPolicy(Value):
    """Never widens what the host allows; what no rule covers still arrives as a request."""

    mode: Annotated[PolicyMode | str, OPEN] = PolicyMode.DEFAULT
    deny: list[PolicyRule] = []
    ask: list[PolicyRule] = []
    allow: list[PolicyRule] = []
    questions: Annotated[QuestionPolicy | str, OPEN] = QuestionPolicy.ROUTE


class Delegation(Value):
    tool_sources: list[ToolSourceDescriptor] = []
    request_policy: RequestPolicy | None = None
