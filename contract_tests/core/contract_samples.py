"""One full value of every kind that travels, for tests that ask something of all of them."""

from typing import Any

from harness.contract import (
    Answer,
    ArgumentPattern,
    AudioBlock,
    ConversationExport,
    ConversationInfo,
    ConversationOptions,
    Delegation,
    Effort,
    ErrorInfo,
    HistoryMessage,
    HistoryRole,
    HostRequest,
    HostResponse,
    ImageBlock,
    InnerVersion,
    InternalToolFinished,
    InternalToolStarted,
    ItemDiscarded,
    Label,
    Limits,
    LlmCapabilities,
    Message,
    ModelUsage,
    Notice,
    OpenRequest,
    Plan,
    PlanEntry,
    PolicyRule,
    Question,
    QuestionOption,
    Raw,
    RequestOpened,
    RequestOption,
    RequestPolicy,
    RequestResolved,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    TextDelta,
    ThinkingDelta,
    Timeouts,
    ToolCall,
    ToolDescriptor,
    ToolMode,
    ToolResult,
    ToolSourceDescriptor,
    TurnEnded,
    TurnOptions,
    TurnState,
    TurnTranscript,
    UnknownBlock,
    UnknownItem,
    Usage,
    UsageInfo,
    Value,
)

BLOCKS: list[Any] = [
    TextBlock(
        text="Grüße \N{GREEK SMALL LETTER OMEGA} \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")
    ),
    ImageBlock(data="AAAA", media_type="image/png"),
    AudioBlock(data="AAAA", media_type="audio/wav"),
    ResourceBlock(uri="file:///a", media_type="text/plain", text="a", data=None),
    ResourceLinkBlock(uri="file:///b", name="b", title="B", description="the b", media_type="text/plain"),
    UnknownBlock.model_validate({"type": "smell", "notes": {"top": ["lemon"]}}),
]
FIGURES = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 3, "cost_usd": 0.25, "model_calls": 1}
USAGE = UsageInfo.model_validate({**FIGURES, "by_model": [ModelUsage.model_validate({"model": "m", **FIGURES})]})
ERROR = ErrorInfo(code="peer_lost", message="gone", retryable=True, detail_json='{"exit_code":-9}')
REQUEST = HostRequest(
    request_id="a1",
    kind="approval",
    call_id="toolu_1",
    peer_request_id="7",
    order=0,
    tool_name="Bash",
    arguments_json='{"command":"ls"}',
    options=[RequestOption(id="yes", kind="allow_once", label="Yes", description="this time")],
    questions=[Question(id="q", text="Why?", options=[QuestionOption(id="o", label="O")], multi_select=True)],
    opened_at=1,
    expires_at=2,
)
ITEMS: list[Any] = [
    TextDelta(sequence_no=1, at=0, item_id="m", text="a"),
    ThinkingDelta(sequence_no=2, at=0, parent_call_id="sub", text="b"),
    Message(sequence_no=3, at=0, content=BLOCKS, phase="final"),
    ItemDiscarded(sequence_no=4, at=0, item_id="m", reason="restarted"),
    RequestOpened(sequence_no=5, at=0, request=REQUEST),
    RequestResolved(sequence_no=6, at=0, request_id="a1", outcome="refused", answered_by="host"),
    InternalToolStarted(sequence_no=7, at=0, call_id="c", tool_name="Bash", arguments_json="{}", source="git"),
    InternalToolFinished(sequence_no=8, at=0, call_id="c", result="ok", result_text="x", truncated=True, duration_ms=1),
    Plan(sequence_no=9, at=0, entries=[PlanEntry(text="first", status="in_progress")]),
    Usage(sequence_no=10, at=0, usage=USAGE),
    Notice(sequence_no=11, at=0, code="retry", text="again"),
    Raw(sequence_no=12, at=0, channel="stdout", direction="in", text="{}"),
    UnknownItem.model_validate({"kind": "hologram", "sequence_no": 13, "at": 0, "beams": [1, 2]}),
    TurnEnded(sequence_no=14, at=0, status="failed", stop_reason="error", error=ERROR),
]
TOOL = ToolDescriptor(name="look", description="Looks.", input_schema_json='{"type":"object"}', read_only=True)
OPTIONS = ConversationOptions(
    connector="claude:bridge",
    model="m",
    tools=[TOOL],
    history=[
        HistoryMessage(
            role=HistoryRole.ASSISTANT, tool_calls=[ToolCall(call_id="c", tool_name="look", arguments_json="{}")]
        ),
        HistoryMessage(role=HistoryRole.USER, tool_results=[ToolResult(call_id="c", content=BLOCKS, is_error=True)]),
    ],
    limits=Limits(max_turns=3, cost_budget_usd=0.5),
    timeouts=Timeouts(tool_ms=1, approval_ms=None),
    effort=Effort.EXTRA_HIGH,
    labels=[Label(name="team", value="a")],
    connector_options_json="{}",
)
RULE = PolicyRule(
    tool="Bash*", kind="approval", arguments=[ArgumentPattern(name="command", pattern="git *")], reason="r"
)
POLICY = RequestPolicy(mode="read_only", deny=[RULE], questions="decline")
SOURCE = ToolSourceDescriptor(name="git", kind="mcp_stdio", command="git-mcp", env=[Label(name="A", value="b")])
INFO = ConversationInfo(conversation_id="c_1", state="open", connector="fake", created_at=0, updated_at=1)

SAMPLES: list[Value] = [
    *BLOCKS,
    *ITEMS,
    TurnState(
        status="failed",
        stop_reason="error",
        sequence_no=14,
        new_output_items=ITEMS,
        pending_requests=[REQUEST],
        usage=USAGE,
        conversation_usage=USAGE,
        last_activity_at=3,
        started_at=0,
        ended_at=3,
        error=ERROR,
    ),
    HostResponse(request_id="a1", content=BLOCKS, selected_option="yes", answers=[Answer(question_id="q", text="so")]),
    OPTIONS,
    TurnOptions(client_key="k", tool_names=[], tool_mode=ToolMode.ONE, temperature=0.5, instructions="Be brief."),
    POLICY,
    Delegation(tool_sources=[SOURCE], request_policy=POLICY),
    LlmCapabilities(resume="exact", routable_request_kinds=["tool_call"], inner=InnerVersion(name="x", version="1")),
    INFO,
    OpenRequest(conversation_id="c_1", turn_id="t1", request=REQUEST),
    ConversationExport(conversation=INFO, turns=[TurnTranscript(turn_id="t1", content=BLOCKS, items=ITEMS)]),
]
