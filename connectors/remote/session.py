"""One conversation of another harness as a `Session`: follows its turns and carries answers and cancels to it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup, TaskStatus

from connectors.remote.protocol import TurnReader
from harness.connector import SessionGone, TurnSink
from harness.contract.content import ContentBlock
from harness.contract.options import TurnOptions
from harness.contract.output import TERMINAL
from harness.contract.requests import HostRequest, HostResponse
from harness.errors import (
    AlreadyAnswered,
    HarnessError,
    Internal,
    NotSupported,
    TurnInProgress,
    Unauthorized,
    UnknownConversation,
    UnknownRequest,
    unwrapped,
)
from harness.remote import RemoteHarness
from harness.turn.events import OutputProduced, RequestRaised, RequestWithdrawn, TurnEvent, TurnFailed

WAIT_MS = 60_000
CLOSE_SECONDS = 5.0
"""How long the other side may take to hear that a turn or conversation here is over."""

logger = logging.getLogger(__name__)


class RemoteSession:
    """Runs one `_Following` per turn; `announcement` is told with the first.

    Requests wait in `tasks`, which outlive a turn that broke off: it is the turn that says what became of them.
    """

    def __init__(
        self, llm: RemoteHarness, conversation_id: str, tasks: TaskGroup, announcement: OutputProduced
    ) -> None:
        self._llm = llm
        self._conversation_id = conversation_id
        self._tasks = tasks
        self._announcement: tuple[OutputProduced, ...] = (announcement,)
        self._turn: _Following | None = None

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        turn = self._turn = _Following(self._llm, self._conversation_id, self._tasks, sink)
        try:
            turn_id = await self._submit(content, options)
            announcement, self._announcement = self._announcement, ()
            sink.emit(*announcement)
            await turn.follow(turn_id)
        finally:
            self._turn = None
            turn.over.set()

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        raise NotSupported("connector 'remote' cannot go on with a turn of a process that died")

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        raise Internal(f"an answer to '{request.request_id}' was delivered, and nothing waits for it")

    async def interrupt(self) -> None:
        """Returns when the turn is over on the other side too."""
        if self._turn is not None:
            self._turn.cancel_asked.set()
            await self._turn.over.wait()

    async def _submit(self, content: Sequence[ContentBlock], options: TurnOptions) -> str:
        # a key of our own: the same message again is another turn, however short the time between them
        onward = options.model_copy(update={"client_key": f"turn_{uuid4().hex}"})
        try:
            try:
                return await self._llm.submit_user_message(self._conversation_id, content, onward)
            except TurnInProgress as error:  # a process of ours that died has left it
                await self._end_turn(str(error.detail.get("turn_id")))
                return await self._llm.submit_user_message(self._conversation_id, content, onward)
        except (UnknownConversation, Unauthorized) as error:  # another server is there now
            logger.info("the other harness does not know '%s' any more: %s", self._conversation_id, error.message)
            raise SessionGone from error

    async def _end_turn(self, turn_id: str) -> None:
        await self._llm.cancel_turn(self._conversation_id, turn_id)
        since = 0
        while (
            state := await self._llm.poll_turn(self._conversation_id, turn_id, since, WAIT_MS)
        ).status not in TERMINAL:
            since = state.sequence_no


class _Following:
    """One turn of the other harness, followed to its end."""

    def __init__(self, llm: RemoteHarness, conversation_id: str, tasks: TaskGroup, sink: TurnSink) -> None:
        self.cancel_asked = anyio.Event()
        self.over = anyio.Event()
        self._llm = llm
        self._conversation_id = conversation_id
        self._turn_id = ""
        self._tasks = tasks
        self._sink = sink
        self._reading = anyio.CancelScope()
        self._failure: HarnessError | None = None
        """Why an answer could not be given: the peer would wait for it forever."""
        self._reader = TurnReader()
        self._asking: dict[str, anyio.CancelScope] = {}

    async def follow(self, turn_id: str) -> None:
        """Raises:
        HarnessError: the turn failed there, or the other harness is gone.
        """
        self._turn_id = turn_id
        try:
            with unwrapped():
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._cancel_when_asked)
                    with self._reading:
                        while not self._reader.is_over:
                            await self._read()
                    tasks.cancel_scope.cancel()
            if self._failure is not None:
                raise self._failure
        finally:
            if not self._reader.is_over:
                await self._give_up()

    async def _read(self) -> None:
        state = await self._llm.poll_turn(self._conversation_id, self._turn_id, self._reader.since, WAIT_MS)
        together: list[TurnEvent] = []
        for event in self._reader.receive(state):
            if isinstance(event, RequestRaised):
                self._sink.emit(*together)
                together.clear()
                await self._tasks.start(self._ask, event.request)
            elif isinstance(event, RequestWithdrawn):
                self._asking.pop(event.peer_request_id).cancel()
            elif isinstance(event, TurnFailed):
                self._sink.emit(*together)
                raise event.error
            else:
                together.append(event)
        self._sink.emit(*together)

    async def _ask(self, request: HostRequest, *, task_status: TaskStatus[None]) -> None:
        """The answer counts as delivered when the other harness has accepted it."""
        with anyio.CancelScope() as scope:
            self._asking[request.peer_request_id or ""] = scope
            task_status.started()  # whoever waits for this goes on when the request is raised: until then nothing waits
            try:
                async with self._sink.ask(request) as response:
                    await self._answer(request, response)
            except HarnessError as error:
                self._failure = error
                self._reading.cancel()

    async def _answer(self, request: HostRequest, response: HostResponse) -> None:
        request_id = self._reader.answer(request)
        if request_id is None:
            return
        answer = response.model_copy(update={"request_id": request_id})
        try:
            await self._llm.submit_responses(self._conversation_id, self._turn_id, [answer])
        except (AlreadyAnswered, UnknownRequest) as error:  # it has crossed a deadline or a policy of the other side
            logger.info("the answer to '%s' came too late: %s", request_id, error.message)

    async def _cancel_when_asked(self) -> None:
        await self.cancel_asked.wait()
        self._reader.cancel()
        await self._llm.cancel_turn(self._conversation_id, self._turn_id)

    async def _give_up(self) -> None:
        """Nobody here follows the turn any more: it shall not go on alone."""
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            try:
                await self._llm.cancel_turn(self._conversation_id, self._turn_id)
            except HarnessError as error:
                logger.info("turn '%s' of the other harness was not cancelled: %s", self._turn_id, error.message)
