"""`RemoteHarness`: the conversations of a server as a `ConversationalLLM`, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlsplit

import anyio
from anyio.abc import TaskGroup

from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import ContentBlock
from harness.contract.delegation import RequestPolicy
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.output import TERMINAL
from harness.contract.requests import HostResponse, OpenRequest
from harness.contract.state import ConversationExport, ConversationInfo, TurnState
from harness.contract.tools import ToolSourceDescriptor
from harness.errors import InvalidArgument, unwrapped
from harness.remote.server_connection import ServerConnection
from harness.remote.turn_feed import TurnFeed
from harness.server_record import is_loopback
from harness.wire.bodies import (
    ConnectorInfo,
    ConnectorList,
    ConversationCreated,
    ConversationList,
    RequestList,
    Responses,
    ToolSources,
    TurnCreated,
    UserMessage,
)
from harness.wire.hops import HOPS_HEADER, write_hops

MAX_WAIT_MS = 60_000


class RemoteHarness:
    """The same operations with the same meaning, ids and errors as in process.

    A turn that is waited for is read over one event stream, which all its pollers share. The token of a server that
    this user runs on this machine is found by itself. A server that is gone is `PeerLost` at once.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self._connection = ServerConnection(url, token)
        self._host = urlsplit(url).hostname or ""
        self._feeds: dict[str, TurnFeed] = {}
        self._group: TaskGroup | None = None
        self._stack = AsyncExitStack()

    @property
    def is_elsewhere(self) -> bool:
        """Whether the server's files are on another machine, as far as its address tells."""
        return not is_loopback(self._host)

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        self._stack.enter_context(unwrapped())
        await self._stack.enter_async_context(self._connection)
        self._group = await self._stack.enter_async_context(anyio.create_task_group())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self._group is not None:
            self._group.cancel_scope.cancel()
        return await self._stack.__aexit__(kind, error, traceback)

    # ConversationalLLM

    async def get_capabilities(self, options: ConversationOptions | None = None) -> LlmCapabilities:
        hops = _hops_of(options)
        return await self._connection.call_for(LlmCapabilities, "POST", "/v1/capabilities", options, headers=hops)

    async def begin_conversation(self, options: ConversationOptions) -> str:
        path, hops = "/v1/conversations", _hops_of(options)
        created = await self._connection.call_for(ConversationCreated, "POST", path, options, headers=hops)
        return created.conversation_id

    async def submit_user_message(
        self, conversation_id: str, content: Sequence[ContentBlock], options: TurnOptions | None = None
    ) -> str:
        message = UserMessage(content=list(content), options=options)
        path = f"{_conversation(conversation_id)}/turns"
        return (await self._connection.call_for(TurnCreated, "POST", path, message)).turn_id

    async def poll_turn(
        self,
        conversation_id: str,
        turn_id: str,
        since_sequence_no: int = 0,
        max_wait_ms: int = 0,
        max_items: int = 1000,
    ) -> TurnState:
        if max_items < 1 or since_sequence_no < 0:
            raise InvalidArgument("'max_items' must be at least 1 and 'since_sequence_no' at least 0")
        wait_ms = min(max_wait_ms, MAX_WAIT_MS)
        feed = self._feed(conversation_id, turn_id, since_sequence_no) if wait_ms > 0 else None
        if feed is not None:
            state = await self._from_feed(feed, conversation_id, since_sequence_no, wait_ms, max_items)
            if state is not None:
                return state
            wait_ms = 0
        params = {"since_sequence_no": since_sequence_no, "max_wait_ms": wait_ms, "max_items": max_items}
        return await self._connection.get(TurnState, _turn(conversation_id, turn_id), params, wait_ms=wait_ms)

    async def submit_responses(self, conversation_id: str, turn_id: str, responses: Sequence[HostResponse]) -> None:
        body = Responses(responses=list(responses))
        await self._connection.call("POST", f"{_turn(conversation_id, turn_id)}/responses", body)
        feed = self._feeds.get(conversation_id)
        if feed is not None and feed.turn_id == turn_id:
            feed.note_answers(response.request_id for response in responses)

    async def cancel_turn(self, conversation_id: str, turn_id: str) -> None:
        await self._connection.call("POST", f"{_turn(conversation_id, turn_id)}/cancel")
        feed = self._feeds.get(conversation_id)
        if feed is not None and feed.turn_id == turn_id:
            feed.note_cancel()

    async def end_conversation(self, conversation_id: str) -> None:
        await self._connection.call("POST", f"{_conversation(conversation_id)}/end")

    async def delegate_tool_sources(self, conversation_id: str, sources: Sequence[ToolSourceDescriptor]) -> None:
        body = ToolSources(tool_sources=list(sources))
        await self._connection.call("PUT", f"{_conversation(conversation_id)}/tool-sources", body)

    async def delegate_request_policy(self, conversation_id: str, policy: RequestPolicy) -> None:
        await self._connection.call("PUT", f"{_conversation(conversation_id)}/request-policy", policy)

    # ConversationDirectory

    async def list_conversations(self) -> list[ConversationInfo]:
        return (await self._connection.get(ConversationList, "/v1/conversations")).conversations

    async def get_conversation(self, conversation_id: str) -> ConversationInfo:
        return await self._connection.get(ConversationInfo, _conversation(conversation_id))

    async def list_requests(self) -> list[OpenRequest]:
        return (await self._connection.get(RequestList, "/v1/requests")).requests

    async def fork_conversation(self, conversation_id: str) -> str:
        path = f"{_conversation(conversation_id)}/fork"
        return (await self._connection.call_for(ConversationCreated, "POST", path)).conversation_id

    async def delete_conversation(self, conversation_id: str) -> None:
        await self._connection.call("DELETE", _conversation(conversation_id))
        self._feeds.pop(conversation_id, None)  # what still reads it hears from the server

    async def export_conversation(self, conversation_id: str) -> ConversationExport:
        return await self._connection.get(ConversationExport, f"{_conversation(conversation_id)}/export")

    # the server itself

    async def list_connectors(self) -> list[ConnectorInfo]:
        """What `ConversationOptions.connector` may name there."""
        return (await self._connection.get(ConnectorList, "/v1/connectors")).connectors

    # inside

    async def _from_feed(
        self, feed: TurnFeed, conversation_id: str, since: int, wait_ms: int, max_items: int
    ) -> TurnState | None:
        """Null when the wait was in vain or only the server can tell: then it is asked without a wait."""
        with anyio.move_on_after(wait_ms / 1000):
            state = await feed.newer_than(since, max_items)
            if state is not None and state.status in TERMINAL and self._feeds.get(conversation_id) is feed:
                del self._feeds[conversation_id]
            return state
        return None

    def _feed(self, conversation_id: str, turn_id: str, since: int) -> TurnFeed | None:
        """The feed of this turn; null when a feed reads another turn of the conversation, which is rare."""
        if self._group is None:
            raise RuntimeError("RemoteHarness is used before 'async with'")
        feed = self._feeds.get(conversation_id)
        if feed is not None and feed.turn_id == turn_id and (feed.is_over or not feed.is_closed):
            return feed
        if feed is not None and not feed.is_closed:
            return None
        feed = self._feeds[conversation_id] = TurnFeed(
            self._connection, _turn(conversation_id, turn_id), turn_id, since
        )
        self._group.start_soon(self._run, conversation_id, feed)
        return feed

    async def _run(self, conversation_id: str, feed: TurnFeed) -> None:
        await feed.run()
        if not feed.is_over and self._feeds.get(conversation_id) is feed:
            del self._feeds[conversation_id]


def _hops_of(options: ConversationOptions | None) -> dict[str, str]:
    """For whoever looks at requests only: the options have them too."""
    return {HOPS_HEADER: write_hops(options.hops)} if options is not None and options.hops else {}


def _conversation(conversation_id: str) -> str:
    return f"/v1/conversations/{quote(conversation_id, safe='')}"


def _turn(conversation_id: str, turn_id: str) -> str:
    return f"{_conversation(conversation_id)}/turns/{quote(turn_id, safe='')}"
