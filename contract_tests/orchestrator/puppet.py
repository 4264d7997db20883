"""A peer on strings: the test pulls them while a turn runs, in whatever order it likes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from harness.connector import SessionLog, TurnSink
from harness.contract import (
    ContentBlock,
    ConversationOptions,
    Delegation,
    HostRequest,
    HostResponse,
    LlmCapabilities,
    RequestKind,
    TurnOptions,
    TurnState,
)
from harness.errors import HarnessError
from harness.local import LocalHarness
from harness.registry import Registry
from harness.turn.events import RequestRaised, RequestWithdrawn, TurnEnded, TurnEvent, TurnFailed


class Puppet:
    """Connector and session in one: `emit` is what the peer says, `delivered` what it heard."""

    name = "puppet"
    variants: Mapping[str, Mapping[str, Any]] = {}
    restricted_options: frozenset[str] = frozenset()

    def __init__(self, **capabilities: Any) -> None:
        self.capabilities = LlmCapabilities.model_validate({"supports_tools": True, **capabilities})
        self.delivered: list[HostResponse] = []
        self.interrupts = 0
        self.is_closed = False
        self.started = anyio.Event()
        self._over = anyio.Event()
        self._sink: TurnSink | None = None

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        return self.capabilities

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Puppet]:
        try:
            yield self
        finally:
            self.is_closed = True

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        self._sink, self._over = sink, anyio.Event()
        self.started.set()
        await self._over.wait()

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        raise AssertionError("nothing resumes a puppet")

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        self.delivered.append(response)

    async def interrupt(self) -> None:
        self.interrupts += 1
        self._over.set()

    # the strings

    def emit(self, *events: TurnEvent) -> None:
        assert self._sink is not None
        self._sink.emit(*events)

    def call(self, *calls: tuple[str, str, str]) -> None:
        """A round of (tool, call id, arguments), opened together."""
        requests = [
            HostRequest(
                kind=RequestKind.TOOL_CALL, tool_name=tool, call_id=id_, peer_request_id=id_, arguments_json=arguments
            )
            for tool, id_, arguments in calls
        ]
        self.emit(*(RequestRaised(request) for request in requests))

    def withdraw(self, call_id: str) -> None:
        self.emit(RequestWithdrawn(call_id))

    def end(self) -> None:
        self.emit(TurnEnded())
        self._over.set()

    def fail(self, error: HarnessError) -> None:
        self.emit(TurnFailed(error))
        self._over.set()


class Watched(LocalHarness):
    """A harness that counts the answers of its host, and whose polls can be broken.

    With a `lag` what it says is old when it arrives, as over a network.
    """

    def __init__(self, peer: Puppet) -> None:
        super().__init__(Registry({"puppet": peer}), default_connector="puppet")
        self.submitted: list[HostResponse] = []
        self.breaks: HarnessError | None = None
        self.turn = ("", "")
        self.lag = 0

    async def submit_responses(self, conversation_id: str, turn_id: str, responses: Sequence[HostResponse]) -> None:
        self.submitted += responses
        await settle(self.lag)
        await super().submit_responses(conversation_id, turn_id, responses)
        await settle(self.lag)

    async def submit_as_another_host(self, response: HostResponse) -> None:
        await super().submit_responses(*self.turn, [response])

    async def poll_turn(
        self,
        conversation_id: str,
        turn_id: str,
        since_sequence_no: int = 0,
        max_wait_ms: int = 0,
        max_items: int = 1000,
    ) -> TurnState:
        self.turn = (conversation_id, turn_id)
        if self.breaks is not None:
            error, self.breaks = self.breaks, None
            raise error
        state = await super().poll_turn(conversation_id, turn_id, since_sequence_no, max_wait_ms, max_items)
        await settle(self.lag)
        return state


async def until(condition: Callable[[], object]) -> None:
    """Lets the other tasks go on until they have made it true."""
    while not condition():
        await checkpoint()


async def settle(steps: int = 50) -> None:
    """Lets everything in this process come to rest: by default longer than any chain of wake-ups here."""
    for _ in range(steps):
        await checkpoint()
