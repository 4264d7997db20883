"""What all owners of one harness share: the conversations that are open here, and what the journal has beside them."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from harness.connector import Connector, Reaps
from harness.contract.capabilities import LlmCapabilities
from harness.contract.state import ConversationState
from harness.conversation import Conversation
from harness.conversation.deadlines import Clock
from harness.conversation.house_policy import answers_first
from harness.conversation.recovery import past_of
from harness.errors import ConversationInUse, HarnessError, LimitExceeded, UnknownConversation
from harness.policy import Policy
from harness.registry import Registry
from harness.settings import Settings
from harness.store.port import ConversationRecord, Store

logger = logging.getLogger(__name__)


def wall_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@dataclass
class House:
    """Conversations of every owner, each of which is claimed in the journal while it is open here."""

    registry: Registry
    settings: Settings
    clock: Clock
    default_connector: str | None
    store: Store | None
    takes_up_turns: bool
    policy: Policy | None
    instance_id: str = field(default_factory=lambda: f"h_{uuid4().hex[:12]}")
    """Names this house among those that stand on each other."""
    loading: anyio.Lock = field(default_factory=anyio.Lock)
    starting: anyio.Lock = field(default_factory=anyio.Lock)
    conversations: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    by_client_key: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    group: TaskGroup | None = None
    is_closing: bool = False

    def _open_group(self) -> TaskGroup:
        if self.group is None:
            raise RuntimeError("LocalHarness is used before 'async with'")
        return self.group

    def _open_store(self) -> Store:
        if self.store is None:
            raise RuntimeError("this harness has no journal")
        return self.store

    def add(
        self, record: ConversationRecord, connector: Connector, capabilities: LlmCapabilities, epoch: int | None
    ) -> Conversation:
        conversation = Conversation(
            record,
            connector,
            capabilities,
            group=self._open_group(),
            settings=self.settings,
            clock=self.clock,
            answers_first=answers_first(self.policy, connector.name, record.options.cwd) if self.policy else None,
        )
        if self.store is not None and epoch is not None:
            conversation.keep_in(self.store, epoch)
        self.conversations[record.conversation_id] = conversation
        if record.options.client_key is not None:
            self.by_client_key[record.owner, record.options.client_key] = record.conversation_id
        return conversation

    async def conversation(self, conversation_id: str, owner: str, *, to_write: bool = False) -> Conversation:
        """The owner's conversation: from memory, else from the journal.

        One that only the journal has is claimed to write, or to close what a dead process left open; else it is just
        looked at, so that another process may still take it.
        """
        while True:
            async with self.loading:
                found = await self.look_up(conversation_id, owner)
                if isinstance(found, ConversationRecord):
                    claims = to_write or found.summary.turn_is_running
                    epoch = await self._claim(conversation_id) if claims else None
                    if epoch is not None:
                        await self._reap(self._open_store(), [found])
                    return await self.load(found, epoch)
            if not await found.closed():
                return found
            self.forget(found)

    async def look_up(self, conversation_id: str, owner: str) -> Conversation | ConversationRecord:
        """Open here, or only in the journal.

        Raises:
            UnknownConversation: neither, or somebody else's.
        """
        conversation = self.conversations.get(conversation_id)
        if conversation is not None and conversation.owner == owner:
            return conversation
        store = self.store
        record = None if store is None else await store.find(conversation_id, owner)
        if conversation is not None or record is None:
            raise UnknownConversation(f"no conversation '{conversation_id}'")
        return record

    async def _claim(self, conversation_id: str) -> int:
        if self.is_closing:
            raise ConversationInUse(f"this process is about to end: go on with '{conversation_id}' in the next one")
        return await self._open_store().claim(conversation_id)

    async def load(self, record: ConversationRecord, epoch: int | None) -> Conversation:
        """The conversation as the journal has it; one that was claimed goes on here."""
        store = self._open_store()
        connector = self.registry.connector(record.connector)
        capabilities = LlmCapabilities.model_validate_json(record.capabilities_json)
        past = past_of(await store.entries(record.conversation_id))
        conversation = self.add(record, connector, capabilities, epoch)
        try:
            conversation.recall(past, store)
            if epoch is None:
                self.forget(conversation)
                return conversation
            await conversation.go_on(past)
        except BaseException:
            self.forget(conversation)
            if epoch is not None:
                with anyio.CancelScope(shield=True):
                    await store.release(record.conversation_id, epoch)
            raise
        return conversation

    async def leave_all(self) -> None:
        """Every conversation of every owner is closed, all at once, and none is taken up again.

        A turn that another process can go on with exactly stays as it is in the journal; any other is cancelled.
        """
        self.is_closing = True
        async with anyio.create_task_group() as group:
            for conversation in self.conversations.values():
                group.start_soon(conversation.leave)

    async def take_up_abandoned(self) -> None:
        """What dead processes left: their peers are ended, and overdue requests are closed before anything is shown."""
        store = self.store
        if store is None:
            return
        claimed: list[tuple[ConversationRecord, int]] = []
        for record in await store.abandoned():
            try:
                claimed.append((record, await store.claim(record.conversation_id)))
            except ConversationInUse:
                logger.debug("another process has taken up conversation '%s'", record.conversation_id)
        await self._reap(store, [record for record, _ in claimed])
        for record, epoch in claimed:
            try:
                if record.summary.turn_is_running and self.takes_up_turns:
                    await self.load(record, epoch)
                else:
                    await store.release(record.conversation_id, epoch)
            except HarnessError as error:
                logger.warning("conversation '%s' cannot be taken up: %s", record.conversation_id, error)

    async def _reap(self, store: Store, records: Sequence[ConversationRecord]) -> None:
        """All at once: each connector waits for the ends of its peers only once."""
        for name in sorted({record.connector for record in records}):
            try:
                connector = self.registry.connector(name)
            except HarnessError as error:
                logger.warning("what connector '%s' left running cannot be ended: %s", name, error)
                continue
            if isinstance(connector, Reaps):
                ids = [record.conversation_id for record in records if record.connector == name]
                await connector.reap([one for each in ids for one in await store.remembered(each)])

    def forget(self, conversation: Conversation) -> None:
        self.conversations.pop(conversation.conversation_id, None)
        if conversation.options.client_key is not None:
            self.by_client_key.pop((conversation.owner, conversation.options.client_key), None)

    @asynccontextmanager
    async def room_for(self, conversation: Conversation) -> AsyncGenerator[None]:
        """Where the number of peers is limited, the one that was idle longest makes room; its conversation stays."""
        limit = self.settings.max_sessions
        if limit is None or conversation.has_session:
            yield
            return
        async with self.starting:  # nobody else starts one between the count and the start
            while len(serving := [c for c in self.conversations.values() if c.has_session]) >= limit:
                idle = {c: since for c in serving if c.can_resume and (since := c.idle_since()) is not None}
                if not idle:
                    raise LimitExceeded(
                        f"{limit} conversations are busy, which is 'max_sessions': repeat the call when one has ended",
                        retry_after_ms=1000,
                    )
                await self._park(min(idle, key=lambda one: idle[one]))
            yield

    async def _park(self, conversation: Conversation) -> None:
        with anyio.CancelScope(shield=True):
            await conversation.end(ConversationState.PARKED)
        if self.store is not None:
            self.forget(conversation)

    async def forget_idle_conversations(self) -> None:
        """Sleeps until the oldest idle conversation is due; without a journal nobody could come back to it later."""
        ttl_ms = int(self.settings.idle_ttl_seconds * 1000)
        while True:
            now = self.clock()
            for conversation in list(self.conversations.values()):
                since = conversation.idle_since()  # asked anew: ending the one before took its time
                if since is not None and now >= since + ttl_ms:
                    await conversation.end(ConversationState.PARKED)
                    self.forget(conversation)
            # a conversation that begins or ends meanwhile cannot be due before one more time to live has passed
            idle = (c.idle_since() for c in self.conversations.values())
            due = min((since + ttl_ms for since in idle if since is not None), default=now + ttl_ms)
            await anyio.sleep(max(0.0, (due - self.clock()) / 1000))
