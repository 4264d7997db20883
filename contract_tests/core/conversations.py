"""What the tests of conversations share: a house with one connector, and sessions written as functions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio

from connectors.fake import FakeConnector
from contract_tests.llm_suite import Peer
from harness.connector import Connector, Session, SessionLog, TurnSink
from harness.contract import (
    ContentBlock,
    ConversationOptions,
    Delegation,
    HostRequest,
    HostResponse,
    LlmCapabilities,
    OutputItem,
    RequestKind,
    RequestResolved,
    TurnOptions,
)
from harness.conversation.deadlines import Clock
from harness.local import LocalHarness, wall_clock
from harness.registry import Registry
from harness.settings import Settings
from harness.store import MemoryStore, Store
from harness.turn import RequestRaised, TurnEnded

RunTurn = Callable[[TurnSink], Awaitable[None]]
STORES: dict[str, Callable[[], MemoryStore | None]] = {"no journal": lambda: None, "journal": MemoryStore}


@asynccontextmanager
async def open_house(
    script: object = None,
    peer: Peer | None = None,
    *,
    settings: Settings | None = None,
    clock: Clock = wall_clock,
    store: Store | None = None,
    seconds: float = 5,
    takes_up_turns: bool = True,
    **others: Connector,
) -> AsyncGenerator[LocalHarness]:
    """A harness with the connector `fake`, which follows the script, and others by name."""
    connectors = {"fake": FakeConnector(script, on_seen=peer.note if peer else None), **others}
    with anyio.fail_after(seconds):
        async with LocalHarness(
            Registry(connectors),
            settings=settings,
            clock=clock,
            store=store,
            default_connector="fake",
            takes_up_turns=takes_up_turns,
        ) as llm:
            yield llm


async def nothing(*_: Any) -> None:
    """Does nothing."""


@dataclass
class FunctionSession:
    """A session whose turns, deliveries and interrupts are the given functions."""

    run: RunTurn
    on_deliver: Callable[[HostRequest, HostResponse], None]
    on_interrupt: Callable[[], Awaitable[None]]

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        await self.run(sink)

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        await self.run(sink)

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        self.on_deliver(request, response)

    async def interrupt(self) -> None:
        await self.on_interrupt()


class FunctionConnector:
    """A connector for what no script can do: hang while it starts, break its own rules, raise anything anywhere."""

    name = "function"
    variants: Mapping[str, Mapping[str, Any]] = {}
    restricted_options: frozenset[str] = frozenset()

    def __init__(
        self,
        run: RunTurn = nothing,
        *,
        deliver: Callable[[HostRequest, HostResponse], None] = lambda *_: None,
        interrupt: Callable[[], Awaitable[None]] = nothing,
        start: Callable[[], Awaitable[None]] = nothing,
    ) -> None:
        self._session = FunctionSession(run, deliver, interrupt)
        self._start = start
        self.opened = 0

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        return LlmCapabilities(supports_tools=True)

    def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AbstractAsyncContextManager[Session]:
        return self._open()

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[Session]:
        self.opened += 1
        await self._start()
        yield self._session


def call(peer_request_id: str, call_id: str = "c") -> HostRequest:
    return HostRequest(kind=RequestKind.TOOL_CALL, call_id=call_id, peer_request_id=peer_request_id, tool_name="clock")


async def end_at_once(sink: TurnSink) -> None:
    sink.emit(TurnEnded())


async def call_and_wait(sink: TurnSink) -> None:
    sink.emit(RequestRaised(call("p")))
    await anyio.sleep_forever()


def outcomes(items: Sequence[OutputItem]) -> list[tuple[str, str, str | None]]:
    return [
        (item.request_id, str(item.outcome), item.answered_by) for item in items if isinstance(item, RequestResolved)
    ]


def kinds(items: Sequence[OutputItem]) -> list[str]:
    return [item.kind for item in items]
