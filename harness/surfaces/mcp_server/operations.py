"""The operations of the contract as tools, for clients that host the inner agent's tools themselves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import mcp_types as types

from harness.contract.capabilities import LlmCapabilities
from harness.contract.state import ConversationExport, ConversationInfo, TurnState
from harness.contract.value import Value
from harness.surfaces.call import OwnedLLM
from harness.surfaces.mcp_server.arguments import (
    MAX_WAIT_MS,
    Arguments,
    ConversationArguments,
    MessageArguments,
    NoArguments,
    OptionsArguments,
    PolicyArguments,
    PollArguments,
    ResponsesArguments,
    SourcesArguments,
    TurnArguments,
)
from harness.surfaces.mcp_server.tools import described
from harness.wire.bodies import ConversationCreated, ConversationList, RequestList, TurnCreated

Perform: TypeAlias = Callable[[OwnedLLM, Any], Awaitable[Value | None]]

_READS = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
_CHANGES = types.ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_REPEATABLE = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
_FORGETS = types.ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)
_SPEAKS = types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


@dataclass(frozen=True, slots=True)
class Operation:
    """A row of the table: what it is called, takes and gives, and who performs it."""

    name: str
    description: str
    takes: type[Arguments]
    perform: Perform
    gives: type[Value] | None = None
    annotations: types.ToolAnnotations | None = None
    """Null: it only reads."""

    def tool(self) -> types.Tool:
        return described(self.name, self.description, self.takes, self.gives, annotations=self.annotations or _READS)


async def _get_capabilities(llm: OwnedLLM, given: OptionsArguments) -> Value:
    return await llm.get_capabilities(given.options)


async def _begin_conversation(llm: OwnedLLM, given: OptionsArguments) -> Value:
    return ConversationCreated(conversation_id=await llm.begin_conversation(given.options))


async def _submit_user_message(llm: OwnedLLM, given: MessageArguments) -> Value:
    turn_id = await llm.submit_user_message(given.conversation_id, given.content, given.options)
    return TurnCreated(turn_id=turn_id)


async def _poll_turn(llm: OwnedLLM, given: PollArguments) -> Value:
    wait_ms = min(given.max_wait_ms, MAX_WAIT_MS)
    return await llm.poll_turn(given.conversation_id, given.turn_id, given.since_sequence_no, wait_ms, given.max_items)


async def _submit_responses(llm: OwnedLLM, given: ResponsesArguments) -> None:
    await llm.submit_responses(given.conversation_id, given.turn_id, given.responses)


async def _cancel_turn(llm: OwnedLLM, given: TurnArguments) -> None:
    await llm.cancel_turn(given.conversation_id, given.turn_id)


async def _end_conversation(llm: OwnedLLM, given: ConversationArguments) -> None:
    await llm.end_conversation(given.conversation_id)


async def _delegate_tool_sources(llm: OwnedLLM, given: SourcesArguments) -> None:
    await llm.delegate_tool_sources(given.conversation_id, given.sources)


async def _delegate_request_policy(llm: OwnedLLM, given: PolicyArguments) -> None:
    await llm.delegate_request_policy(given.conversation_id, given.policy)


async def _list_conversations(llm: OwnedLLM, given: NoArguments) -> Value:
    return ConversationList(conversations=await llm.list_conversations())


async def _get_conversation(llm: OwnedLLM, given: ConversationArguments) -> Value:
    return await llm.get_conversation(given.conversation_id)


async def _list_requests(llm: OwnedLLM, given: NoArguments) -> Value:
    return RequestList(requests=await llm.list_requests())


async def _fork_conversation(llm: OwnedLLM, given: ConversationArguments) -> Value:
    return ConversationCreated(conversation_id=await llm.fork_conversation(given.conversation_id))


async def _delete_conversation(llm: OwnedLLM, given: ConversationArguments) -> None:
    await llm.delete_conversation(given.conversation_id)


async def _export_conversation(llm: OwnedLLM, given: ConversationArguments) -> Value:
    return await llm.export_conversation(given.conversation_id)


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "get_capabilities",
        "What the agent can do with these options.",
        OptionsArguments,
        _get_capabilities,
        LlmCapabilities,
    ),
    Operation(
        "begin_conversation",
        "Begin a conversation whose tools you run yourself: name them in 'options.tools'. Gives its id.",
        OptionsArguments,
        _begin_conversation,
        ConversationCreated,
        _CHANGES,
    ),
    Operation(
        "submit_user_message",
        "Begin a turn. Then poll it, and answer what it asks, until its status is completed, failed or cancelled.",
        MessageArguments,
        _submit_user_message,
        TurnCreated,
        _SPEAKS,
    ),
    Operation(
        "poll_turn",
        "What is new in a turn: its output, its status, and the requests (tool calls, approvals, questions) that wait.",
        PollArguments,
        _poll_turn,
        TurnState,
    ),
    Operation(
        "submit_responses",
        "Answer requests of a turn. Each answer is judged alone.",
        ResponsesArguments,
        _submit_responses,
        annotations=_SPEAKS,
    ),
    Operation("cancel_turn", "Stop a turn.", TurnArguments, _cancel_turn, annotations=_REPEATABLE),
    Operation(
        "end_conversation",
        "End a conversation: frees its process and all it owned.",
        ConversationArguments,
        _end_conversation,
        annotations=_REPEATABLE,
    ),
    Operation(
        "delegate_tool_sources",
        "Hand tool sources to the agent, before the first turn.",
        SourcesArguments,
        _delegate_tool_sources,
        annotations=_CHANGES,
    ),
    Operation(
        "delegate_request_policy",
        "Hand decisions to the agent, before the first turn. Never widens what it may do.",
        PolicyArguments,
        _delegate_request_policy,
        annotations=_CHANGES,
    ),
    Operation("list_conversations", "All your conversations.", NoArguments, _list_conversations, ConversationList),
    Operation("get_conversation", "One conversation.", ConversationArguments, _get_conversation, ConversationInfo),
    Operation(
        "list_requests", "All requests that wait, over all conversations.", NoArguments, _list_requests, RequestList
    ),
    Operation(
        "fork_conversation",
        "A new conversation that starts where this one stands.",
        ConversationArguments,
        _fork_conversation,
        ConversationCreated,
        _CHANGES,
    ),
    Operation(
        "delete_conversation",
        "End a conversation and forget it.",
        ConversationArguments,
        _delete_conversation,
        annotations=_FORGETS,
    ),
    Operation(
        "export_conversation",
        "A whole conversation, turn by turn.",
        ConversationArguments,
        _export_conversation,
        ConversationExport,
    ),
)
