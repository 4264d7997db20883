"""What the connector can do with these options and this version of the CLI. Pure."""

from __future__ import annotations

from bridge_mcp.mapping import MAX_RESULT_CHARS
from connectors.claude.argv import MAX_CALL_WAIT_MS
from connectors.claude.config import ClaudeOptions
from connectors.claude.prompt import DOCUMENT_TYPES
from connectors.claude.questions import ASK_TOOL
from connectors.claude.turn_shape import INSTRUCTIONS, TURN_OPTIONS
from connectors.claude.versions import TESTED, Version, features_of, version_text
from harness.contract.capabilities import (
    CallIds,
    Denial,
    InnerVersion,
    LlmCapabilities,
    Parallel,
    ResultOrder,
    Resume,
    SeedHistory,
    Streaming,
    StructuredOutput,
    ToolErrorFlag,
)
from harness.contract.options import ConversationOptions
from harness.contract.requests import RequestKind
from harness.contract.tools import ToolSourceKind

_INTERNAL_TOOLS = (
    *("Agent", ASK_TOOL, "Bash", "Edit", "Glob", "Grep", "NotebookEdit", "Read", "TaskCreate", "TaskGet", "TaskList"),
    *("TaskStop", "TaskUpdate", "WebFetch", "WebSearch", "Write"),
)
_BARE_TOOLS = ("Bash", "Edit", "Read")


def capabilities_of(options: ConversationOptions, claude: ClaudeOptions, version: Version) -> LlmCapabilities:
    features = features_of(version)
    asks = claude.permission_prompts == "host"
    questions = asks and not claude.bare
    internal_tools = [name for name in (_BARE_TOOLS if claude.bare else _INTERNAL_TOOLS)]
    if not questions and ASK_TOOL in internal_tools:
        internal_tools.remove(ASK_TOOL)
    return LlmCapabilities(
        supports_tools=True,
        supports_parallel_tool_calls=True,
        routable_request_kinds=[
            RequestKind.TOOL_CALL,
            *([RequestKind.APPROVAL] if asks else []),
            *([RequestKind.USER_QUESTION] if questions else []),
        ],
        delegatable_tool_sources=[ToolSourceKind.MCP_STDIO, ToolSourceKind.MCP_HTTP],
        supports_request_policy_delegation=True,
        reports_delegated_calls=True,
        parallel=Parallel.READ_ONLY,
        resume=Resume.CONTINUED,
        seed_history=SeedHistory.AS_TEXT,
        denial=Denial.CONTINUES,
        result_order=ResultOrder.COMPLETION,
        call_ids=CallIds.EXACT,
        tool_error_flag=ToolErrorFlag.KEPT,
        images_in_prompt=True,
        images_in_tool_results=True,
        documents_in_prompt=list(DOCUMENT_TYPES),
        max_result_chars=MAX_RESULT_CHARS,
        max_call_wait_ms=MAX_CALL_WAIT_MS,
        structured_output=StructuredOutput.TURN,
        internal_tools=internal_tools,
        web_search="WebSearch" in options.internal_tools,
        streaming=Streaming.TOKEN,
        turn_options=sorted([*TURN_OPTIONS, *([INSTRUCTIONS] if features.takes_new_system_prompt else [])]),
        fork=features.writes_at_once,
        reports_usage=True,
        reports_cost=True,
        inner=InnerVersion(name="claude-code", version=version_text(version), tested=version in TESTED),
    )
