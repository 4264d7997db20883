"""Keeps the prompt within the context window: measures, compacts, and builds the request that fits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from harness.connector import TurnSink
from harness.contract.content import TextBlock
from harness.contract.usage import UsageInfo
from harness.errors import ContextOverflow, ProviderError
from harness.model_loop.asking import Asking
from harness.model_loop.chat_model import ChatModel, Heard, ModelRequest, UserMessage, text_said
from harness.model_loop.compaction import TARGET, Calibration, further_cuts, limit_of
from harness.model_loop.config import CHARS_OF_UNKNOWN_WINDOW, LoopConfig
from harness.model_loop.cuts import Cuts
from harness.model_loop.history import History, ModelSaid
from harness.model_loop.view import messages_of, size_of
from harness.turn import events
from harness.turn.events import OutputProduced

SURE = 1.0
UNSURE = 1.5
"""How far above the window our own estimate must be before the turn is given up without asking the provider."""
SUMMARY_TOKENS = 1000
_SUMMARY_WISH = (
    "Summarise the conversation so far for yourself: what the user wants, what was found out by which tool, what is "
    "still open. Facts only, no greeting."
)


class Room:
    """The space a conversation has in its model's context."""

    def __init__(self, model: ChatModel, history: History, config: LoopConfig, sink: TurnSink) -> None:
        self._model = model
        self._history = history
        self._config = config
        self._sink = sink
        self.last_estimate = 0
        """The uncalibrated size of the last request."""

    def request(self, asking: Asking, max_output_tokens: int | None) -> ModelRequest:
        messages = messages_of(
            self._history.entries,
            self._history.cuts,
            result_chars=self._result_chars,
            guarded=self._config.loop_guard,
        )
        self.last_estimate = size_of(messages) + _fixed_size(asking)
        return ModelRequest(
            model=asking.model,
            system=asking.system,
            messages=messages,
            tools=asking.tools,
            tool_mode=asking.tool_mode,
            effort=asking.effort,
            temperature=asking.temperature,
            max_output_tokens=max_output_tokens,
            output_schema_json=asking.output_schema_json,
            is_cut=self._history.cuts != Cuts(),
            estimated_tokens=int(self.last_estimate * Calibration.of(self._history.entries).factor),
        )

    async def make(self, asking: Asking, max_output_tokens: int | None) -> None:
        """Before a model call: cuts what no longer fits.

        Raises:
            ContextOverflow: nothing more can be cut and the prompt surely does not fit.
        """
        window = self._window
        if window is None or self._config.compaction == "off":
            return
        limit = limit_of(window, max_output_tokens)
        if self._measure(self._history.cuts, asking) > limit:
            await self._compact(int(limit * TARGET), asking)
        sureness = SURE if Calibration.of(self._history.entries).is_known else UNSURE
        size = self._measure(self._history.cuts, asking)
        if size > window * sureness:
            raise ContextOverflow(
                f"the conversation needs about {size} tokens and the context window has {window}: begin a new "
                "conversation, or choose a model with a larger window",
                context_window=window,
            )

    async def make_after_overflow(self, asking: Asking, request: ModelRequest) -> bool:
        """The provider refused the prompt as too long: halves it, whatever we thought. False when nothing was cut."""
        if self._config.compaction == "off":
            return False
        target = request.estimated_tokens // 2
        if self._window is not None:
            target = min(target, int(limit_of(self._window, request.max_output_tokens) * TARGET))
        before = self._history.cuts
        await self._compact(target, asking)
        return self._history.cuts != before

    def notices_of_cuts(self, answer: ModelSaid) -> Iterator[OutputProduced]:
        """For each result of the round that is too long for the prompt."""
        limit = self._result_chars
        for call_id, result in answer.results.items():
            length = max((len(block.text) for block in result.content if isinstance(block, TextBlock)), default=0)
            if length > limit:
                text = f"the result of '{call_id}' has {length} characters, the model sees head and tail of {limit}"
                yield events.notice("result_cut", f"{text}; the connector option 'max_result_chars' allows more")

    @property
    def _window(self) -> int | None:
        return self._config.context_window or self._model.context_window

    @property
    def _result_chars(self) -> int:
        if self._config.max_result_chars is not None:
            return self._config.max_result_chars
        return CHARS_OF_UNKNOWN_WINDOW if self._window is None else self._window  # a quarter of it, in characters

    def _measure(self, cuts: Cuts, asking: Asking) -> int:
        messages = messages_of(
            self._history.entries, cuts, result_chars=self._result_chars, guarded=self._config.loop_guard
        )
        factor = Calibration.of(self._history.entries).factor
        return int((size_of(messages) + _fixed_size(asking)) * factor)

    async def _compact(self, target: int, asking: Asking) -> None:
        history, before = self._history, self._history.cuts
        after = further_cuts(
            history.entries, before, lambda cuts: self._measure(cuts, asking), target, history.turn_starts_at()
        )
        if after == before:
            return
        usage: UsageInfo | None = None
        if self._config.compaction == "summarise" and after.drop_before > before.drop_before:
            summary, usage = await self._summary(before, after, asking)
            after = replace(after, summary=summary)
        history.cut(after, usage)
        self._sink.emit(events.notice("compacted", _description(before, after)))

    async def _summary(self, before: Cuts, after: Cuts, asking: Asking) -> tuple[str | None, UsageInfo | None]:
        """What the model makes of the entries about to be left out; without one they are just left out."""
        leaving = self._history.entries[: after.drop_before]
        messages = messages_of(leaving, before, result_chars=self._result_chars // 4)
        request = ModelRequest(
            model=asking.model,
            system=asking.system,
            messages=(*messages, UserMessage((TextBlock(text=_SUMMARY_WISH),))),
            max_output_tokens=SUMMARY_TOKENS,
        )
        try:
            answer = await self._model.answer(request, _Unheard())
        except (ProviderError, ContextOverflow) as error:
            self._sink.emit(events.notice("summary_failed", f"no summary of the old messages: {error.message}"))
            return None, None
        usage = answer.usage.model_copy(update={"model_calls": 1}) if answer.usage is not None else None
        return text_said(answer.said) or None, usage


class _Unheard(Heard):
    """A model call of the loop's own: nobody listens while it speaks."""

    def one_read(self) -> AbstractContextManager[None]:
        return nullcontext()

    def text(self, text: str, message: int = 0) -> None: ...

    def thinking(self, text: str) -> None: ...

    def show(self, *events: OutputProduced) -> None: ...

    def unknown(self, kind: str) -> None: ...

    def raw(self, direction: str, text: str) -> None: ...


def _fixed_size(asking: Asking) -> int:
    tools = sum(20 + (len(tool.description) + len(tool.input_schema_json)) // 4 for tool in asking.tools)
    return len(asking.system) // 4 + tools


def _description(before: Cuts, after: Cuts) -> str:
    parts: list[str] = []
    if after.stub_before > before.stub_before:
        parts.append("results of old calls were replaced by their names")
    if after.drop_before > before.drop_before:
        how = "summarised" if after.summary is not None else "left out"
        parts.append(f"{after.drop_before - before.drop_before} old messages and rounds were {how}")
    if after.result_chars != before.result_chars:
        parts.append(f"results keep {after.result_chars} characters")
    return f"the prompt was shortened to fit the context window: {'; '.join(parts)}; the journal keeps everything"
