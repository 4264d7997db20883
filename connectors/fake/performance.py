"""One turn of a script, played into a sink."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import anyio
import anyio.lowlevel

from connectors.fake import parts, telling
from connectors.fake import steps as scripted
from connectors.fake.delegated import decision, declines_questions, runs_itself
from connectors.fake.requests import ends_turn, is_refusal, requests_of
from connectors.fake.script import Script
from connectors.fake.steps import Step, Steps
from connectors.fake.waiting import Waiting, WaitingRequests
from harness import errors
from harness.connector import TurnSink
from harness.contract.capabilities import Denial
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.output import InternalToolResult, StopReason
from harness.contract.requests import HostRequest, HostResponse
from harness.turn.events import TurnEnded

RaisingStep: TypeAlias = scripted.CallsStep | scripted.ApprovalStep | scripted.QuestionStep


@dataclass(frozen=True, slots=True)
class Part:
    """What is to be played: the steps of one turn, and under which circumstances."""

    script: Script
    steps: Steps
    place: str
    """Begins the places of this turn, from which the peer's ids are made."""
    options: ConversationOptions
    delegation: Delegation
    results: dict[str, str]
    """What the peer was told so far, by call id."""


class Performance:
    """Plays the steps one by one. Being interrupted means: no further step, then those of `on_interrupt`."""

    def __init__(
        self,
        part: Part,
        sink: TurnSink,
        *,
        on_answer: Callable[[HostRequest, HostResponse], None],
        on_step: Callable[[int], None],
    ) -> None:
        self._part = part
        self._sink = sink
        self._on_answer = on_answer
        self._on_step = on_step
        self._steps_scope = anyio.CancelScope()
        self._stopped = anyio.Event()
        self._interrupted = False
        self._answered_before: set[str] = set()
        self._refused_calls: set[str] = set()
        self._rounds = 1
        self._has_ended = False
        self._is_cut = False
        self.peer_died = False
        """The next turn will find the peer dead."""

    async def play(self, first_step: int) -> None:
        """From a step to the end of the script's turn; what a step raises is raised here."""
        try:
            with errors.unwrapped():
                async with anyio.create_task_group() as tasks:
                    self._requests = WaitingRequests(self._sink, tasks, self._take_answer)
                    with self._steps_scope:
                        await self._play_turn(first_step)
                    if not self._interrupted:
                        tasks.cancel_scope.cancel()  # what still waits is withdrawn by the end
                        return
                    self._requests.close()
                    await self._play_interrupted()
                    self._stopped.set()
                    # tasks that ask stay: they get the synthetic error when interrupt() has returned
        finally:
            self._stopped.set()

    def recall(self, request: HostRequest, response: HostResponse) -> None:
        """An answer that an earlier process accepted: the request will not be raised again."""
        self._answered_before.add(request.peer_request_id or "")
        self._take_answer(request, response)

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        self._requests.deliver(request, response)

    async def interrupt(self) -> None:
        """Returns when no step is played any more and what was open is closed."""
        self._interrupted = True
        self._steps_scope.cancel()
        await self._stopped.wait()

    async def _play_turn(self, first_step: int) -> None:
        before = self._part.steps[:first_step]
        self._rounds += sum(isinstance(step, scripted.CallsStep) and step.wait for step in before)
        for number, step in enumerate(self._part.steps[first_step:], first_step):
            self._on_step(number)
            await self._play_step(step, f"{self._part.place}_{number + 1}")
            await anyio.lowlevel.checkpoint()
            if self._is_cut:
                return
        if not self._has_ended:
            self._end(StopReason.END_TURN)

    async def _play_interrupted(self) -> None:
        for number, step in enumerate(self._part.script.on_interrupt, 1):
            place = f"{self._part.place}_after{number}"
            if isinstance(step, RaisingStep):
                await self._raise(step, place)
            else:
                await self._play_step(step, place)

    async def _play_step(self, step: Step, place: str) -> None:
        match step:
            case scripted.CallsStep() | scripted.ApprovalStep() | scripted.QuestionStep():
                raised = await self._raise(step, place)
                if step.wait:
                    await self._finish(step, raised)
            case scripted.WaitStep(wait=names):
                await self._requests.resolved(None if names == "all" else names)
            case scripted.WithdrawStep(withdraw=name):
                self._requests.withdraw(name)
            case scripted.TextStep() | scripted.ThinkingStep():
                await self._stream(step)
            case scripted.InternalToolStep(internal_tool=tool):
                await self._run_internal_tool(tool)
            case scripted.DelayStep(delay_seconds=seconds):
                await anyio.sleep(seconds)
            case scripted.UntilStep(until=event):
                await event.wait()
            case scripted.HangStep():
                await anyio.sleep_forever()
            case scripted.ErrorStep(error=error):
                raise errors.from_code(error.code, error.message, error.detail)
            case scripted.DieStep(die=death):
                self._die(death)
            case scripted.EndStep(end=reason, structured_output_json=output):
                self._end(reason, output)
            case _:
                event = telling.event_of(step, self._part.results, self._part.options.output_detail)
                if event is not None:
                    self._sink.emit(event)

    async def _stream(self, step: scripted.TextStep | scripted.ThinkingStep) -> None:
        # the text of one round belongs to one message
        deltas = telling.stream_of(step, f"message_{self._part.place}_{self._rounds}", self._part.results)
        for number, delta in enumerate(deltas):
            if number and self._part.script.chunk_delay_seconds:
                await anyio.sleep(self._part.script.chunk_delay_seconds)
            self._sink.emit(delta)
            await anyio.lowlevel.checkpoint()

    async def _run_internal_tool(self, tool: parts.ScriptedInternalTool) -> None:
        self._sink.emit(telling.tool_started(tool))
        if tool.call_id in self._refused_calls:
            self._sink.emit(telling.tool_finished(tool, InternalToolResult.REFUSED))
        elif tool.result is not None:
            if tool.delay_seconds:
                await anyio.sleep(tool.delay_seconds)
            self._sink.emit(telling.tool_finished(tool, tool.result))

    async def _raise(self, step: RaisingStep, place: str) -> list[Waiting]:
        """Opens the requests of a step, except what was delegated or answered before a restart."""
        requests: list[HostRequest] = []
        for part, request in requests_of(step, place):
            if request.peer_request_id in self._answered_before:
                continue
            if isinstance(part, parts.ScriptedCall) and runs_itself(part, self._part.delegation):
                await self._run_delegated(part, request)
            elif isinstance(part, parts.ScriptedCall) or not self._is_decided(part):
                requests.append(request)
        return self._requests.open(requests, step.style or self._part.script.style) if requests else []

    async def _finish(self, step: RaisingStep, raised: Sequence[Waiting]) -> None:
        """Waits for the answers; then the peer may be over: at its limit of model calls, or by a denial."""
        for waiting in raised:
            await waiting.resolved.wait()
        if isinstance(step, scripted.CallsStep):
            limit = self._part.options.limits.max_turns
            if limit is not None and self._rounds >= limit:
                self._end(StopReason.MAX_TURNS)
                self._is_cut = True
            self._rounds += 1

    async def _run_delegated(self, call: parts.ScriptedCall, request: HostRequest) -> None:
        call_id = request.call_id or ""
        tool = parts.ScriptedInternalTool(
            name=call.name,
            call_id=call_id,
            source=call.source,
            arguments_json=call.arguments_text,
            result_text=call.result,
            parent_call_id=call.parent_call_id,
        )
        await self._run_internal_tool(tool)
        self._part.results[call_id] = call.result

    def _is_decided(self, part: parts.ScriptedApproval | parts.ScriptedQuestion) -> bool:
        """Whether the delegated policy answers for the host."""
        policy = self._part.delegation.request_policy
        if isinstance(part, parts.ScriptedQuestion):
            return declines_questions(policy)
        decided = decision(part, policy)
        if decided == "deny" and part.call_id is not None:
            self._refused_calls.add(part.call_id)
        return decided != "ask"

    def _take_answer(self, request: HostRequest, response: HostResponse) -> None:
        self._on_answer(request, response)
        if not is_refusal(request, response):
            return
        if request.call_id is not None:
            self._refused_calls.add(request.call_id)
        denial = self._part.script.capabilities.get("denial")
        if ends_turn(request, response) or denial == Denial.ENDS_TURN:
            self._end(StopReason.CANCELLED)
            self._is_cut = True

    def _die(self, death: parts.Death) -> None:
        self.peer_died = True
        if death.when == "now":
            raise errors.PeerLost("the scripted peer died", exit_code=death.exit_code, stderr_tail=death.stderr)

    def _end(self, reason: StopReason, structured_output_json: str | None = None) -> None:
        self._has_ended = True
        self._sink.emit(TurnEnded(reason, structured_output_json))
