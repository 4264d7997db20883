"""`run_to_completion`: one message, every tool call run, every request answered, one `Completion`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, cast

import anyio

from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions, TurnOptions
from harness.orchestrator.approvals import Answers, ApprovalMode, Approver
from harness.orchestrator.caller import Caller
from harness.orchestrator.completion import Completion
from harness.orchestrator.conversation import MessageContent, OnItem, OnLine
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.opening import open_conversation
from harness.orchestrator.tool_registry import ToolRegistry, ToolSource
from harness.policy import Policy


async def run_to_completion(
    llm: ConversationalLLM,
    message: MessageContent | None = None,
    *,
    tools: Iterable[ToolSource] | ToolRegistry = (),
    approver: Approver | ApprovalMode | str = ApprovalMode.DENY,
    answers: Answers | None = None,
    policy: Policy | RequestPolicy | None = None,
    delegate_policy: bool = False,
    servers: Sequence[McpServer] = (),
    inside: Caller | None = None,
    options: ConversationOptions | None = None,
    turn_options: TurnOptions | None = None,
    conversation_id: str | None = None,
    turn_id: str | None = None,
    output_type: Any = None,
    on_item: OnItem | None = None,
    on_line: OnLine | None = None,
    stop: anyio.Event | None = None,
    check: bool = False,
) -> Completion:
    """Runs a turn against any `ConversationalLLM`, in a conversation of its own unless `conversation_id` names one.

    `turn_id` takes up a turn that runs already, in place of a message. `answers` are for questions, known beforehand;
    what they leave open is the approver's, and so is every approval that the `policy` does not decide (contract 4; with
    `delegate_policy` the peer is given what it can keep exactly). MCP `servers` are run here or by the peer, as their
    routing says. What runs `inside` of another run keeps that one's policy. `output_type` asks for an object of that
    type (`Completion.structured_output`), with one round of repair. `stop` cancels the turn when it is set; cancelling
    this call cancels the turn too.

    Raises:
        HarnessError: a call broke. A failed turn is a `Completion` with `error`, and raises only with `check`.
    """
    async with open_conversation(
        llm,
        tools=tools,
        options=options,
        approver=approver,
        answers=answers,
        policy=policy,
        delegate_policy=delegate_policy,
        servers=servers,
        inside=inside,
        output_type=output_type,
        conversation_id=conversation_id,
    ) as conversation:
        return await conversation.ask(
            message,
            turn_options=turn_options,
            turn_id=turn_id,
            output_type=output_type,
            on_item=on_item,
            on_line=on_line,
            stop=stop,
            check=check,
        )


def run_to_completion_sync(
    llm: ConversationalLLM | AbstractAsyncContextManager[ConversationalLLM],
    message: MessageContent | None = None,
    **arguments: Any,
) -> Completion:
    """`run_to_completion` for code without an event loop; what has to be opened, such as a harness, is opened here."""

    async def run() -> Completion:
        async with AsyncExitStack() as stack:
            opened: Any = llm
            if isinstance(llm, AbstractAsyncContextManager):
                opened = await stack.enter_async_context(cast(AbstractAsyncContextManager[Any], llm))
            return await run_to_completion(opened, message, **arguments)

    return anyio.run(run)
