"""Conversations that this desk did not begin, or has forgotten: named by the client, or waiting with its calls."""

from __future__ import annotations

from collections.abc import Collection

import anyio

from harness.contract.output import TERMINAL
from harness.contract.requests import OpenRequest
from harness.contract.state import ConversationState
from harness.contract.value import Label
from harness.errors import UnknownConversation
from harness.surfaces.call import OwnedLLM
from harness.surfaces.compatible.asides import wire_id
from harness.surfaces.compatible.reading import TurnReading
from harness.surfaces.compatible.reply_ids import ReplyId
from harness.surfaces.compatible.threads import Thread


async def waiting_for(llm: OwnedLLM, call_ids: Collection[str], surface: Label) -> str | None:
    """The one conversation of this owner and surface in which calls of these ids wait.

    Ids are a model's own and seldom unique: what another surface's client was asked is never answered by chance.
    """
    waiting = await llm.list_requests()
    found = {one.conversation_id for one in waiting if wire_id(one.request, one.conversation_id) in call_ids}
    own = [one for one in sorted(found) if surface in (await llm.get_conversation(one)).labels]
    return own[0] if len(own) == 1 else None


async def is_last_reply(llm: OwnedLLM, reply_id: ReplyId, surface: Label) -> bool:
    """Whether this owner has an open conversation of this surface whose last reply this was."""
    try:
        export = await llm.export_conversation(reply_id.conversation_id)
    except UnknownConversation:
        return False
    info = export.conversation
    return info.state != ConversationState.ENDED and surface in info.labels and reply_id.is_last_of(export)


async def adopted(llm: OwnedLLM, conversation_id: str, surface: Label) -> Thread:
    """The conversation as it is: idle, or with all that waits taken for told.

    Raises:
        UnknownConversation: this owner has none of that id.
    """
    info = await llm.get_conversation(conversation_id)
    waiting = [one for one in await llm.list_requests() if one.conversation_id == conversation_id]
    # touched now, or whoever looks for abandoned ones takes it for as old as the machine's clock
    thread = Thread(conversation_id, None, is_foreign=surface not in info.labels, touched_at=anyio.current_time())
    if waiting:
        thread.reading = await _read_so_far(llm, waiting[0])
        thread.reading.told |= {one.request.request_id for one in waiting}
        thread.waiting = {wire_id(one.request, conversation_id): one.request for one in waiting}
    return thread


async def _read_so_far(llm: OwnedLLM, waiting: OpenRequest) -> TurnReading:
    """What was said before belongs to replies that somebody else has had."""
    reading = TurnReading(waiting.turn_id)
    while True:
        state = await llm.poll_turn(waiting.conversation_id, waiting.turn_id, reading.seen)
        reading.read(state)
        if not state.has_more or state.status in TERMINAL:
            return reading
