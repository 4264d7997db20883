"""`LocalHarness`: every connector of this installation as a `ConversationalLLM`, in this process."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from harness.connector import Connector, Forks, Reaps
from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock
from harness.contract.delegation import PolicyMode, RequestPolicy
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import ConversationExport, ConversationInfo, ConversationState, TurnState
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.conversation import Conversation
from harness.conversation.checks import check_options, parsed_object
from harness.conversation.house_policy import answers_first
from harness.conversation.recovery import past_of
from harness.conversation.running_turn import Clock
from harness.errors import (
    ConversationInUse,
    Forbidden,
    HarnessError,
    LimitExceeded,
    NotSupported,
    UnknownConversation,
    unwrapped,
)
from harness.policy import Policy, narrowed
from harness.registry import Registry
from harness.settings import Rights, Settings
from harness.store.port import ConversationRecord, Store, Summary
from harness.wire.hops import joined, passed_on

logger = logging.getLogger(__name__)

LOCAL_OWNER = "local"
_WIDENING_MODES = frozenset({PolicyMode.ACCEPT_EDITS, PolicyMode.BYPASS})


def wall_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def info_of(record: ConversationRecord, now: int) -> ConversationInfo:
    """What the directory shows of a conversation that is not open here."""
    summary = record.summary
    waiting = [one for one in summary.open_requests if not is_overdue(one, now)]
    return ConversationInfo(
        conversation_id=record.conversation_id,
        state=summary.state,
        connector=record.options.connector or record.connector,
        model=record.options.model,
        created_at=record.created_at,
        updated_at=summary.updated_at,
        turns=summary.turns,
        first_message=summary.first_message,
        pending_requests=len(waiting),
        labels=record.options.labels,
    )


def is_overdue(waiting: OpenRequest, now: int) -> bool:
    """Whoever takes its conversation up closes it: it is never shown again."""
    return waiting.request.expires_at is not None and now >= waiting.request.expires_at


@dataclass
class _House:
    """What all owners of one harness share."""

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


class LocalHarness:
    """The in-process `ConversationalLLM` and `ConversationDirectory` of one owner.

    Enter it once; `for_owner` gives other callers their own view of the same house. Leaving it ends every conversation
    and every process. With a `store` the conversations stay, and those that a dead process left are taken up: at once,
    or, without `takes_up_turns`, each when somebody asks for it. A `policy` answers requests before any host is asked.
    """

    def __init__(
        self,
        registry: Registry | None = None,
        *,
        settings: Settings | None = None,
        clock: Clock = wall_clock,
        default_connector: str | None = None,
        store: Store | None = None,
        takes_up_turns: bool = True,
        policy: Policy | None = None,
    ) -> None:
        self._house = _House(
            registry or Registry(), settings or Settings(), clock, default_connector, store, takes_up_turns, policy
        )
        self._owner = LOCAL_OWNER
        self._rights = Rights()
        self._hops: tuple[str, ...] = ()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        self._stack.enter_context(unwrapped())
        if self._house.store is not None:
            await self._stack.enter_async_context(self._house.store)
        self._house.group = await self._stack.enter_async_context(anyio.create_task_group())
        await self._take_up_abandoned()
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

    @property
    def policy(self) -> Policy | None:
        """What answers requests before any host is asked."""
        return self._house.policy

    @property
    def instance_id(self) -> str:
        """What it adds to `ConversationOptions.hops`."""
        return self._house.instance_id

    def for_owner(self, owner: str, rights: Rights, hops: Sequence[str] = ()) -> LocalHarness:
        """What a surface gets after authentication: the same house, other conversations, fewer rights.

        `hops` are the harnesses this caller's request has come through.
        """
        view = LocalHarness.__new__(LocalHarness)
        view._house, view._owner, view._rights, view._hops = self._house, owner, rights, tuple(hops)
        return view

    async def end_all(self) -> None:
        """The end of the house: every conversation of every owner is closed, all at once, and none is taken up again.

        A turn that another process can go on with exactly stays as it is in the journal; any other is cancelled.
        """
        self._house.is_closing = True
        async with anyio.create_task_group() as group:
            for conversation in self._house.conversations.values():
                group.start_soon(conversation.leave)

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
        check_options(resolved, capabilities, self._house.settings.prices)
        # the look-up above may be old by now: another call with the same key may have begun meanwhile
        known = await self._known_client_key(options.client_key)
        if known is not None:
            return known
        tools = sorted(resolved.tools, key=lambda tool: tool.name)
        conversation = await self._create(connector, resolved.model_copy(update={"tools": tools}), capabilities)
        if isinstance(conversation, str):
            return conversation
        if options.prestart:
            async with self._room_for(conversation):
                conversation.prestart()
        return conversation.conversation_id

    async def submit_user_message(
        self, conversation_id: str, content: Sequence[ContentBlock], options: TurnOptions | None = None
    ) -> str:
        conversation = await self._conversation(conversation_id, to_write=True)
        async with self._room_for(conversation):
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
        conversation = await self._conversation(conversation_id, to_write=True)
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
        if self._house.policy is not None:  # what the peer decides itself never comes by the house's own policy
            options = conversation.options
            policy = narrowed(policy, self._house.policy, connector=options.connector, cwd=options.cwd or ".")
        await conversation.delegate_request_policy(policy)

    # ConversationDirectory

    async def list_conversations(self) -> list[ConversationInfo]:
        here = {conversation.conversation_id: conversation.info() for conversation in self._owned()}
        if self._house.store is None:
            return sorted(here.values(), key=lambda info: info.updated_at, reverse=True)
        records = await self._house.store.list_conversations(self._owner)
        now = self._house.clock()
        return [here.get(record.conversation_id) or info_of(record, now) for record in records]

    async def get_conversation(self, conversation_id: str) -> ConversationInfo:
        found = await self._look_up(conversation_id)
        return found.info() if isinstance(found, Conversation) else info_of(found, self._house.clock())

    async def list_requests(self) -> list[OpenRequest]:
        here = {conversation.conversation_id: conversation.open_requests() for conversation in self._owned()}
        elsewhere = [] if self._house.store is None else await self._house.store.list_requests(self._owner)
        waiting = [request for requests in here.values() for request in requests]
        now = self._house.clock()
        return waiting + [one for one in elsewhere if one.conversation_id not in here and not is_overdue(one, now)]

    async def fork_conversation(self, conversation_id: str) -> str:
        """A new conversation with the same options that knows what this one knew at the end of its last turn."""
        origin = await self._conversation(conversation_id)
        connector = self._house.registry.connector(origin.connector_name)
        if not origin.capabilities.fork or not isinstance(connector, Forks):
            raise NotSupported(f"connector '{origin.info().connector}' cannot fork a conversation")
        options = origin.options.model_copy(update={"client_key": None, "prestart": False})
        fork = await self._create(connector, options, origin.capabilities)
        if isinstance(fork, str):
            return fork
        await fork.fork_from(origin, connector.forked(origin.remembered()))
        return fork.conversation_id

    async def delete_conversation(self, conversation_id: str) -> None:
        conversation = await self._conversation(conversation_id, to_write=True)
        await self.end_conversation(conversation_id)
        self._forget(conversation)
        if self._house.store is not None:
            await self._house.store.delete(conversation_id)

    async def export_conversation(self, conversation_id: str) -> ConversationExport:
        found = await self._look_up(conversation_id)
        conversation = found if isinstance(found, Conversation) else await self._load(found, None)
        return await conversation.export()

    # inside

    def _open_group(self) -> TaskGroup:
        if self._house.group is None:
            raise RuntimeError("LocalHarness is used before 'async with'")
        return self._house.group

    def _open_store(self) -> Store:
        if self._house.store is None:
            raise RuntimeError("this harness has no journal")
        return self._house.store

    def _owned(self) -> list[Conversation]:
        return [c for c in self._house.conversations.values() if c.owner == self._owner]

    async def _create(
        self, connector: Connector, options: ConversationOptions, capabilities: LlmCapabilities
    ) -> Conversation | str:
        """The new conversation, or the id of one that another process began under the same client key."""
        now = self._house.clock()
        record = ConversationRecord(
            f"c_{uuid4().hex[:20]}",
            self._owner,
            connector.name,
            options,
            capabilities.to_json(),
            now,
            Summary(updated_at=now),
        )
        epoch = None
        if self._house.store is not None:
            kept, epoch = await self._house.store.create(record)
            if epoch is None:
                return kept.conversation_id
        return self._add(record, connector, capabilities, epoch)

    def _add(
        self, record: ConversationRecord, connector: Connector, capabilities: LlmCapabilities, epoch: int | None
    ) -> Conversation:
        house = self._house
        conversation = Conversation(
            record,
            connector,
            capabilities,
            group=self._open_group(),
            settings=house.settings,
            clock=house.clock,
            answers_first=answers_first(house.policy, connector.name, record.options.cwd) if house.policy else None,
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
        while True:
            async with self._house.loading:
                found = await self._look_up(conversation_id)
                if isinstance(found, ConversationRecord):
                    claims = to_write or found.summary.turn_is_running
                    epoch = await self._claim(conversation_id) if claims else None
                    if epoch is not None:
                        await self._reap(self._open_store(), [found])
                    return await self._load(found, epoch)
            if not await found.closed():
                return found
            self._forget(found)

    async def _look_up(self, conversation_id: str) -> Conversation | ConversationRecord:
        """Open here, or only in the journal.

        Raises:
            UnknownConversation: neither, or somebody else's.
        """
        conversation = self._house.conversations.get(conversation_id)
        if conversation is not None and conversation.owner == self._owner:
            return conversation
        store = self._house.store
        record = None if store is None else await store.find(conversation_id, self._owner)
        if conversation is not None or record is None:
            raise UnknownConversation(f"no conversation '{conversation_id}'")
        return record

    async def _claim(self, conversation_id: str) -> int:
        if self._house.is_closing:
            raise ConversationInUse(f"this process is about to end: go on with '{conversation_id}' in the next one")
        return await self._open_store().claim(conversation_id)

    async def _load(self, record: ConversationRecord, epoch: int | None) -> Conversation:
        """The conversation as the journal has it; one that was claimed goes on here."""
        store = self._open_store()
        connector = self._house.registry.connector(record.connector)
        capabilities = LlmCapabilities.model_validate_json(record.capabilities_json)
        past = past_of(await store.entries(record.conversation_id))
        conversation = self._add(record, connector, capabilities, epoch)
        try:
            conversation.recall(past, store)
            if epoch is None:
                self._forget(conversation)
                return conversation
            await conversation.go_on(past)
        except BaseException:
            self._forget(conversation)
            if epoch is not None:
                with anyio.CancelScope(shield=True):
                    await store.release(record.conversation_id, epoch)
            raise
        return conversation

    async def _take_up_abandoned(self) -> None:
        """What dead processes left: their peers are ended, and overdue requests are closed before anything is shown."""
        store = self._house.store
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
                if record.summary.turn_is_running and self._house.takes_up_turns:
                    await self._load(record, epoch)
                else:
                    await store.release(record.conversation_id, epoch)
            except HarnessError as error:
                logger.warning("conversation '%s' cannot be taken up: %s", record.conversation_id, error)

    async def _reap(self, store: Store, records: Sequence[ConversationRecord]) -> None:
        """All at once: each connector waits for the ends of its peers only once."""
        for name in sorted({record.connector for record in records}):
            try:
                connector = self._house.registry.connector(name)
            except HarnessError as error:
                logger.warning("what connector '%s' left running cannot be ended: %s", name, error)
                continue
            if isinstance(connector, Reaps):
                ids = [record.conversation_id for record in records if record.connector == name]
                await connector.reap([one for each in ids for one in await store.remembered(each)])

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
        hops = passed_on(joined(self._hops, options.hops), self._house.instance_id)
        connector, resolved = self._house.registry.resolve(options)
        self._check_rights(connector, options)
        return connector, resolved.model_copy(update={"hops": list(hops)})

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

    @asynccontextmanager
    async def _room_for(self, conversation: Conversation) -> AsyncGenerator[None]:
        """Where the number of peers is limited, the one that was idle longest makes room; its conversation stays."""
        limit = self._house.settings.max_sessions
        if limit is None or conversation.has_session:
            yield
            return
        async with self._house.starting:  # nobody else starts one between the count and the start
            while len(serving := [c for c in self._house.conversations.values() if c.has_session]) >= limit:
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
        if self._house.store is not None:
            self._forget(conversation)

    async def _forget_idle_conversations(self) -> None:
        """Sleeps until the oldest idle conversation is due; without a journal nobody could come back to it later."""
        ttl_ms = int(self._house.settings.idle_ttl_seconds * 1000)
        while True:
            now = self._house.clock()
            for conversation in list(self._house.conversations.values()):
                since = conversation.idle_since()  # asked anew: ending the one before took its time
                if since is not None and now >= since + ttl_ms:
                    await conversation.end(ConversationState.PARKED)
                    self._forget(conversation)
            # a conversation that begins or ends meanwhile cannot be due before one more time to live has passed
            idle = (c.idle_since() for c in self._house.conversations.values())
            due = min((since + ttl_ms for since in idle if since is not None), default=now + ttl_ms)
            await anyio.sleep(max(0.0, (due - self._house.clock()) / 1000))
