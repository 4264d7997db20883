"""The host of one turn: follows its stream and answers each request exactly once.

A request is taken up when a poll lists it as open, and given up as soon as one no longer does: withdrawn, expired,
cancelled or answered by another host. Read-only calls run side by side, the others one after the other in the order
the model asked.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, cast

import anyio
from anyio.abc import TaskGroup

from harness.contract.capabilities import LlmCapabilities
from harness.contract.content import text_of
from harness.contract.conversational_llm import ConversationalLLM
from harness.contract.output import TERMINAL
from harness.contract.requests import HostRequest, HostResponse, RequestKind
from harness.contract.state import TurnState
from harness.contract.tools import ToolCall
from harness.errors import AlreadyAnswered, HarnessError, UnknownRequest, unwrapped
from harness.orchestrator.approvals import Decision, declined
from harness.orchestrator.caller import Caller
from harness.orchestrator.lines import ItemLine, Line, ProgressLine, RequestLine, ResponseLine, StartedLine
from harness.orchestrator.policy_desk import PolicyDesk
from harness.orchestrator.refusals import Refusal, RefusalKind
from harness.orchestrator.results import fitted
from harness.orchestrator.suspicion import marks_of
from harness.orchestrator.tool_context import Progress, ToolContext
from harness.orchestrator.tool_provider import ToolOutcome, failure
from harness.orchestrator.tool_registry import ToolRegistry
from harness.orchestrator.turn_record import TurnRecord

logger = logging.getLogger(__name__)

WAIT_MS = 60_000
"""One poll waits this long; a change ends the wait at once."""
PROGRESS_LINES = 100
"""So many wait to be shown; a tool that tells more is not slowed down, the rest is left out."""
GIVE_UP_SECONDS = 10.0
"""How long a turn that its host gives up may take to end."""

Observer: TypeAlias = Callable[[Line], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class HostSide:
    """What the host of a conversation brings to each of its turns."""

    llm: ConversationalLLM
    registry: ToolRegistry
    desk: PolicyDesk
    capabilities: LlmCapabilities
    tool_seconds: float | None = None
    """How long a tool may run once it has leave; null where the other side alone keeps the time."""
    caller: Caller | None = None
    """This run, as tools that are agents see it."""


class TurnHost:
    """Serves one turn to its end; `record` has what was seen, also when that end is an exception."""

    def __init__(
        self, side: HostSide, conversation_id: str, turn_id: str, *, observe: Observer, stop: anyio.Event | None = None
    ) -> None:
        self.record = TurnRecord(conversation_id, turn_id)
        self._side = side
        self._llm = side.llm
        self._turn = (conversation_id, turn_id)
        self._observe = observe
        self._stop = stop
        self._since = 0
        self._taken_up: set[str] = set()
        self._running: dict[str, anyio.CancelScope] = {}
        self._in_order = anyio.Lock()
        self._progress, self._progress_to_show = anyio.create_memory_object_stream[ProgressLine](PROGRESS_LINES)

    async def serve(self) -> None:
        """Returns at the turn's end. However else this ends, the turn is cancelled first.

        Raises:
            HarnessError: a call to the conversation broke.
        """
        is_over = False
        try:
            with unwrapped():
                async with self._progress, self._progress_to_show, anyio.create_task_group() as group:
                    group.start_soon(self._show_progress)
                    await self._observe(StartedLine(conversation_id=self._turn[0], turn_id=self._turn[1]))
                    if self._stop is not None:
                        group.start_soon(self._cancel_on, self._stop)
                    await self._follow(group)
                    is_over = True
                    # every request is resolved: what still runs here has nobody to work for
                    group.cancel_scope.cancel()
        finally:
            if not is_over:
                await self._give_up()

    # the stream

    async def _follow(self, group: TaskGroup) -> None:
        while True:
            state = await self._poll()
            for item in state.new_output_items:
                self.record.add(item)
                await self._observe(ItemLine(item=item))
            # while there is more, the requests are those of a moment that has passed
            if not state.has_more:
                await self._meet(state.pending_requests, group)
            if state.status in TERMINAL:
                self.record.structured_output_json = state.structured_output_json
                return

    async def _poll(self) -> TurnState:
        state = await self._llm.poll_turn(*self._turn, since_sequence_no=self._since, max_wait_ms=WAIT_MS)
        self._since = state.sequence_no
        if self._side.caller is not None:
            self._side.caller.spending.own = state.conversation_usage
        return state

    async def _meet(self, requests: Sequence[HostRequest], group: TaskGroup) -> None:
        """Gives up what is no longer open and takes up what is new, in the order the model asked."""
        open_ids = {request.request_id for request in requests}
        for request_id, scope in self._running.items():
            if request_id not in open_ids:
                scope.cancel()
        for request in requests:
            if request.request_id not in self._taken_up:
                self._taken_up.add(request.request_id)
                await self._observe(RequestLine(request=request))
                scope = self._running[request.request_id] = anyio.CancelScope()
                group.start_soon(self._answer, request, scope)

    # one request

    async def _answer(self, request: HostRequest, scope: anyio.CancelScope) -> None:
        decision: Decision | None = None
        with scope:
            decision = await self._decide(request)
        del self._running[request.request_id]
        if decision is not None and not scope.cancel_called:
            await self._submit(request, decision)

    async def _decide(self, request: HostRequest) -> Decision | None:
        if request.kind != RequestKind.TOOL_CALL:
            return await self._side.desk.decide(request)
        call = ToolCall(
            call_id=request.call_id or request.request_id,
            tool_name=request.tool_name or "",
            arguments_json=request.arguments_json or "{}",
        )
        beside_others = self._side.registry.is_read_only(call.tool_name)
        context = ToolContext(
            call.call_id, call.tool_name, partial(self._progressed, request.request_id), self._side.caller
        )
        async with nullcontext() if beside_others else self._in_order:
            outcome = await self._run(request, call, context)
        return _result(request, fitted(outcome, self._side.capabilities))

    async def _run(self, request: HostRequest, call: ToolCall, context: ToolContext) -> ToolOutcome:
        """The policy first, then the tool; a person who thinks about it takes nothing from the tool's time."""
        outcome: ToolOutcome | None = None
        with anyio.CancelScope() as tool_time:

            async def gate(call: ToolCall) -> ToolCall | ToolOutcome:
                read_only = self._side.registry.is_read_only(call.tool_name)
                allowed = await self._side.desk.gate(request, call, read_only=read_only)
                if self._side.tool_seconds is not None:
                    tool_time.deadline = anyio.current_time() + self._side.tool_seconds
                return allowed

            outcome = await self._side.registry.run(call, context=context, gate=gate)
        if outcome is None:
            seconds = f"{self._side.tool_seconds:g} s"
            text = f"The tool '{call.tool_name}' gave no result within {seconds}; whether it took effect is unknown."
            outcome = failure(text, RefusalKind.TIMED_OUT)
        return outcome

    def _progressed(self, request_id: str, step: Progress) -> None:
        line = ProgressLine(request_id=request_id, done=step.done, total=step.total, message=step.message)
        with suppress(anyio.WouldBlock, anyio.ClosedResourceError):
            self._progress.send_nowait(line)

    async def _show_progress(self) -> None:
        async for line in self._progress_to_show:
            await self._observe(line)

    async def _submit(self, request: HostRequest, decision: Decision) -> None:
        """Hands the answer in; one that is rejected is replaced by an error result, so that nothing stays open."""
        try:
            await self._hand_in(request, decision)
        except HarnessError as error:
            if not _rejects(error, request.request_id):
                raise
            await self._hand_in(request, _instead(request, error))

    async def _hand_in(self, request: HostRequest, decision: Decision) -> None:
        # on record before it is sent: the turn may be over before the call has returned
        self.record.add_reply(decision.response, decision.refusal)
        suspicious = marks_of(text_of(decision.response.content)) if request.kind == RequestKind.TOOL_CALL else []
        if suspicious:
            logger.warning("the result of '%s' looks like orders to the model: %s", request.tool_name, suspicious)
        shown = _without_secrets(request, decision.response)
        await self._observe(ResponseLine(response=shown, suspicious=suspicious))
        try:
            await self._llm.submit_responses(*self._turn, [decision.response])
        except (AlreadyAnswered, UnknownRequest):
            self.record.drop_reply(request.request_id)  # resolved by somebody else: the stream says how

    # the end

    async def _cancel_on(self, stop: anyio.Event) -> None:
        await stop.wait()
        await self._llm.cancel_turn(*self._turn)

    async def _give_up(self) -> None:
        """Cancels the turn and waits for its end, within a bound, so that the conversation is usable again."""
        with anyio.move_on_after(GIVE_UP_SECONDS, shield=True):
            try:
                await self._llm.cancel_turn(*self._turn)
                while (await self._poll()).status not in TERMINAL:
                    pass
            except HarnessError as error:
                logger.info("turn '%s' could not be cancelled: %s", self._turn[1], error)


def _result(request: HostRequest, outcome: ToolOutcome) -> Decision:
    response = HostResponse(
        request_id=request.request_id,
        content=list(outcome.content),
        structured_content_json=outcome.structured_content_json,
        is_error=outcome.is_error,
    )
    return Decision(response, outcome.refusal)


def _instead(request: HostRequest, error: HarnessError) -> Decision:
    """The answer in place of one that could not be carried or was not offered."""
    if request.kind == RequestKind.TOOL_CALL:
        return _result(
            request, failure(f"The tool '{request.tool_name}' ran, but its result cannot be passed on: {error.message}")
        )
    return declined(request, Refusal(RefusalKind.APPROVAL_UNAVAILABLE, f"The answer was not usable: {error.message}"))


def _rejects(error: HarnessError, request_id: str) -> bool:
    """Whether this one answer was judged and rejected; anything else is a broken call."""
    rejected = error.detail.get("rejected")
    if not isinstance(rejected, list):
        return False
    return any(
        isinstance(entry, dict) and cast(dict[str, object], entry).get("request_id") == request_id
        for entry in cast(list[object], rejected)
    )


def _without_secrets(request: HostRequest, response: HostResponse) -> HostResponse:
    secret = {question.id for question in request.questions if question.secret}
    if not secret.intersection(answer.question_id for answer in response.answers):
        return response
    hidden = [
        answer.model_copy(update={"text": "(secret)", "selected": []}) if answer.question_id in secret else answer
        for answer in response.answers
    ]
    return response.model_copy(update={"answers": hidden, "structured_content_json": None, "content": []})
