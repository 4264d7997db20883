"""The tool `ask`: one message, a whole turn, one answer."""

from __future__ import annotations

import json
from typing import Annotated

import anyio
import mcp_types as types
from pydantic import Field

from harness.contract.options import ConversationOptions, Effort, TurnOptions
from harness.contract.output import ErrorInfo, StopReason, TurnStatus
from harness.contract.usage import UsageInfo
from harness.contract.value import OPEN, Value
from harness.errors import Internal, InvalidArgument, unwrapped
from harness.orchestrator.approvals import Approver
from harness.orchestrator.completion import Call, Completion, error_of
from harness.orchestrator.run import run_to_completion
from harness.surfaces.call import OwnedLLM
from harness.surfaces.mcp_server.arguments import Arguments
from harness.surfaces.mcp_server.progress import Progress
from harness.surfaces.mcp_server.tools import described, error_result, plain

ASK = "ask"
_AT_THE_BEGINNING = ("connector", "system_prompt", "internal_tools")


class AskArguments(Arguments):
    message: Annotated[str, Field(min_length=1)]
    """What to say."""
    conversation_id: str | None = None
    """Goes on with this conversation, as an earlier answer named it; without it a new one begins."""
    connector: str | None = None
    """Who answers, for a new conversation; by default the server's first."""
    model: str | None = None
    effort: Effort | None = None
    system_prompt: str | None = None
    """For a new conversation."""
    internal_tools: list[str] | None = None
    """Tools of the agent's own that it may use, for a new conversation; what needs leave is still asked about."""


class AskAnswer(Value):
    """What a turn came to."""

    text: str = ""
    conversation_id: str
    """To go on with."""
    turn_id: str | None = None
    status: Annotated[TurnStatus | str, OPEN]
    stop_reason: Annotated[StopReason | str | None, OPEN] = None
    usage: UsageInfo | None = None
    calls: list[Call] = []
    """What the agent asked for (approvals and questions), and what became of it."""
    duration_ms: int
    error: ErrorInfo | None = None


def ask_tool(connectors: list[str]) -> types.Tool:
    return described(
        ASK,
        f"Ask an agent and wait for its answer. Agents here: {', '.join(connectors)}. The answer names its "
        "conversation_id; give it with the next message to go on with the same conversation.",
        AskArguments,
        AskAnswer,
        annotations=types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    )


async def answer(
    llm: OwnedLLM, given: AskArguments, defaults: ConversationOptions, approver: Approver, progress: Progress
) -> types.CallToolResult:
    """Runs the turn to its end; cancelling this cancels the turn.

    Raises:
        HarnessError: a call broke. A failed turn is a result with `is_error`.
    """
    turn_options = None
    if given.conversation_id is None:
        conversation_id = await llm.begin_conversation(_options(given, defaults))
    else:
        conversation_id, turn_options = given.conversation_id, _turn_options(given)
    completion: Completion | None = None
    with unwrapped():
        async with anyio.create_task_group() as group:
            group.start_soon(progress.beat)
            completion = await run_to_completion(
                llm,
                given.message,
                conversation_id=conversation_id,
                turn_options=turn_options,
                approver=approver,
                on_line=progress.see,
            )
            group.cancel_scope.cancel()
    if completion is None:
        raise Internal("the ask ended without a completion")
    return _result(completion, conversation_id)


def _options(given: AskArguments, defaults: ConversationOptions) -> ConversationOptions:
    """The server's own options, where the client says nothing else."""
    typed = given.model_dump(include={*_AT_THE_BEGINNING, "model", "effort"}, exclude_none=True)
    return defaults.model_copy(update=typed)


def _turn_options(given: AskArguments) -> TurnOptions | None:
    for name in _AT_THE_BEGINNING:
        if getattr(given, name) is not None:
            raise InvalidArgument(f"'{name}': a conversation keeps what it was begun with; begin a new one for another")
    if given.model is None and given.effort is None:
        return None
    return TurnOptions(model=given.model, effort=given.effort)


def _result(completion: Completion, conversation_id: str) -> types.CallToolResult:
    done = AskAnswer(
        text=completion.content or "",
        conversation_id=conversation_id,
        turn_id=completion.turn_id,
        status=completion.status,
        stop_reason=completion.stop_reason,
        usage=completion.usage,
        calls=[call.shortened() for call in completion.calls],
        duration_ms=completion.duration_ms,
        error=completion.error,
    )
    _, structured = plain(done)
    blocks: list[types.ContentBlock] = [types.TextContent(text=structured["text"])] if done.text else []
    # models of some clients see the texts only
    rest = {name: structured[name] for name in ("conversation_id", "stop_reason", "usage") if name in structured}
    blocks.append(types.TextContent(text=json.dumps(rest, separators=(",", ":"))))
    if completion.error is None:
        return types.CallToolResult(content=blocks, structured_content=structured)
    failed = error_result(error_of(completion.error))
    return failed.model_copy(update={"content": [*failed.content, *blocks], "structured_content": structured})
