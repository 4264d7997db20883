"""Opens a conversation: its tools and servers, its policy and people, and what of both the peer is handed."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio

from harness.contract.capabilities import LlmCapabilities, StructuredOutput
from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions, Timeouts
from harness.errors import HarnessError, NotSupported, PeerLost, unwrapped
from harness.orchestrator.approvals import Answers, ApprovalMode, Approver, Prepared, approver_for
from harness.orchestrator.caller import Caller, Spending
from harness.orchestrator.conversation import ConversationHandle
from harness.orchestrator.mcp_config import McpServer
from harness.orchestrator.policy_desk import Desk, Elsewhere, PolicyDesk
from harness.orchestrator.sources import open_sources
from harness.orchestrator.structured import OutputShape
from harness.orchestrator.tool_registry import ToolRegistry, ToolSource
from harness.orchestrator.turn_host import HostSide
from harness.place import place_elsewhere, place_here
from harness.policy import RESTRICTIVE, Policy, delegated

logger = logging.getLogger(__name__)

END_SECONDS = 30.0
"""How long the end of a conversation may take before it is left to the other side."""

_UNKNOWN = LlmCapabilities(images_in_tool_results=True)
"""Of a conversation that somebody else began: nothing is cut beforehand, what is rejected becomes an error result."""


@asynccontextmanager
async def open_conversation(
    llm: ConversationalLLM,
    *,
    tools: Iterable[ToolSource] | ToolRegistry = (),
    options: ConversationOptions | None = None,
    approver: Approver | ApprovalMode | str = ApprovalMode.DENY,
    answers: Answers | None = None,
    policy: Policy | RequestPolicy | None = None,
    delegate_policy: bool = False,
    servers: Sequence[McpServer] = (),
    inside: Caller | None = None,
    output_type: Any = None,
    conversation_id: str | None = None,
) -> AsyncGenerator[ConversationHandle]:
    """A conversation that is ended when this is left, or one that somebody else began and ends (`conversation_id`).

    `policy` decides what it can before the approver is asked; with `delegate_policy` a peer gets the part of it that it
    can keep to the letter. Each of the MCP `servers` is run by this host or handed to the peer (`routing`), and ended
    with the conversation. One that is `inside` of another run keeps that one's policy. `output_type` is for a connector
    that takes a schema only once, at the beginning.

    Raises:
        HarnessError: a tool that cannot be described, or the conversation cannot begin.
    """
    if inside is not None:
        policy = inside.policy
    registry = await ToolRegistry.of(tools)
    asked = approver_for(approver)
    if answers is not None:
        asked = Prepared(answers, otherwise=asked)
    begun = options or ConversationOptions()
    if registry.descriptors:
        begun = begun.model_copy(update={"tools": registry.descriptors})
    if conversation_id is not None and options is None:
        capabilities = _UNKNOWN
    else:
        capabilities = await llm.get_capabilities(begun)
    if output_type is not None and capabilities.structured_output == StructuredOutput.CONVERSATION:
        begun = begun.model_copy(update={"output_schema_json": OutputShape(output_type).schema_json})
    tool_seconds = None
    if begun.timeouts.tool_ms is not None and _may_ask_about_tools(policy):
        tool_seconds = begun.timeouts.tool_ms / 1000
        begun = begun.model_copy(update={"timeouts": _with_time_to_ask(begun.timeouts)})
    is_ours = conversation_id is None
    async with open_sources(llm, servers, capabilities if is_ours else _UNKNOWN) as sources:
        registry = await registry.extended(sources.routed)
        if sources.routed:
            begun = begun.model_copy(update={"tools": registry.descriptors})
        run = _caller(begun, policy, asked, inside)
        side = HostSide(llm, registry, _desk(llm, begun, policy, asked), capabilities, tool_seconds, run)
        used_id = conversation_id or await llm.begin_conversation(begun)
        try:
            if sources.delegated:
                await llm.delegate_tool_sources(used_id, sources.delegated)
            if is_ours and delegate_policy and capabilities.supports_request_policy_delegation:
                handed_over = delegated(_policy(policy), connector=begun.connector, cwd=begun.cwd or ".")
                # a peer that cannot keep it to the letter gets none: then the host is asked about everything
                with suppress(NotSupported):
                    await llm.delegate_request_policy(used_id, handed_over)
            with unwrapped():
                async with anyio.create_task_group() as group:
                    known = begun if is_ours else None
                    yield ConversationHandle(used_id, side, group, options=known, beforehand=sources.lines)
                    group.cancel_scope.cancel()
        finally:
            if is_ours:
                await _end(llm, used_id)


def _policy(policy: Policy | RequestPolicy | None) -> Policy:
    if isinstance(policy, RequestPolicy):
        return Policy(policy)
    return policy or Policy(RESTRICTIVE)


def _caller(
    options: ConversationOptions, policy: Policy | RequestPolicy | None, approver: Approver, inside: Caller | None
) -> Caller:
    """This conversation, as agents see it that run as its tools."""
    parent = inside.spending if inside is not None else None
    return Caller(
        policy=_policy(policy),
        approver=approver,
        depth=0 if inside is None else inside.depth + 1,
        spending=Spending(options.limits, parent=parent),
        approval_ms=options.timeouts.approval_ms,
        turns=[],
    )


def _desk(
    llm: ConversationalLLM, options: ConversationOptions, policy: Policy | RequestPolicy | None, approver: Approver
) -> PolicyDesk:
    is_elsewhere = isinstance(llm, Elsewhere) and llm.is_elsewhere
    place = place_elsewhere(options.cwd) if is_elsewhere else place_here(options.cwd)
    limit = options.timeouts.approval_ms
    seconds = None if limit is None else limit / 1000
    return PolicyDesk(Desk(_policy(policy), approver, options.connector, place, seconds))


def _may_ask_about_tools(policy: Policy | RequestPolicy | None) -> bool:
    return bool(_policy(policy).hooks or _policy(policy).rules.ask)


def _with_time_to_ask(timeouts: Timeouts) -> Timeouts:
    """The other side waits for the person as well; how long the tool itself runs is kept here."""
    tool_ms, approval_ms = timeouts.tool_ms, timeouts.approval_ms
    both = None if tool_ms is None or approval_ms is None else tool_ms + approval_ms
    return timeouts.model_copy(update={"tool_ms": both})


async def _end(llm: ConversationalLLM, conversation_id: str) -> None:
    with anyio.move_on_after(END_SECONDS, shield=True):
        try:
            await llm.end_conversation(conversation_id)
        except PeerLost:
            logger.info("conversation '%s' went with its server", conversation_id)
        except HarnessError as error:  # what came before matters more: the completion, or the error on its way
            logger.warning("conversation '%s' could not be ended: %s", conversation_id, error)
