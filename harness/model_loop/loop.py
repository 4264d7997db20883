"""One turn with a bare model: call it, run its calls by the host, call it again, until it has nothing more to ask.

The loop writes history before it shows: an answer is on record before its requests are opened, a result before the next
model call. All calls of a round are opened by one emit, in the model's order; their results go back together.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from uuid import uuid4

import anyio

from harness.connector import TurnSink
from harness.contract.content import TextBlock
from harness.contract.options import Limits, OutputDetail
from harness.contract.output import Phase, StopReason
from harness.contract.requests import CallIdSource, HostRequest, RequestKind
from harness.contract.usage import ModelUsage, UsageInfo
from harness.errors import ContextOverflow, ProviderError
from harness.model_loop import guard, limits, structured
from harness.model_loop.arguments import ArgumentCheck
from harness.model_loop.asking import Asking
from harness.model_loop.chat_model import CallMade, ChatModel, MalformedAnswer, ModelAnswer, Said, text_said
from harness.model_loop.config import LoopConfig
from harness.model_loop.hearing import Hearing
from harness.model_loop.history import Call, History, ModelSaid, Result
from harness.model_loop.retries import RetryRules, seconds_before_retry
from harness.model_loop.room import Room
from harness.model_loop.view import rounds_of
from harness.turn import events
from harness.turn.events import RequestRaised, TurnEnded, TurnEvent, UsageReported

MALFORMED_RETRIES = 2
PAUSED = "paused"
INTERRUPTED = "interrupted"


def new_call_id() -> str:
    return f"call_{uuid4().hex[:16]}"


class TurnLoop:
    """Runs one turn over the conversation's history. `run` returns when `TurnEnded` was emitted."""

    def __init__(
        self,
        model: ChatModel,
        history: History,
        asking: Asking,
        sink: TurnSink,
        *,
        config: LoopConfig,
        limits: Limits,
        detail: OutputDetail | str,
        new_id: Callable[[], str] = new_call_id,
    ) -> None:
        self._model = model
        self._history = history
        self._asking = asking
        self._sink = sink
        self._config = config
        self._limits = limits
        self._detail = detail
        self._new_id = new_id
        self._room = Room(model, history, config, sink)
        self._check = ArgumentCheck(asking.offered)
        self._read_only = {tool.name: tool.read_only for tool in asking.tools}
        self._retry_rules = RetryRules(max_retries=config.max_retries)
        self._unknown_kinds: set[str] = set()
        self._hearing: Hearing | None = None
        self._answered = anyio.Event()

    async def run(self) -> None:
        """From where the history stands to the end of the turn.

        Raises:
            HarnessError: the turn failed; `abandon` then leaves a history that a next turn can go on from.
        """
        while True:
            newest = self._history.entries[-1]
            if isinstance(newest, ModelSaid) and not newest.is_closed:
                await self._run_round(newest)
            elif isinstance(newest, ModelSaid) and not _wants_next_call(newest) and self._finish(newest):
                return
            reason = limits.exhausted(self._limits, self._asking.max_output_tokens, self._history)
            if reason is not None:
                self._sink.emit(TurnEnded(reason))
                return
            await self._next_answer()

    def look_again(self) -> None:
        """A result or a decision was added to the history; the round goes on when it was the last one."""
        self._answered.set()

    def abandon(self) -> None:
        """After a cancel or a failure: what the host has seen of an unfinished answer stays in the history."""
        hearing, self._hearing = self._hearing, None
        if hearing is not None and hearing.said:
            said = ModelSaid(item_id=hearing.item_id(), said=(Said(hearing.said),), stop=INTERRUPTED)
            self._history.add_answer(said)

    # one model call

    async def _next_answer(self) -> None:
        asking = self._asking
        earlier = self._history.answers_of_turn()
        if any(answer.calls for answer in earlier):
            asking = asking.after_first_round()
        if self._history.wants_correction:
            asking = asking.without_calls()
        left = limits.output_tokens_left(asking.max_output_tokens, self._usage())
        self._take(await self._call_model(asking, left))

    async def _call_model(self, asking: Asking, max_output_tokens: int | None) -> ModelAnswer:
        await self._room.make(asking, max_output_tokens)
        attempt, malformed, overflowed = 1, 0, False
        self._hearing = hearing = self._listen()
        while True:
            request = self._room.request(asking, max_output_tokens)
            try:
                return await self._model.answer(request, hearing)
            except ContextOverflow:
                if overflowed or hearing.is_delivered or not await self._room.make_after_overflow(asking, request):
                    raise
                overflowed = True
            except MalformedAnswer as error:
                malformed += 1
                if malformed > MALFORMED_RETRIES:
                    raise
                self._hearing = hearing = self._start_again(hearing, error)
            except ProviderError as error:
                await self._wait_before_retry(error, attempt, hearing)
                attempt += 1

    def _listen(self) -> Hearing:
        item_id = self._history.begin_call()
        return Hearing(self._sink, item_id, detail=self._detail, unknown_kinds=self._unknown_kinds)

    def _start_again(self, hearing: Hearing, error: MalformedAnswer) -> Hearing:
        """Nothing was executed, so the call is repeated; what was shown of it no longer counts."""
        self._sink.emit(events.notice("retry", f"the model's answer was unusable, asking again: {error.message}"))
        if not hearing.is_delivered:
            return hearing
        self._sink.emit(*(events.item_discarded(item, "malformed answer") for item in hearing.items))
        return self._listen()

    async def _wait_before_retry(self, error: ProviderError, attempt: int, hearing: Hearing) -> None:
        """Returns when the call may be tried again, else raises the error."""
        seconds = None
        if not hearing.is_delivered:
            seconds = seconds_before_retry(error, attempt, random.random(), self._retry_rules)
        if seconds is None:
            raise error
        code = "rate_limit" if error.detail.get("reason") == "rate_limit" else "retry"
        tries = f"retry {attempt} of {self._retry_rules.max_retries}"
        self._sink.emit(events.notice(code, f"{error.message}; {tries} in {seconds:.1f} s"))
        await anyio.sleep(seconds)

    def _take(self, answer: ModelAnswer) -> None:
        """Puts the whole answer on record, its calls under unique ids and judged."""
        hearing, self._hearing = self._hearing, None
        usage = _counted(answer.usage, self._asking.model)
        taken = self._history.add_answer(
            ModelSaid(
                item_id=hearing.item_id() if hearing is not None else "",
                said=answer.said,
                calls=tuple(self._identified(answer.calls)),
                asks=answer.asks,
                stop=PAUSED if answer.must_continue else answer.stop,
                native=answer.native,
                origin=self._model.origin,
                usage=usage,
                estimate=self._room.last_estimate,
            )
        )
        if answer.must_continue and taken.is_closed:  # no round and no end will show it
            self._sink.emit(*self._shown(taken, Phase.COMMENTARY))

    def _identified(self, calls: Sequence[CallMade]) -> Iterator[Call]:
        used = self._history.call_ids
        for made in calls:
            source = CallIdSource.EXACT
            if not made.call_id or made.call_id in used:
                why = f"repeated the id '{made.call_id}'" if made.call_id else "gave no id"
                made = CallMade(self._new_id(), made.tool_name, made.arguments_json)
                source = CallIdSource.MADE_UP
                self._sink.emit(
                    events.notice(
                        "call_id_made_up", f"the model {why} for '{made.tool_name}': it is '{made.call_id}' here"
                    )
                )
            used.add(made.call_id)
            yield Call(made, source, self._check.problem(made.tool_name, made.arguments_json))

    # a round of calls

    async def _run_round(self, answer: ModelSaid) -> None:
        """Opens what is not answered yet and waits; a round that an earlier process showed is not shown again."""
        earlier = self._history.answers_of_turn()[:-1]
        if self._config.loop_guard:
            runnable = [call.made for call in answer.calls if call.problem is None]
            guard.check_next_calls(rounds_of(earlier), [(made.tool_name, made.arguments_json) for made in runnable])
        shown = self._shown(answer, Phase.COMMENTARY) if answer.is_untouched else ()
        self._sink.emit(*shown, *self._answered_here(answer), *self._raised(answer, earlier))
        while not answer.is_closed:
            self._answered = anyio.Event()
            await self._answered.wait()
        self._sink.emit(*self._room.notices_of_cuts(answer))
        if self._config.loop_guard:
            guard.check_failures(rounds_of([*earlier, answer]))

    def _answered_here(self, answer: ModelSaid) -> Iterator[TurnEvent]:
        """Calls that cannot run get their error result at once; the host hears of it."""
        for call in answer.calls:
            if call.problem is not None and call.made.call_id not in answer.results:
                code, text = call.problem
                self._history.add_result(call.made.call_id, Result((TextBlock(text=text),), is_error=True))
                yield events.notice(code, f"call '{call.made.call_id}': {text}")

    def _raised(self, answer: ModelSaid, earlier: Sequence[ModelSaid]) -> Iterator[TurnEvent]:
        first = sum(len(one.calls) + len(one.asks) for one in earlier)
        for order, call in enumerate(answer.calls, first):
            if call.problem is None and call.made.call_id not in answer.results:
                yield RequestRaised(self._call_request(call, order))
        for order, ask in enumerate(answer.asks, first + len(answer.calls)):
            if ask.peer_request_id not in answer.decisions:
                yield RequestRaised(ask.model_copy(update={"order": order}))

    def _call_request(self, call: Call, order: int) -> HostRequest:
        return HostRequest(
            kind=RequestKind.TOOL_CALL,
            call_id=call.made.call_id,
            call_id_source=call.id_source,
            peer_request_id=call.made.call_id,
            order=order,
            tool_name=call.made.tool_name,
            arguments_json=call.made.arguments_json,
            read_only=self._read_only.get(call.made.tool_name),
        )

    # the end

    def _finish(self, answer: ModelSaid) -> bool:
        """Ends the turn with this answer; false when the model must say it again in the wanted form."""
        output: str | None = None
        notices: list[TurnEvent] = []
        schema = self._asking.output_schema_json
        if schema is not None and answer.stop == StopReason.END_TURN:
            output, problem = structured.structured_output(text_said(answer.said), schema)
            if problem is not None and not self._history.wants_correction:
                self._sink.emit(*self._shown(answer, Phase.COMMENTARY))
                self._sink.emit(events.notice("structured_output_retry", f"asking again: {problem}"))
                self._history.ask_again(structured.correction(problem, schema))
                return False
            if problem is not None:
                notices.append(events.notice("structured_output_invalid", problem))
        self._sink.emit(*self._shown(answer, Phase.FINAL), *notices, TurnEnded(answer.stop, output))
        return True

    def _shown(self, answer: ModelSaid, phase: Phase) -> Iterator[TurnEvent]:
        for number, said in enumerate(answer.said):
            if said.text:
                item_id = f"{answer.item_id}.{number + 1}" if number else answer.item_id
                yield events.message([TextBlock(text=said.text)], phase=said.phase or phase, item_id=item_id)
        usage = self._usage()
        if usage is not None:
            yield UsageReported(usage)
        yield from limits.warnings(self._limits, self._history, answer)

    def _usage(self) -> UsageInfo | None:
        return self._history.usage(self._history.turn_starts_at())


def _wants_next_call(answer: ModelSaid) -> bool:
    """Whether the model goes on after this closed answer."""
    return answer.stop == PAUSED or bool(answer.calls or answer.asks)


def _counted(usage: UsageInfo | None, model: str | None) -> UsageInfo:
    """One model call's usage, with the call and its model counted."""
    counted = (usage or UsageInfo()).model_copy(update={"model_calls": 1})
    if counted.by_model or model is None:
        return counted
    figures = counted.model_dump(exclude={"by_model", "scope"})
    return counted.model_copy(update={"by_model": [ModelUsage(model=model, **figures)]})
