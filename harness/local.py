"""`LocalHarness`: every connector of this installation as a `ConversationalLLM`, in this process."""

from __future__ import annotations

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

from harness.connector import Connector
from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock
from harness.contract.delegation import PolicyMode, RequestPolicy
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import ConversationExport, ConversationInfo, TurnState
from harness.contract.tools import ToolSourceDescriptor, ToolSourceKind
from harness.conversation import Conversation
from harness.conversation.checks import check_options, parsed_object
from harness.conversation.running_turn import Clock
from harness.errors import Forbidden, NotSupported, UnknownConversation, unwrapped
from harness.registry import Registry
from harness.settings import Rights, Settings

LOCAL_OWNER = "local"
_WIDENING_MODES = frozenset({PolicyMode.ACCEPT_EDITS, PolicyMode.BYPASS})


def wall_clock() -> int:
    """Milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


@dataclass
class _House:
    """What all owners of one harness share."""

    registry: Registry
    settings: Settings
    clock: Clock
    default_connector: str | None
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
    ) -> None:
        self._house = _House(registry or Registry(), settings or Settings(), clock, default_connector)
        self._owner = LOCAL_OWNER
        self._rights = Rights()
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        self._stack.enter_context(unwrapped())
        self._house.group = await self._stack.enter_async_context(anyio.create_task_group())
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
        known = self._known_client_key(options.client_key)
        if known is not None:
            return known
        connector, resolved = self._resolve(options)
        capabilities = await connector.get_capabilities(resolved)
        check_options(resolved, capabilities)
        # the look-up above may be old by now: another call with the same key may have begun meanwhile
        known = self._known_client_key(options.client_key)
        if known is not None:
            return known
        tools = sorted(resolved.tools, key=lambda tool: tool.name)
        conversation = Conversation(
            f"c_{uuid4().hex[:20]}",
            self._owner,
            resolved.model_copy(update={"tools": tools}),
            connector,
            capabilities,
            group=self._open_group(),
            settings=self._house.settings,
            clock=self._house.clock,
        )
        self._house.conversations[conversation.conversation_id] = conversation
        if options.client_key is not None:
            self._house.by_client_key[self._owner, options.client_key] = conversation.conversation_id
        if options.prestart:
            conversation.prestart()
        return conversation.conversation_id

    async def submit_user_message(
        self, conversation_id: str, content: Sequence[ContentBlock], options: TurnOptions | None = None
    ) -> str:
        return self._conversation(conversation_id).submit(content, options or TurnOptions())

    async def poll_turn(
        self,
        conversation_id: str,
        turn_id: str,
        since_sequence_no: int = 0,
        max_wait_ms: int = 0,
        max_items: int = 1000,
    ) -> TurnState:
        conversation = self._conversation(conversation_id)
        return await conversation.poll(turn_id, since_sequence_no, max_wait_ms, max_items)

    async def submit_responses(self, conversation_id: str, turn_id: str, responses: Sequence[HostResponse]) -> None:
        self._conversation(conversation_id).respond(turn_id, responses)

    async def cancel_turn(self, conversation_id: str, turn_id: str) -> None:
        self._conversation(conversation_id).cancel(turn_id)

    async def end_conversation(self, conversation_id: str) -> None:
        with anyio.CancelScope(shield=True):
            await self._conversation(conversation_id).end()

    async def delegate_tool_sources(self, conversation_id: str, sources: Sequence[ToolSourceDescriptor]) -> None:
        if not self._rights.programs and any(source.kind == ToolSourceKind.MCP_STDIO for source in sources):
            raise Forbidden("this caller may not name programs: a tool source of kind 'mcp_stdio' starts one")
        self._conversation(conversation_id).delegate_tool_sources(sources)

    async def delegate_request_policy(self, conversation_id: str, policy: RequestPolicy) -> None:
        if not self._rights.programs and policy.mode in _WIDENING_MODES:
            raise Forbidden(f"this caller may not use the mode '{policy.mode}'")
        self._conversation(conversation_id).delegate_request_policy(policy)

    # ConversationDirectory

    async def list_conversations(self) -> list[ConversationInfo]:
        return [conversation.info() for conversation in self._owned()]

    async def get_conversation(self, conversation_id: str) -> ConversationInfo:
        return self._conversation(conversation_id).info()

    async def list_requests(self) -> list[OpenRequest]:
        return [request for conversation in self._owned() for request in conversation.open_requests()]

    async def fork_conversation(self, conversation_id: str) -> str:
        conversation = self._conversation(conversation_id)
        raise NotSupported(f"connector '{conversation.info().connector}' cannot fork a conversation")

    async def delete_conversation(self, conversation_id: str) -> None:
        conversation = self._conversation(conversation_id)
        await self.end_conversation(conversation_id)
        self._forget(conversation)

    async def export_conversation(self, conversation_id: str) -> ConversationExport:
        return self._conversation(conversation_id).export()

    # inside

    def _open_group(self) -> TaskGroup:
        if self._house.group is None:
            raise RuntimeError("LocalHarness is used before 'async with'")
        return self._house.group

    def _owned(self) -> list[Conversation]:
        return [c for c in self._house.conversations.values() if c.owner == self._owner]

    def _conversation(self, conversation_id: str) -> Conversation:
        conversation = self._house.conversations.get(conversation_id)
        if conversation is None or conversation.owner != self._owner:
            raise UnknownConversation(f"no conversation '{conversation_id}'")
        return conversation

    def _known_client_key(self, client_key: str | None) -> str | None:
        return None if client_key is None else self._house.by_client_key.get((self._owner, client_key))

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
                    await conversation.end()
                    self._forget(conversation)
            # a conversation that begins or ends meanwhile cannot be due before one more time to live has passed
            due = min((since + ttl_ms for since in idle.values() if now < since + ttl_ms), default=now + ttl_ms)
            await anyio.sleep((due - now) / 1000)
