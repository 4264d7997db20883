"""A `Heard` that remembers, for readers of a provider's stream."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from harness.turn.events import OutputProduced


class Listener:
    def __init__(self) -> None:
        self.texts: list[tuple[int, str]] = []
        self.thoughts: list[str] = []
        self.shown: list[OutputProduced] = []
        self.unknown_kinds: list[str] = []

    def one_read(self) -> AbstractContextManager[None]:
        return nullcontext()

    def text(self, text: str, message: int = 0) -> None:
        self.texts.extend([(message, text)] if text else [])

    def thinking(self, text: str) -> None:
        self.thoughts.extend([text] if text else [])

    def show(self, *events: OutputProduced) -> None:
        self.shown.extend(events)

    def unknown(self, kind: str) -> None:
        self.unknown_kinds.append(kind)

    def raw(self, direction: str, text: str) -> None: ...
