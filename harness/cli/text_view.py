"""A turn for a person: text as it streams on stdout, what happens beside it on stderr."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from harness.cli.activity import Activity, Line, Style
from harness.cli.terminal import Terminal, printable
from harness.contract.content import text_of
from harness.contract.output import Item, Message, TextDelta, ThinkingDelta
from harness.orchestrator.lines import ProgressLine

WriteLine: TypeAlias = Callable[[Line], None]

_COLOURS = {Style.CALL: "cyan", Style.GOOD: "green", Style.BAD: "red", Style.QUIET: "dim", Style.ALERT: "yellow"}


def line_writer(terminal: Terminal) -> WriteLine:
    """Writes lines for people, coloured where that is wanted; rich is loaded only then."""
    if not terminal.is_styled:
        return lambda line: terminal.write_note(f"{line.text}\n")
    from rich.console import Console
    from rich.text import Text

    console = Console(file=terminal.notes, highlight=False, markup=False, emoji=False)
    # every character counts: a call that does not fit in the width goes on in the next line
    return lambda line: console.print(Text(printable(line.text), _COLOURS[line.style]), soft_wrap=True)


class TextView:
    """`--output text`. Live, the text of every message is shown as it comes; else the answer alone, at the end."""

    def __init__(
        self,
        terminal: Terminal,
        *,
        shows_text: bool = True,
        shows_activity: bool = True,
        shows_thinking: bool = False,
        full: bool = False,
    ) -> None:
        self._terminal = terminal
        self._shows_text = shows_text
        self._shows_activity = shows_activity
        self._shows_thinking = shows_thinking
        self._activity = Activity(full=full)
        self._write_line = line_writer(terminal)
        self._streamed: set[str | None] = set()
        self._thought: list[str] = []
        self._is_mid_line = False
        self.has_shown_text = False

    def item(self, item: Item) -> None:
        """Shows what this item adds."""
        if not isinstance(item, ThinkingDelta):
            self._show_thought()
        if isinstance(item, TextDelta | Message) and item.parent_call_id is None:
            self._show_text(item)
        elif isinstance(item, ThinkingDelta):
            self._thought.append(item.text)
        for line in self._activity.lines(item) if self._shows_activity else ():
            self.line(line)

    def progress(self, line: ProgressLine) -> None:
        if self._shows_activity:
            self.line(self._activity.progress(line))

    def line(self, line: Line) -> None:
        """A line beside the text, never in the middle of one of its lines."""
        self._break_line()
        self._write_line(line)

    def answer(self, content: str) -> None:
        """The end of the text: all of it, where nothing was shown live."""
        self._show_thought()
        if self.has_shown_text:
            self._break_line()
        elif content and self._shows_text:
            self._terminal.write_data(content if content.endswith("\n") else f"{content}\n")

    def _show_text(self, item: TextDelta | Message) -> None:
        if not (self._terminal.is_live and self._shows_text):
            return
        if isinstance(item, Message):
            was_streamed = item.item_id in self._streamed
            self._streamed.discard(item.item_id)
            text = "" if was_streamed else text_of(item.content)
            ends_line = True
        else:
            self._streamed.add(item.item_id)
            text, ends_line = item.text, False
        if text:
            self._terminal.write_data(text)
            self.has_shown_text = True
            self._is_mid_line = not text.endswith("\n")
        if ends_line:
            self._break_line()

    def _show_thought(self) -> None:
        text, self._thought = "".join(self._thought).strip(), []
        if text and self._shows_thinking:
            self.line(Line(Style.QUIET, f"thinking: {text}"))

    def _break_line(self) -> None:
        if self._is_mid_line:
            self._terminal.write_data("\n")
            self._is_mid_line = False
