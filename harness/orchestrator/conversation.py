"""A conversation as Python code wants it: ask and get a completion, or read the stream as it comes."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from harness.contract.capabilities import LlmCapabilities, StructuredOutput
from harness.contract.content import ContentBlock, TextBlock, as_content
from harness.contract.options import ConversationOptions, TurnOptions
from harness.contract.output import OutputItem, StopReason
from harness.contract.tools import ToolDescriptor
from harness.errors import HarnessError, InvalidArgument, PeerProtocolError
from harness.orchestrator.completion import Completion
from harness.orchestrator.lines import ItemLine, Line
from harness.orchestrator.structured import Mismatch, OutputShape
from harness.orchestrator.transcript import TurnSoFar
from harness.orchestrator.turn_host import HostSide, TurnHost
from harness.orchestrator.turn_record import TurnRecord, completion_of
from harness.policy import Policy

MessageContent: TypeAlias = str | Sequence[ContentBlock]
OnItem: TypeAlias = Callable[[OutputItem], Awaitable[None] | None]
OnLine: TypeAlias = Callable[[Line], Awaitable[None] | None]

BUFFERED_ITEMS = 1000


class ConversationHandle:
    """One open conversation with its tools and its approver. One turn at a time: a second `ask` waits for the first."""

    def __init__(
        self,
        conversation_id: str,
        side: HostSide,
        group: TaskGroup,
        *,
        options: ConversationOptions | None = None,
        beforehand: Iterable[Line] = (),
    ) -> None:
        self.conversation_id = conversation_id
        self._beforehand = list(beforehand)
        self._side = side
        self._group = group
        self._schema_json = options.output_schema_json if options else None
        self._one_turn = anyio.Lock()

    @property
    def capabilities(self) -> LlmCapabilities:
        return self._side.capabilities

    @property
    def tools(self) -> list[ToolDescriptor]:
        """What this host runs for the model."""
        return self._side.registry.descriptors

    def use_policy(self, policy: Policy) -> None:
        """From the next request on this policy decides, also in a turn that runs already."""
        self._side.desk.use(policy)

    async def ask(
        self,
        message: MessageContent | None = None,
        *,
        turn_options: TurnOptions | None = None,
        turn_id: str | None = None,
        output_type: Any = None,
        on_item: OnItem | None = None,
        on_line: OnLine | None = None,
        stop: anyio.Event | None = None,
        check: bool = False,
    ) -> Completion:
        """Runs a turn to its end: tools are called, approvals and questions answered, each exactly once.

        `turn_id` takes up a turn that runs already, in place of a message. `output_type` asks for an object of that
        type, and once more if the answer does not fit. `stop` cancels the turn when it is set. Cancelling this call
        cancels the turn too.

        Raises:
            HarnessError: a call broke; a failed turn only with `check`.
        """
        if (message is None) == (turn_id is None):
            raise InvalidArgument("give either a message or the 'turn_id' of a turn that runs already")
        shape = None if output_type is None else OutputShape(output_type)
        observe = _observer(on_item, on_line)
        run = _Run(self._side, self.conversation_id, observe, stop)
        async with self._one_turn:
            while self._beforehand:
                await observe(self._beforehand.pop(0))
            options = turn_options or TurnOptions()
            content = None if message is None else as_content(message)
            if shape is not None:
                content, options = self._asking_for(shape, content, options)
            completion = await run.complete(content, options, turn_id, shape)
        if check:
            completion.raise_for_error()
        return completion

    def stream(
        self,
        message: MessageContent,
        *,
        turn_options: TurnOptions | None = None,
        output_type: Any = None,
    ) -> TurnStream:
        """The items of a turn as they come; leaving the loop early cancels the turn."""

        async def ask(on_item: OnItem) -> Completion:
            return await self.ask(message, turn_options=turn_options, output_type=output_type, on_item=on_item)

        return TurnStream(ask, self._group)

    def _asking_for(
        self, shape: OutputShape, content: list[ContentBlock] | None, options: TurnOptions
    ) -> tuple[list[ContentBlock] | None, TurnOptions]:
        """Asks for the shape in the strictest way there is: the conversation's schema, the turn's, or words."""
        if shape.schema_json == self._schema_json:
            return content, options
        capabilities = self.capabilities
        if capabilities.structured_output == StructuredOutput.TURN and (
            "output_schema_json" in capabilities.turn_options
        ):
            return content, options.model_copy(update={"output_schema_json": shape.schema_json})
        return (None if content is None else [*content, TextBlock(text=shape.instruction)]), options


class TurnStream:
    """`async for item in stream`; afterwards `completion` says what the turn came to."""

    def __init__(self, ask: Callable[[OnItem], Awaitable[Completion]], group: TaskGroup) -> None:
        self._ask = ask
        self._group = group
        self._error: Exception | None = None
        self.completion: Completion | None = None
        """Null until the last item was read."""

    async def __aiter__(self) -> AsyncIterator[OutputItem]:
        send, receive = anyio.create_memory_object_stream[OutputItem](BUFFERED_ITEMS)
        scope = anyio.CancelScope()

        async def run() -> None:
            # a task of the conversation: a generator that is left early may not hold a cancel scope of its own
            with scope, send:
                try:
                    self.completion = await self._ask(send.send)
                except Exception as error:  # raised again where the stream is read
                    self._error = error

        self._group.start_soon(run)
        try:
            async for item in receive:
                yield item
        finally:
            scope.cancel()
            receive.close()
        if self._error is not None:
            raise self._error


class _Run:
    """One run: a turn, and a second one where structured output has to be repaired."""

    def __init__(
        self, side: HostSide, conversation_id: str, observe: Callable[[Line], Awaitable[None]], stop: anyio.Event | None
    ) -> None:
        self._side = side
        self._conversation_id = conversation_id
        self._observe = observe
        self._stop = stop
        self._records: list[TurnRecord] = []
        self._began = time.monotonic()

    async def complete(
        self,
        content: list[ContentBlock] | None,
        options: TurnOptions,
        turn_id: str | None,
        shape: OutputShape | None,
    ) -> Completion:
        record = await self._turn(content, options, turn_id)
        if shape is None or not _ended_well(record):
            return self._completion()
        try:
            return self._completion(shape.read(record.structured_output_json, record.text))
        except Mismatch as mismatch:
            repair: list[ContentBlock] = [TextBlock(text=shape.repair(str(mismatch)))]
        record = await self._turn(repair, options.model_copy(update={"client_key": None}), None)
        if not _ended_well(record):
            return self._completion()
        try:
            return self._completion(shape.read(record.structured_output_json, record.text))
        except Mismatch as mismatch:
            complaint = f"the answer still does not fit the output type after one repair: {mismatch}"
            return self._completion(error=PeerProtocolError(complaint))

    async def _turn(self, content: list[ContentBlock] | None, options: TurnOptions, turn_id: str | None) -> TurnRecord:
        if content is not None:
            # a key of its own: a repeated call finds this turn, and no other caller with equal words does
            keyed = options.model_copy(update={"client_key": options.client_key or uuid4().hex})
            turn_id = await self._side.llm.submit_user_message(self._conversation_id, content, keyed)
        host = TurnHost(self._side, self._conversation_id, turn_id or "", observe=self._observe, stop=self._stop)
        self._records.append(host.record)
        if self._side.caller is not None:
            self._side.caller.turns.append(TurnSoFar(content, host.record))
        await host.serve()
        return host.record

    def _completion(self, structured_output: Any = None, error: HarnessError | None = None) -> Completion:
        duration_ms = round((time.monotonic() - self._began) * 1000)
        return completion_of(self._records, duration_ms=duration_ms, structured_output=structured_output, error=error)


def _ended_well(record: TurnRecord) -> bool:
    return record.end is not None and record.end.stop_reason == StopReason.END_TURN


def _observer(on_item: OnItem | None, on_line: OnLine | None) -> Callable[[Line], Awaitable[None]]:
    async def observe(line: Line) -> None:
        told = [None if on_line is None else on_line(line)]
        if on_item is not None and isinstance(line, ItemLine):
            told.append(on_item(line.item))
        for answer in told:
            if inspect.isawaitable(answer):
                await answer

    return observe
