"""The scripted peer of one conversation: it remembers which turn it is in and what it was told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import anyio
from pydantic import TypeAdapter

from connectors.fake.echo import echo
from connectors.fake.performance import Part, Performance
from connectors.fake.requests import heard
from connectors.fake.script import Script
from harness.connector import SessionGone, SessionLog, TurnSink
from harness.contract.capabilities import Resume
from harness.contract.content import ContentBlock
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.requests import HostRequest, HostResponse
from harness.errors import Internal

_CONTENT: TypeAdapter[list[ContentBlock]] = TypeAdapter(list[ContentBlock])


@dataclass(frozen=True, slots=True)
class Seen:
    """Something that reached the peer, in the order it came: a test's view from the other side."""

    what: Literal["opened", "message", "answer", "interrupt", "closed"]
    value: object = None
    """The message's content, or the `HostResponse`."""


OnSeen: TypeAlias = Callable[[Seen], None]


class FakeSession:
    """Runs one `Performance` per turn.

    What is in its log: `{"turn", "content"}` when a turn begins, `{"step"}` before each step where open turns survive
    (`resume: exact`), `{"result"}` for each answer where the peer's memory survives.
    """

    def __init__(
        self, script: Script, options: ConversationOptions, delegation: Delegation, log: SessionLog, on_seen: OnSeen
    ) -> None:
        self._script = script
        self._options = options
        self._delegation = delegation
        self._log = log
        self._on_seen = on_seen
        self._results: dict[str, str] = {}
        self._turn = 0
        self._step = 0
        self._content: list[ContentBlock] = []
        self._performance: Performance | None = None
        self._is_dead = False
        for record in cast(Sequence[Mapping[str, Any]], log.records()):
            self._recall(record)

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        if self._is_dead:
            raise SessionGone
        self._turn += 1
        self._content = list(content)
        self._on_seen(Seen("message", tuple(content)))
        self._log.append({"turn": self._turn, "content": _CONTENT.dump_python(self._content, mode="json")})
        await self._perform(self._new_performance(options, sink), first_step=0)

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        performance = self._new_performance(options, sink)
        for accepted in self._log.answers():
            performance.recall(accepted.request, accepted.response)
        await self._perform(performance, first_step=self._step)

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        if self._performance is None:
            raise Internal(f"an answer to '{request.request_id}' was delivered outside a turn")
        self._performance.deliver(request, response)

    async def interrupt(self) -> None:
        self._on_seen(Seen("interrupt"))
        if self._script.ignore_interrupt:
            await anyio.sleep_forever()
        if self._performance is not None:
            await self._performance.interrupt()

    async def _perform(self, performance: Performance, first_step: int) -> None:
        self._performance = performance
        try:
            await performance.play(first_step)
        finally:
            self._is_dead = self._is_dead or performance.peer_died
            self._performance = None

    def _new_performance(self, options: TurnOptions, sink: TurnSink) -> Performance:
        place = str(self._turn)
        steps = self._script.turn(self._turn)
        if steps is None:
            steps = echo(self._content, self._options, options, place)
        part = Part(self._script, steps, place, self._options, self._delegation, self._results)
        return Performance(part, sink, on_answer=self._on_answer, on_step=self._on_step)

    def _on_answer(self, request: HostRequest, response: HostResponse) -> None:
        self._on_seen(Seen("answer", response))
        text = heard(request, response)
        names = [name for name in (request.call_id, request.peer_request_id) if name is not None]
        self._results.update(dict.fromkeys(names, text))
        if self._script.resume != Resume.NONE:
            self._log.append({"result": names, "text": text})

    def _on_step(self, number: int) -> None:
        if self._script.resume == Resume.EXACT:
            self._log.append({"step": number})

    def _recall(self, record: Mapping[str, Any]) -> None:
        if "turn" in record:
            self._turn, self._step = record["turn"], 0
            self._content = _CONTENT.validate_python(record["content"])
        elif "step" in record:
            self._step = record["step"]
        else:
            self._results.update(dict.fromkeys(record["result"], record["text"]))
