"""What a connector can do with given options: true for the route, mode and version that those select."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from harness.contract.requests import RequestKind
from harness.contract.tools import ToolSourceKind
from harness.contract.value import OPEN, Value


class Parallel(StrEnum):
    ALL = "all"
    READ_ONLY = "read_only"
    NONE = "none"


class Resume(StrEnum):
    EXACT = "exact"
    CONTINUED = "continued"
    NONE = "none"


class SeedHistory(StrEnum):
    EXACT = "exact"
    AS_TEXT = "as_text"
    NONE = "none"


class Denial(StrEnum):
    CONTINUES = "continues"
    ENDS_TURN = "ends_turn"


class ResultOrder(StrEnum):
    CALL = "call"
    COMPLETION = "completion"


class CallIds(StrEnum):
    EXACT = "exact"
    MATCHED = "matched"
    MADE_UP = "made_up"


class ToolErrorFlag(StrEnum):
    KEPT = "kept"
    TEXT_ONLY = "text_only"


class StructuredOutput(StrEnum):
    TURN = "turn"
    CONVERSATION = "conversation"
    NONE = "none"


class Streaming(StrEnum):
    TOKEN = "token"
    BLOCK = "block"
    NONE = "none"


class InnerVersion(Value):
    """The program or service underneath; `tested` says whether this version is in our table."""

    name: str
    version: str | None = None
    tested: bool = False


class LlmCapabilities(Value):
    supports_tools: bool = False
    supports_parallel_tool_calls: bool = False
    routable_request_kinds: list[Annotated[RequestKind | str, OPEN]] = []
    delegatable_tool_sources: list[Annotated[ToolSourceKind | str, OPEN]] = []
    supports_request_policy_delegation: bool = False
    reports_delegated_calls: bool = False
    parallel: Annotated[Parallel | str, OPEN] = Parallel.NONE
    resume: Annotated[Resume | str, OPEN] = Resume.NONE
    seed_history: Annotated[SeedHistory | str, OPEN] = SeedHistory.NONE
    denial: Annotated[Denial | str, OPEN] = Denial.CONTINUES
    result_order: Annotated[ResultOrder | str, OPEN] = ResultOrder.COMPLETION
    call_ids: Annotated[CallIds | str, OPEN] = CallIds.EXACT
    tool_error_flag: Annotated[ToolErrorFlag | str, OPEN] = ToolErrorFlag.KEPT
    images_in_prompt: bool = False
    images_in_tool_results: bool = False
    documents_in_prompt: list[str] = []
    """Media types of resource blocks that a prompt may hold."""
    max_result_chars: int | None = None
    """Characters of one tool result that pass unaltered; null: no limit known."""
    max_call_wait_ms: int | None = None
    """How long a call may park; null: no limit."""
    structured_output: Annotated[StructuredOutput | str, OPEN] = StructuredOutput.NONE
    internal_tools: list[str] = []
    web_search: bool = False
    streaming: Annotated[Streaming | str, OPEN] = Streaming.NONE
    turn_options: list[str] = []
    fork: bool = False
    reports_usage: bool = False
    reports_cost: bool = False
    inner: InnerVersion | None = None
