"""`ModelSession`: the `Session` of a connector whose peer is a bare model."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from harness.connector import SessionLog, TurnSink
from harness.contract.content import ContentBlock, TextBlock
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.output import StopReason
from harness.contract.requests import HostRequest, HostResponse, RequestKind
from harness.errors import Internal
from harness.model_loop.asking import Asking
from harness.model_loop.chat_model import ChatModel
from harness.model_loop.config import LoopConfig
from harness.model_loop.history import History, Result
from harness.model_loop.loop import TurnLoop
from harness.model_loop.results import result_of
from harness.turn import answers
from harness.turn.events import TurnEnded

CANCELLED = "The turn was cancelled by the host."
LOST = "The turn ended before this call had a result; whether it took effect is unknown."


class ModelSession:
    """One conversation with a bare model; what it must remember is in the log, so `resume` is `exact`."""

    def __init__(self, model: ChatModel, config: LoopConfig, options: ConversationOptions, log: SessionLog) -> None:
        self._model = model
        self._config = config
        self._options = options
        self._log = log
        self._history = History(options.history, log)
        self._loop: TurnLoop | None = None
        self._scope: anyio.CancelScope | None = None
        self._settled = anyio.Event()
        self._is_interrupted = False

    async def run_turn(self, content: Sequence[ContentBlock], options: TurnOptions, sink: TurnSink) -> None:
        self._take_answers()
        self._close_open(LOST)
        self._history.begin_turn(content)
        await self._run(options, sink)

    async def resume_turn(self, options: TurnOptions, sink: TurnSink) -> None:
        """Goes on where the log stands: with a round, or with the model call that the old process did not finish.

        What that call had streamed was discarded before; the new one has an item id of its own.
        """
        self._take_answers()
        await self._run(options, sink)

    def deliver(self, request: HostRequest, response: HostResponse) -> None:
        if self._loop is None:
            raise Internal(f"an answer to '{request.request_id}' was delivered outside a turn")
        self._record(request, response)
        self._loop.look_again()

    async def interrupt(self) -> None:
        """Ends the model call or the wait; returns when every open call has its synthetic result in the history."""
        if self._scope is not None:
            self._is_interrupted = True
            self._scope.cancel()
            await self._settled.wait()

    async def _run(self, options: TurnOptions, sink: TurnSink) -> None:
        loop = TurnLoop(
            self._model,
            self._history,
            Asking.of(self._options, options),
            sink,
            config=self._config,
            limits=self._options.limits,
            detail=self._options.output_detail,
        )
        self._loop, self._settled, self._is_interrupted = loop, anyio.Event(), False
        try:
            with anyio.CancelScope() as self._scope:
                await loop.run()
            if self._is_interrupted:
                loop.abandon()
                self._close_open(CANCELLED)
                sink.emit(TurnEnded(StopReason.CANCELLED))
        except Exception:
            # a cancellation from outside is no end: this turn may be resumed
            loop.abandon()
            self._close_open(LOST)
            raise
        finally:
            self._loop = self._scope = None
            self._settled.set()

    def _take_answers(self) -> None:
        """What the host answered while no session was there to take it."""
        for accepted in self._log.answers():
            self._record(accepted.request, accepted.response)

    def _record(self, request: HostRequest, response: HostResponse) -> None:
        """On record at once: what was accepted is in the history, whatever happens next."""
        if request.kind == RequestKind.TOOL_CALL:
            self._history.add_result(request.call_id or "", result_of(response))
        else:
            self._history.add_decision(request.peer_request_id or "", response)

    def _close_open(self, text: str) -> None:
        """Gives every open call its synthetic result, so that the next request to the provider is valid."""
        answer = self._history.open_answer
        if answer is None:
            return
        for call in answer.calls:
            self._history.add_result(call.made.call_id, Result((TextBlock(text=text),), is_error=True))
        for ask in answer.asks:
            self._history.add_decision(ask.peer_request_id or "", answers.cancelled(ask))
