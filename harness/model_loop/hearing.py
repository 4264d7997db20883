"""What the loop hears of one model call, shown at once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from harness.connector import TurnSink
from harness.contract.options import OutputDetail
from harness.turn import events
from harness.turn.events import OutputProduced


class Hearing:
    """The `Heard` of one model call. `said` is the text so far, for a call that never comes to its end."""

    def __init__(self, sink: TurnSink, item_id: str, *, detail: OutputDetail | str, unknown_kinds: set[str]) -> None:
        self._sink = sink
        self._item_id = item_id
        self._detail = detail
        self._unknown_kinds = unknown_kinds
        self._batch: list[OutputProduced] | None = None
        self.said = ""
        self.items = [self._item_id]
        self.is_delivered = False
        """Something of this call is visible: it cannot be repeated as if nothing had been."""

    @contextmanager
    def one_read(self) -> Generator[None]:
        """What is heard meanwhile came in one read: it is shown together, its adjacent deltas as one."""
        self._batch = []
        try:
            yield
        finally:
            heard, self._batch = self._batch, None
            if heard:
                self._sink.emit(*heard)

    def item_id(self, message: int = 0) -> str:
        return f"{self._item_id}.{message + 1}" if message else self._item_id

    def text(self, text: str, message: int = 0) -> None:
        if text:
            self.said += text
            self.is_delivered = True
            item_id = self.item_id(message)
            if item_id not in self.items:
                self.items.append(item_id)
            self.show(events.text_delta(text, item_id=item_id))

    def thinking(self, text: str) -> None:
        if text:
            self.is_delivered = True
            self.show(events.thinking_delta(text, item_id=self._item_id))

    def show(self, *shown: OutputProduced) -> None:
        if self._batch is None:
            self._sink.emit(*shown)
        else:
            self._batch.extend(shown)

    def unknown(self, kind: str) -> None:
        if kind not in self._unknown_kinds:
            self._unknown_kinds.add(kind)
            self.show(events.notice("unknown_peer_event", f"the provider sent something unknown: '{kind}'"))

    def raw(self, direction: str, text: str) -> None:
        if self._detail == OutputDetail.RAW:
            self.show(events.raw("http", direction, text))
