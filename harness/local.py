"""`LocalHarness`: every connector of this installation as a `ConversationalLLM`, in this process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import anyio

from harness.connector import Connector, Forks
from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock
from harness.contract.delegation import PolicyMode, RequestPolicy
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import ConversationExport, ConversationInfo, TurnState
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.conversation import Conversation
from harness.conversation.checks import check_options, parsed_object
from harness.conversation.deadlines import Clock
from harness.errors import (
    Forbidden,
    NotSupported,
    unwrapped,
)
from harness.house import House, wall_clock
from harness.policy import Policy, narrowed
from harness.registry import Registry
from harness.settings import Rights, Settings
from harness.store.port import ConversationRecord, Store, Summary
from harness.wire.hops import joined, passed_on

logger = logging.getLogger(__name__)

LOCAL_OWNER = "local"
_WIDENING_MODES = frozenset({PolicyMode.ACCEPT_EDITS, PolicyMode.BYPASS})


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
        self._house = House(
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
        await self._house.take_up_abandoned()
        self._house.group.start_soon(self._house.forget_idle_conversations)
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
        """The end of the house: every conversation of every owner is closed, and none is taken up again.

        A turn that another process can go on with exactly stays as it is in the journal; any other is cancelled.
        """
        await self._house.leave_all()

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
            async with self._house.room_for(conversation):
                conversation.prestart()
        return conversation.conversation_id

    async def submit_user_message(
        self, conversation_id: str, content: Sequence[ContentBlock], options: TurnOptions | None = None
    ) -> str:
        conversation = await self._conversation(conversation_id, to_write=True)
        async with self._house.room_for(conversation):
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
            self._house.forget(conversation)

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
        found = await self._house.look_up(conversation_id, self._owner)
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
        self._house.forget(conversation)
        if self._house.store is not None:
            await self._house.store.delete(conversation_id)

    async def export_conversation(self, conversation_id: str) -> ConversationExport:
        found = await self._house.look_up(conversation_id, self._owner)
        conversation = found if isinstance(found, Conversation) else await self._house.load(found, None)
        return await conversation.export()

    # inside

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
        return self._house.add(record, connector, capabilities, epoch)

    async def _conversation(self, conversation_id: str, *, to_write: bool = False) -> Conversation:
        return await self._house.conversation(conversation_id, self._owner, to_write=to_write)

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
