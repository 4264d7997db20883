"""What the contract costs: `python -m contract_tests.benchmarks.turns`.

A session that does nothing itself asks for tool calls one after the other, then streams deltas; the host polls and
answers, in process and over HTTP. Both ends share one process, so a figure over HTTP has both ends' work in it.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

import anyio
import anyio.lowlevel

from harness.connector import SessionLog, TurnSink
from harness.contract import (
    TERMINAL,
    ContentBlock,
    ConversationalLLM,
    ConversationOptions,
    Delegation,
    HostRequest,
    HostResponse,
    LlmCapabilities,
    TextBlock,
    ToolDescriptor,
    TurnOptions,
)
from harness.local import LocalHarness
from harness.registry import Registry
from harness.remote import RemoteHarness
from harness.surfaces.server import local_token, serve
from harness.turn.events import TurnEnded, text_delta

ROUNDS = 1_000
DELTAS = 50_000
READ = 100
"""Deltas between two looks at the event loop, as a reader has them that takes what the pipe holds."""


class Busy:
    """A session whose peer costs nothing."""

    def __init__(self) -> None:
        self.round_trips: list[float] = []

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        for number in range(ROUNDS):
            request = HostRequest(
                kind="tool_call", call_id=f"c{number}", peer_request_id=f"p{number}", tool_name="x", arguments_json="{}"
            )
            begun = time.perf_counter()
            async with sink.ask(request):
                self.round_trips.append(time.perf_counter() - begun)
        for number in range(DELTAS):
            sink.emit(text_delta("x" * 120, item_id="m"))
            if number % READ == 0:
                await anyio.lowlevel.checkpoint()
        sink.emit(TurnEnded())

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        raise AssertionError("never resumed")

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        raise AssertionError("asked, never raised")

    async def interrupt(self) -> None:
        raise AssertionError("never cancelled")


class BusyConnector:
    name = "busy"
    variants: dict[str, dict[str, object]] = {}
    restricted_options: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.session = Busy()

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        return LlmCapabilities(supports_tools=True)

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[Busy]:
        yield self.session


async def measure(llm: ConversationalLLM, session: Busy, name: str) -> None:
    options = ConversationOptions(connector="busy", tools=[ToolDescriptor(name="x")])
    conversation = await llm.begin_conversation(options)
    turn = await llm.submit_user_message(conversation, [TextBlock(text="go")])
    since, polls, streaming_from = 0, 0, 0.0
    while True:
        state = await llm.poll_turn(conversation, turn, since, 10_000, 100_000)
        since, polls = state.sequence_no, polls + 1
        if state.status in TERMINAL:
            break
        answers = [
            HostResponse(request_id=r.request_id, content=[TextBlock(text="ok")]) for r in state.pending_requests
        ]
        if answers:
            await llm.submit_responses(conversation, turn, answers)
            streaming_from = time.perf_counter()
    rate = DELTAS / (time.perf_counter() - streaming_from)
    median, worst = statistics.median(session.round_trips), statistics.quantiles(session.round_trips, n=100)[-1]
    trip = f"call round trip p50 {median * 1e3:.2f} ms, p99 {worst * 1e3:.2f} ms"
    print(f"{name:<12} {trip}; {rate:,.0f} deltas/s; {polls} polls")


async def main() -> None:
    connector = BusyConnector()
    async with LocalHarness(Registry({"busy": connector})) as harness:
        await measure(harness, connector.session, "in process")
        connector.session = Busy()
        token = local_token()
        async with (
            serve(harness, host="127.0.0.1", port=0, tokens=[token]) as server,
            RemoteHarness(server.url, token=token.secret) as remote,
        ):
            await measure(remote, connector.session, "over HTTP")


def start_times() -> None:
    """Whole processes, the median of five."""
    for what in (["-c", "pass"], ["-c", "import harness"], ["-c", "from harness.cli import main; main()", "--help"]):
        times: list[float] = []
        for _ in range(5):
            begun = time.perf_counter()
            subprocess.run([sys.executable, *what], check=True, capture_output=True)
            times.append(time.perf_counter() - begun)
        print(f"python {' '.join(what):<52} {statistics.median(times) * 1e3:.0f} ms")


if __name__ == "__main__":
    start_times()
    anyio.run(main)
