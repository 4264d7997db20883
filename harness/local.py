"""`LocalHarness`: every connector of this installation as a `ConversationalLLM`, in this process."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from harness.connector import Connector, Reaps
from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock
from harness.contract.delegation import PolicyMode, RequestPolicy
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import ConversationExport, ConversationInfo, ConversationState, TurnState
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.conversation import Conversation
from harness.conversation.checks import check_options, parsed_object
from harness.conversation.recovery import past_of
from harness.conversation.running_turn import Clock
from harness.errors import Forbidden, HarnessError, NotSupported, UnknownConversation, unwrapped
from harness.registry import Registry
from harness.settings import Rights, Settings
from harness.store.port import ConversationRecord, Store, Summary

logger = logging.getLogger(__name__)

LOCAL_OWNER = "local"
_WIDENING_MODES = frozenset({PolicyMode.ACCEPT_EDITS, PolicyMode.BYPASS})


def wall_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def info_of(record: ConversationRecord) -> ConversationInfo:
    """What the directory shows of a conversation that is not open here."""
    summary = record.summary
    return ConversationInfo(
        conversation_id=record.conversation_id,
        state=summary.state,
        connector=record.options.connector or record.connector,
        model=record.options.model,
        created_at=record.created_at,
        updated_at=summary.updated_at,
        turns=summary.turns,
        first_message=summary.first_message,
        pending_requests=len(summary.open_requests),
        labels=record.options.labels,
    )


@dataclass
class _House:
    """What all owners of one harness share."""

    registry: Registry
    settings: Settings
    clock: Clock
    default_connector: str | None
    store: Store | None
    loading: anyio.Lock = field(default_factory=anyio.Lock)
    conversations: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    by_client_key: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    group: TaskGroup | None = None


class LocalHarness:
    """The in-process `ConversationalLLM` and `ConversationDirectory` of one owner.

    Enter it once; `for_owner` gives other callers their own view of the same house. Leaving it ends every conversation
    and every process.
    """

    def __init__(
        self,
        registry: Registry | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock = wall_clock,
        default_connector: str | None = None,
        store: Store | None = None,
    ) -> None:
        self._house = _House(registry or Registry(), settings or Settings(), clock, default_connector, store)
        self._owner = LOCAL_OWNER
        self._rights = Rights()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        self._stack.enter_context(unwrapped())
        if self._house.store is not None:
            await self._stack.enter_async_context(self._house.store)
        self._house.group = await self._stack.enter_async_context(anyio.create_task_group())
        await self._restore_abandoned()
        self._house.group.start_soon(self._forget_idle_conversations)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        # settle what waits, then close: each conversation's own end is bounded
        with anyio.CancelScope(shield=True):
            await self.end_all()
        if self._house.group is not None:
            self._house.group.cancel_scope.cancel()
        return await self._stack.__aexit__(kind, error, traceback)

    def for_owner(self, owner: str, rights: Rights) -> LocalHarness:
        """What a surface gets after authentication: the same house, other conversations, fewer rights."""
        view = LocalHarness.__new__(LocalHarness)
        view._house, view._owner, view._rights = self._house, owner, rights
        return view

    async def end_all(self) -> None:
        """Ends every conversation of every owner, all at once."""
        async with anyio.create_task_group() as group:
            for conversation in self._house.conversations.values():
                group.start_soon(conversation.end)

    # ConversationalLLM

    async def get_capabilities(self, options: ConversationOptions | None = None) -> LlmCapabilities:
        connector, resolved = self._resolve(options or ConversationOptions())
        return await connector.get_capabilities(resolved)

    async def begin_conversation(self, options: ConversationOptions) -> str:
        known = await self._known_client_key(options.client_key)
        if known is not None:
            return known
        connector, resolved = self._resolve(options)
        capabilities = await connector.get_capabilities(resolved)
        check_options(resolved, capabilities)
        # the look-up above may be old by now: another call with the same key may have begun meanwhile
        known = await self._known_client_key(options.client_key)
        if known is not None:
            return known
        tools = sorted(resolved.tools, key=lambda tool: tool.name)
        now = self._house.clock()
        record = ConversationRecord(
            f"c_{uuid4().hex[:20]}",
            self._owner,
            connector.name,
            resolved.model_copy(update={"tools": tools}),
            capabilities.to_json(),
            now,
            Summary(updated_at=now),
        )
        epoch = None
        if self._house.store is not None:
            kept, epoch = await self._house.store.create(record)
            if epoch is None:  # another process began it under this key
                return kept.conversation_id
        conversation = self._add(record, connector, capabilities, epoch)
        if options.prestart:
            conversation.prestart()
        return conversation.conversation_id

    async def submit_user_message(
        self, conversation_id: str, content: Sequence[ContentBlock], options: TurnOptions | None = None
    ) -> str:
        conversation = await self._conversation(conversation_id, to_write=True)
        return await conversation.submit(content, options or TurnOptions())

    async def poll_turn(
        self,
        conversation_id: str,
        turn_id: str,
        since_sequence_no: int = 0,
        max_wait_ms: int = 0,
        max_items: int = 1000,
    ) -> TurnState:
        conversation = await self._conversation(conversation_id)
        return await conversation.poll(turn_id, since_sequence_no, max_wait_ms, max_items)

    async def submit_responses(self, conversation_id: str, turn_id: str, responses: Sequence[HostResponse]) -> None:
        conversation = await self._conversation(conversation_id)
        await conversation.respond(turn_id, responses)

    async def cancel_turn(self, conversation_id: str, turn_id: str) -> None:
        conversation = await self._conversation(conversation_id)
        await conversation.cancel(turn_id)

    async def end_conversation(self, conversation_id: str) -> None:
        conversation = await self._conversation(conversation_id)
        with anyio.CancelScope(shield=True):
            await conversation.end()
        if self._house.store is not None:  # from now on any process may go on with it
            self._forget(conversation)

    async def delegate_tool_sources(self, conversation_id: str, sources: Sequence[ToolSourceDescriptor]) -> None:
        if not self._rights.programs and any(source.kind == ToolSourceKind.MCP_STDIO for source in sources):
            raise Forbidden("this caller may not name programs: a tool source of kind 'mcp_stdio' starts one")
        conversation = await self._conversation(conversation_id, to_write=True)
        await conversation.delegate_tool_sources(sources)

    async def delegate_request_policy(self, conversation_id: str, policy: RequestPolicy) -> None:
        if not self._rights.programs and policy.mode in _WIDENING_MODES:
            raise Forbidden(f"this caller may not use the mode '{policy.mode}'")
        conversation = await self._conversation(conversation_id, to_write=True)
        await conversation.delegate_request_policy(policy)

    # ConversationDirectory

    async def list_conversations(self) -> list[ConversationInfo]:
        here = {conversation.conversation_id: conversation.info() for conversation in self._owned()}
        if self._house.store is None:
            return sorted(here.values(), key=lambda info: info.updated_at, reverse=True)
        records = await self._house.store.list_conversations(self._owner)
        return [here.get(record.conversation_id) or info_of(record) for record in records]

    async def get_conversation(self, conversation_id: str) -> ConversationInfo:
        return (await self._conversation(conversation_id)).info()

    async def list_requests(self) -> list[OpenRequest]:
        here = {conversation.conversation_id: conversation.open_requests() for conversation in self._owned()}
        elsewhere = [] if self._house.store is None else await self._house.store.list_requests(self._owner)
        waiting = [request for requests in here.values() for request in requests]
        return waiting + [request for request in elsewhere if request.conversation_id not in here]

    async def fork_conversation(self, conversation_id: str) -> str:
        conversation = await self._conversation(conversation_id)
        raise NotSupported(f"connector '{conversation.info().connector}' cannot fork a conversation")

    async def delete_conversation(self, conversation_id: str) -> None:
        conversation = await self._conversation(conversation_id, to_write=True)
        await self.end_conversation(conversation_id)
        self._forget(conversation)
        if self._house.store is not None:
            await self._house.store.delete(conversation_id)

    async def export_conversation(self, conversation_id: str) -> ConversationExport:
        return await (await self._conversation(conversation_id)).export()

    # inside

    def _open_group(self) -> TaskGroup:
        if self._house.group is None:
            raise RuntimeError("LocalHarness is used before 'async with'")
        return self._house.group

    def _owned(self) -> list[Conversation]:
        return [c for c in self._house.conversations.values() if c.owner == self._owner]

    def _add(
        self, record: ConversationRecord, connector: Connector, capabilities: LlmCapabilities, epoch: int | None
    ) -> Conversation:
        house = self._house
        conversation = Conversation(
            record, connector, capabilities, group=self._open_group(), settings=house.settings, clock=house.clock
        )
        if house.store is not None and epoch is not None:
            conversation.keep_in(house.store, epoch)
        house.conversations[record.conversation_id] = conversation
        if record.options.client_key is not None:
            house.by_client_key[record.owner, record.options.client_key] = record.conversation_id
        return conversation

    async def _conversation(self, conversation_id: str, *, to_write: bool = False) -> Conversation:
        """The caller's conversation: from memory, else from the journal.

        One that only the journal has is claimed to write, or to close what a dead process left open; else it is just
        looked at, so that another process may still take it.
        """
        async with self._house.loading:
            conversation = self._house.conversations.get(conversation_id)
            if conversation is not None and conversation.owner == self._owner:
                return conversation
            store = self._house.store
            record = None if store is None else await store.find(conversation_id, self._owner)
            if conversation is not None or store is None or record is None:
                raise UnknownConversation(f"no conversation '{conversation_id}'")
            return await self._load(store, record, claim=to_write or record.summary.turn_is_running)

    async def _load(self, store: Store, record: ConversationRecord, *, claim: bool) -> Conversation:
        connector = self._house.registry.connector(record.connector)
        capabilities = LlmCapabilities.model_validate_json(record.capabilities_json)
        epoch = await store.claim(record.conversation_id) if claim else None
        past = past_of(await store.entries(record.conversation_id))
        conversation = self._add(record, connector, capabilities, epoch)
        conversation.recall(past, store)
        if epoch is None:
            del self._house.conversations[record.conversation_id]
            return conversation
        await conversation.go_on(past)
        return conversation

    async def _restore_abandoned(self) -> None:
        """Takes up what dead processes left: overdue requests are closed before anything is shown."""
        store = self._house.store
        if store is None:
            return
        for record in await store.abandoned():
            try:
                await self._restore(store, record)
            except HarnessError as error:
                logger.warning("conversation '%s' cannot be restored: %s", record.conversation_id, error)

    async def _restore(self, store: Store, record: ConversationRecord) -> None:
        connector = self._house.registry.connector(record.connector)
        if isinstance(connector, Reaps):
            past = past_of(await store.entries(record.conversation_id))
            await connector.reap(past.records)
        if record.summary.turn_is_running:
            await self._load(store, record, claim=True)
        else:
            await store.release(record.conversation_id, await store.claim(record.conversation_id))

    async def _known_client_key(self, client_key: str | None) -> str | None:
        if client_key is None:
            return None
        if self._house.store is not None:
            record = await self._house.store.find_client_key(self._owner, client_key)
            return None if record is None else record.conversation_id
        return self._house.by_client_key.get((self._owner, client_key))

    def _resolve(self, options: ConversationOptions) -> tuple[Connector, ConversationOptions]:
        if options.connector is None and self._house.default_connector is not None:
            options = options.model_copy(update={"connector": self._house.default_connector})
        connector, resolved = self._house.registry.resolve(options)
        self._check_rights(connector, options)
        return connector, resolved

    def _check_rights(self, connector: Connector, options: ConversationOptions) -> None:
        """What the caller itself wrote, before a variant added to it."""
        if not self._rights.programs and options.connector_options_json is not None:
            named = parsed_object(options.connector_options_json, "connector_options_json")
            forbidden = sorted(connector.restricted_options & named.keys())
            if forbidden:
                raise Forbidden(f"this caller may not set the connector option '{forbidden[0]}'")
        roots = self._rights.cwd_roots
        if roots is not None and options.cwd is not None:
            path = Path(options.cwd).resolve()
            if not any(path.is_relative_to(root) for root in roots):
                raise Forbidden(f"'cwd' '{options.cwd}' is outside the directories this caller may work in")

    def _forget(self, conversation: Conversation) -> None:
        self._house.conversations.pop(conversation.conversation_id, None)
        if conversation.options.client_key is not None:
            self._house.by_client_key.pop((conversation.owner, conversation.options.client_key), None)

    async def _forget_idle_conversations(self) -> None:
        """Sleeps until the oldest idle conversation is due; without a journal nobody could come back to it later."""
        ttl_ms = int(self._house.settings.idle_ttl_seconds * 1000)
        while True:
            now = self._house.clock()
            idle = {c: since for c in self._house.conversations.values() if (since := c.idle_since()) is not None}
            for conversation, since in idle.items():
                if now >= since + ttl_ms:
                    await conversation.end(ConversationState.PARKED)
                    self._forget(conversation)
            # a conversation that begins or ends meanwhile cannot be due before one more time to live has passed
            due = min((since + ttl_ms for since in idle.values() if now < since + ttl_ms), default=now + ttl_ms)
            await anyio.sleep((due - now) / 1000)
