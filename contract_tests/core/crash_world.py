"""One life of a harness that may be killed at any write, with its host and its peer. Each life is a process of its own.

What the host was told and what the peer received goes line by line to a file that survives the process; `crash_oracle`
compares them. The scenario has a turn with parallel calls, an approval, a question that expires and a call alone, and
a turn that is cancelled while two calls are open.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import anyio
import anyio.lowlevel

from connectors.fake import FakeConnector
from connectors.fake.connector import Seen
from harness.contract import (
    TERMINAL,
    ConversationalLLM,
    ConversationOptions,
    HostRequest,
    HostResponse,
    Timeouts,
    ToolDescriptor,
    TurnOptions,
    TurnState,
    as_content,
)
from harness.contract.content import text_of
from harness.conversation import journal as journal_module
from harness.conversation.conversation import Conversation
from harness.conversation.journal import Journal, Then
from harness.local import LocalHarness, wall_clock
from harness.registry import Registry
from harness.store import ConversationRecord, Entry, SqliteStore, Summary

TOOLS = [ToolDescriptor(name="look"), ToolDescriptor(name="act")]
APPROVAL_MS = 3_600_000
WAIT_MS = 20_000
MESSAGES = ("first", "second")


@dataclass(frozen=True)
class Death:
    """The process is killed at its write number `at`: before it, or after it and before anybody hears of it."""

    at: int
    when: Literal["before", "after"]


@dataclass(frozen=True)
class Plan:
    resume: str = "exact"
    style: str = "emit"
    answers: Sequence[int] = (0, 0, 0)
    """Which of the open requests the host answers next, counted round."""
    batch: int = 1
    """How many answers go into one call."""
    cancels_after: int = 1
    """So many of the second turn's calls are answered before it is cancelled."""
    pauses: Sequence[int] = (0,)
    """How long each write takes, in turns of the loop."""
    is_late: bool = False
    """The next life begins after every deadline."""
    declines: bool = False
    """The host declines the question, which expires otherwise."""
    fault: Literal["release before append", "accept before append"] | None = None
    """What a broken build does."""


@dataclass
class Diary:
    """Lines of JSON that outlive the process."""

    path: Path
    _file: int = field(init=False)

    def __post_init__(self) -> None:
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what: str, **facts: Any) -> None:
        os.write(self._file, json.dumps({"what": what, **facts}).encode() + b"\n")

    def saw(self, seen: Seen) -> None:
        value = seen.value
        if isinstance(value, HostResponse):
            self.note("peer", saw=seen.what, response=value.to_dict())
        elif seen.what == "message":
            self.note("peer", saw=seen.what, text=text_of(value))  # pyright: ignore[reportArgumentType]
        else:
            self.note("peer", saw=seen.what)


class DyingStore(SqliteStore):
    """Counts its writes and kills the process at one of them."""

    def __init__(self, path: Path, diary: Diary, death: Death | None, pauses: Sequence[int]) -> None:
        super().__init__(path)
        self._diary = diary
        self._death = death
        self._pauses = pauses
        self._writes = 0

    async def create(self, record: ConversationRecord) -> tuple[ConversationRecord, int | None]:
        await self._before()
        created = await super().create(record)
        await self._after()
        return created

    async def claim(self, conversation_id: str) -> int:
        await self._before()
        epoch = await super().claim(conversation_id)
        await self._after()
        return epoch

    async def release(self, conversation_id: str, epoch: int) -> None:
        await self._before()
        await super().release(conversation_id, epoch)
        await self._after()

    async def append(self, conversation_id: str, epoch: int, entries: Sequence[Entry], summary: Summary) -> None:
        await self._before()
        await super().append(conversation_id, epoch, entries, summary)
        await self._after()

    async def _before(self) -> None:
        self._writes += 1
        await self._pause()
        self._die("before")

    async def _after(self) -> None:
        self._die("after")
        self._diary.note("write", number=self._writes)
        await self._pause()

    async def _pause(self) -> None:
        for _ in range(self._pauses[self._writes % len(self._pauses)]):
            await anyio.lowlevel.checkpoint()

    def _die(self, when: str) -> None:
        if self._death is not None and (self._writes, when) == (self._death.at, self._death.when):
            self._diary.note("killed")
            os.kill(os.getpid(), signal.SIGKILL)


class Clock:
    """The wall clock, which may be turned forward over every deadline."""

    def __init__(self, is_late: bool) -> None:
        self._ahead_ms = APPROVAL_MS + 1 if is_late else 0
        self.house: LocalHarness | None = None
        self.turned = anyio.Event()
        if is_late:
            self.turned.set()

    def __call__(self) -> int:
        return wall_clock() + self._ahead_ms

    def turn(self) -> None:
        self._ahead_ms += APPROVAL_MS + 1
        self.turned.set()
        if self.house is not None:
            # who sleeps until a deadline sleeps by another clock: wake them up
            for conversation in self.house._house.conversations.values():  # pyright: ignore[reportPrivateUsage]
                for turn in conversation._turns:  # pyright: ignore[reportPrivateUsage]
                    turn.deadlines.note_moved()


def script(plan: Plan, clock: Clock) -> dict[str, Any]:
    first = [
        {"text": ["I will ", "look. "]},
        {"calls": [{"name": "look", "id": "c1"}, {"name": "look", "id": "c2"}], "wait": False},
        {"approval": {"tool": "Bash", "arguments": {"command": "ls"}}, "wait": False},
        {"wait": ["c1", "c2", "p1_3_1"]},
        {"question": {"questions": [{"id": "why", "text": "Why?"}]}, "wait": False},
        {"until": clock.turned},
        {"text": "Time passes. "},
        {"wait": "all"},
        {"calls": [{"name": "act", "id": "c3", "arguments": {"n": 1}}]},
        {"text": "c1: {{results.c1}}, c2: {{results.c2}}, c3: {{results.c3}}"},
    ]
    second = [{"calls": [{"name": "act", "id": "c1"}, {"name": "act", "id": "d2"}]}, {"text": "never"}]
    return {"turns": [first, second], "repeat": True, "resume": plan.resume, "style": plan.style}


async def live(directory: Path, plan: Plan, *, is_first: bool, death: Death | None) -> None:
    """From the start of the process to its death, or until the host has all it wanted."""
    if plan.fault is not None:
        plant(plan.fault)
    journal_module.LATER_SECONDS = 60  # so that writes follow from what happens, never from the time it takes
    diary = Diary(directory / "diary.jsonl")
    diary.note("life")
    clock = Clock(plan.is_late and not is_first)
    if not is_first:
        clock.turned.set()  # an earlier life may have turned it, and the peer waits for that only once
    connector = FakeConnector(script(plan, clock), on_seen=diary.saw)
    store = DyingStore(directory / "journal.db", diary, death, plan.pauses)
    with anyio.fail_after(10):
        async with LocalHarness(Registry({"fake": connector}), store=store, clock=clock) as llm:
            clock.house = llm
            await Host(llm, diary, plan, clock).do_all()
        diary.note("finished")


@dataclass
class Host:
    """It knows its keys and nothing else, and answers the same request in the same way in every life."""

    llm: ConversationalLLM
    diary: Diary
    plan: Plan
    clock: Clock | None = None

    async def do_all(self) -> None:
        options = ConversationOptions(
            connector="fake",
            client_key="job",
            tools=TOOLS,
            timeouts=Timeouts(approval_ms=APPROVAL_MS, idle_ms=None),
        )
        conversation_id = await self.llm.begin_conversation(options)
        self.diary.note("begun", conversation=conversation_id)
        for message in MESSAGES:
            turn_id = await self.llm.submit_user_message(
                conversation_id, as_content(message), TurnOptions(client_key=message)
            )
            self.diary.note("submitted", turn=turn_id, key=message)
            await self._serve(conversation_id, turn_id, is_cancelled=message == "second")

    async def _serve(self, conversation_id: str, turn_id: str, *, is_cancelled: bool) -> None:
        ids = (conversation_id, turn_id)
        state = await self._poll(ids, 0, 0)
        picks, answered = list(self.plan.answers), 0
        while state.status not in TERMINAL:
            if is_cancelled and answered >= self.plan.cancels_after and not state.cancel_requested:
                await self.llm.cancel_turn(*ids)
                self.diary.note("cancelled", turn=turn_id)
            elif waiting := [one for one in state.pending_requests if self._answers(one)]:
                chosen: list[HostRequest] = []
                while waiting and len(chosen) < self.plan.batch:
                    pick = picks.pop(0) if picks else 0
                    chosen.append(waiting.pop(pick % len(waiting)))
                responses = [answer_to(request) for request in chosen]
                await self.llm.submit_responses(*ids, responses)
                answered += len(responses)
                for response in responses:
                    self.diary.note("accepted", turn=turn_id, response=response.to_dict())
            elif state.pending_requests and self.clock is not None:
                self.clock.turn()
            since = state.sequence_no
            state = await self._poll(ids, since, 0)
            if state.sequence_no == since and state.status not in TERMINAL and not self._has_work(state):
                state = await self._poll(ids, since, WAIT_MS)

    def _answers(self, request: HostRequest) -> bool:
        return self.plan.declines or request.kind != "user_question"

    def _has_work(self, state: TurnState) -> bool:
        return any(self._answers(request) or self.clock is not None for request in state.pending_requests)

    async def _poll(self, ids: tuple[str, str], since: int, max_wait_ms: int) -> TurnState:
        state = await self.llm.poll_turn(*ids, since, max_wait_ms)
        self.diary.note(
            "polled",
            turn=ids[1],
            since=since,
            number=state.sequence_no,
            status=state.status,
            items=[item.to_dict() for item in state.new_output_items],
            pending=[request.request_id for request in state.pending_requests],
            error=None if state.error is None else state.error.to_dict(),
        )
        return state


def answer_to(request: HostRequest) -> HostResponse:
    if request.kind == "approval":
        return HostResponse(request_id=request.request_id, selected_option="allow_once")
    if request.kind == "user_question":
        return HostResponse(request_id=request.request_id, action="decline")
    return HostResponse(request_id=request.request_id, content=as_content(f"answer to {request.request_id}"))


def plant(fault: str) -> None:
    """Breaks this process's build."""
    if fault == "release before append":
        note = Journal.note

        def release_first(self: Journal, *entries: Entry, then: Then | None = None) -> None:
            if then is not None:
                then()
            note(self, *entries)

        Journal.note = release_first  # pyright: ignore[reportAttributeAccessIssue]
    else:

        async def do_not_wait(self: Conversation) -> None:
            await anyio.lowlevel.checkpoint()

        Conversation._flush = do_not_wait  # pyright: ignore[reportPrivateUsage]


def run_life(directory: str, plan: Plan, is_first: bool, death: Death | None) -> None:
    """The entry point of a life's process."""

    async def main() -> None:
        await live(Path(directory), plan, is_first=is_first, death=death)

    anyio.run(main)
