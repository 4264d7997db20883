"""What every `ConversationalLLM` is tried with: the same scripts, in process and over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import anyio

from connectors.fake import FakeConnector
from connectors.fake.connector import Seen
from harness.contract import (
    TERMINAL,
    ConversationOptions,
    HostResponse,
    OutputItem,
    TextDelta,
    ToolDescriptor,
    TurnOptions,
    TurnState,
    as_content,
)
from harness.local import LocalHarness
from harness.registry import Registry
from harness.remote import RemoteHarness
from harness.settings import Settings
from harness.surfaces.server import Server, serve

LLM: TypeAlias = LocalHarness | RemoteHarness
KINDS = ("local", "remote")
WAIT_MS = 30_000
TOOLS = [ToolDescriptor(name="weather"), ToolDescriptor(name="clock")]


class Peer:
    """The other side of the conversations: what reached the scripted peer."""

    def __init__(self) -> None:
        self.seen: list[Seen] = []
        self._changed = anyio.Event()

    def note(self, seen: Seen) -> None:
        self.seen.append(seen)
        self._changed.set()
        self._changed = anyio.Event()

    async def has_seen(self, what: str, times: int = 1) -> None:
        while sum(one.what == what for one in self.seen) < times:
            await self._changed.wait()

    @property
    def answers(self) -> list[HostResponse]:
        return [one.value for one in self.seen if isinstance(one.value, HostResponse)]


@asynccontextmanager
async def open_house(
    script: object, peer: Peer | None = None, *, settings: Settings | None = None
) -> AsyncGenerator[LocalHarness]:
    """A harness whose only connector follows the script (of turns, repeated)."""
    turns = {"turns": script, "repeat": True} if isinstance(script, list) else script
    connector = FakeConnector(turns, on_seen=peer.note if peer else None)
    registry = Registry({"fake": connector})
    async with LocalHarness(registry, settings=settings, default_connector="fake") as harness:
        yield harness


@asynccontextmanager
async def open_server(
    script: object, peer: Peer | None = None, *, settings: Settings | None = None, **options: Any
) -> AsyncGenerator[Server]:
    """The same over HTTP on loopback."""
    async with (
        open_house(script, peer, settings=settings) as house,
        serve(house, connectors=["fake"], **options) as server,
    ):
        yield server


@asynccontextmanager
async def open_llm(
    kind: str, script: object, peer: Peer | None = None, *, settings: Settings | None = None
) -> AsyncGenerator[LLM]:
    """One of `KINDS`."""
    if kind == "local":
        async with open_house(script, peer, settings=settings) as house:
            yield house
        return
    async with open_server(script, peer, settings=settings) as server, RemoteHarness(server.url) as remote:
        yield remote


async def begin(llm: LLM, message: str = "hello", **options: Any) -> tuple[str, str]:
    """A new conversation with a running turn."""
    conversation_id = await llm.begin_conversation(ConversationOptions(tools=TOOLS, **options))
    return conversation_id, await say(llm, conversation_id, message)


async def say(llm: LLM, conversation_id: str, message: str = "hello", options: TurnOptions | None = None) -> str:
    return await llm.submit_user_message(conversation_id, as_content(message), options)


async def until(
    llm: LLM, ids: tuple[str, str], reached: Callable[[TurnState], object], since: int = 0, max_items: int = 1000
) -> tuple[TurnState, list[OutputItem]]:
    """Polls until the turn is so; gives that state and all items after `since`."""
    items: list[OutputItem] = []
    while True:
        state = await llm.poll_turn(*ids, since, WAIT_MS, max_items)
        items += state.new_output_items
        since = state.sequence_no
        if reached(state):
            return state, items


def is_waiting(state: TurnState) -> bool:
    return state.status == "awaiting_host"


def is_over(state: TurnState) -> bool:
    return state.status in TERMINAL


async def to_end(llm: LLM, ids: tuple[str, str], answer: str = "done", since: int = 0) -> list[OutputItem]:
    """Answers every request until the turn is over; gives all items after `since`."""
    answered: set[str] = set()
    items: list[OutputItem] = []
    while True:
        state = await llm.poll_turn(*ids, since, WAIT_MS)
        items += state.new_output_items
        since = state.sequence_no
        if is_over(state):
            return items
        waiting = [request.request_id for request in state.pending_requests if request.request_id not in answered]
        answered.update(waiting)
        if waiting:
            await llm.submit_responses(*ids, results(waiting, answer))


def results(request_ids: Sequence[str], text: str = "done") -> list[HostResponse]:
    return [HostResponse(request_id=one, content=as_content(text)) for one in request_ids]


def texts(items: Sequence[OutputItem]) -> str:
    return "".join(item.text for item in items if isinstance(item, TextDelta))
