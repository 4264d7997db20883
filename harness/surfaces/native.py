"""The native dialect: the contract's operations and values as they are, under `/v1`."""

from __future__ import annotations

from harness.contract.capabilities import LlmCapabilities
from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions
from harness.contract.state import ConversationExport, ConversationInfo, TurnState
from harness.surfaces.call import Answer, Call, Operation
from harness.surfaces.events import event_stream, wants_events
from harness.wire.bodies import (
    ConnectorList,
    ConversationCreated,
    ConversationList,
    RequestList,
    Responses,
    ToolSources,
    TurnCreated,
    UserMessage,
)


async def _begin_conversation(call: Call) -> Answer:
    options = await call.body(ConversationOptions)
    return ConversationCreated(conversation_id=await call.llm.begin_conversation(options))


async def _list_conversations(call: Call) -> Answer:
    return ConversationList(conversations=await call.llm.list_conversations())


async def _get_conversation(call: Call) -> Answer:
    return await call.llm.get_conversation(call.conversation_id)


async def _submit_user_message(call: Call) -> Answer:
    message = await call.body(UserMessage)
    turn_id = await call.llm.submit_user_message(call.conversation_id, message.content, message.options)
    return TurnCreated(turn_id=turn_id)


async def _poll_turn(call: Call) -> Answer:
    if wants_events(call):
        return await event_stream(call)
    return await call.poll_turn(
        call.conversation_id,
        call.turn_id,
        call.number("since_sequence_no", 0),
        call.number("max_wait_ms", 0),
        call.number("max_items", 1000, minimum=1),
    )


async def _submit_responses(call: Call) -> Answer:
    body = await call.body(Responses)
    await call.llm.submit_responses(call.conversation_id, call.turn_id, body.responses)
    return None


async def _cancel_turn(call: Call) -> Answer:
    await call.llm.cancel_turn(call.conversation_id, call.turn_id)
    return None


async def _end_conversation(call: Call) -> Answer:
    await call.llm.end_conversation(call.conversation_id)
    return None


async def _delete_conversation(call: Call) -> Answer:
    await call.llm.delete_conversation(call.conversation_id)
    return None


async def _fork_conversation(call: Call) -> Answer:
    return ConversationCreated(conversation_id=await call.llm.fork_conversation(call.conversation_id))


async def _export_conversation(call: Call) -> Answer:
    return await call.llm.export_conversation(call.conversation_id)


async def _delegate_tool_sources(call: Call) -> Answer:
    body = await call.body(ToolSources)
    await call.llm.delegate_tool_sources(call.conversation_id, body.tool_sources)
    return None


async def _delegate_request_policy(call: Call) -> Answer:
    await call.llm.delegate_request_policy(call.conversation_id, await call.body(RequestPolicy))
    return None


async def _get_capabilities(call: Call) -> Answer:
    return await call.llm.get_capabilities(await call.optional_body(ConversationOptions))


async def _list_connectors(call: Call) -> Answer:
    return ConnectorList(connectors=list(call.served.connectors))


async def _list_requests(call: Call) -> Answer:
    return RequestList(requests=await call.llm.list_requests())


_CONVERSATION = "/v1/conversations/{conversation_id}"
_TURN = _CONVERSATION + "/turns/{turn_id}"

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "POST",
        "/v1/conversations",
        "Begin a conversation",
        _begin_conversation,
        takes=ConversationOptions,
        gives=ConversationCreated,
        status=201,
        starts_work=True,
    ),
    Operation("GET", "/v1/conversations", "All conversations", _list_conversations, gives=ConversationList),
    Operation("GET", _CONVERSATION, "One conversation", _get_conversation, gives=ConversationInfo),
    Operation(
        "POST",
        _CONVERSATION + "/turns",
        "Submit a user message: begins a turn",
        _submit_user_message,
        takes=UserMessage,
        gives=TurnCreated,
        status=201,
        starts_work=True,
    ),
    Operation(
        "GET",
        _TURN,
        "Poll a turn, or follow it with 'Accept: text/event-stream'",
        _poll_turn,
        gives=TurnState,
    ),
    Operation("POST", _TURN + "/responses", "Answer requests", _submit_responses, takes=Responses),
    Operation("POST", _TURN + "/cancel", "Cancel a turn", _cancel_turn),
    Operation("POST", _CONVERSATION + "/end", "End a conversation", _end_conversation),
    Operation("DELETE", _CONVERSATION, "End a conversation and forget it", _delete_conversation),
    Operation(
        "POST",
        _CONVERSATION + "/fork",
        "A new conversation that starts where this one stands",
        _fork_conversation,
        gives=ConversationCreated,
        status=201,
        starts_work=True,
    ),
    Operation(
        "GET", _CONVERSATION + "/export", "The whole conversation", _export_conversation, gives=ConversationExport
    ),
    Operation(
        "PUT",
        _CONVERSATION + "/tool-sources",
        "Hand tool sources to the peer, before the first turn",
        _delegate_tool_sources,
        takes=ToolSources,
    ),
    Operation(
        "PUT",
        _CONVERSATION + "/request-policy",
        "Hand decisions to the peer, before the first turn",
        _delegate_request_policy,
        takes=RequestPolicy,
    ),
    Operation(
        "POST",
        "/v1/capabilities",
        "What these options can do",
        _get_capabilities,
        takes=ConversationOptions,
        gives=LlmCapabilities,
    ),
    Operation("GET", "/v1/connectors", "The connectors of this server", _list_connectors, gives=ConnectorList),
    Operation("GET", "/v1/requests", "All that waits, over all conversations", _list_requests, gives=RequestList),
)
