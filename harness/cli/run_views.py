"""The three ways to show a turn: for a person, as one JSON object, as a line of JSON for everything that happens."""

from __future__ import annotations

from typing import Protocol

from harness.cli.activity import Line as ShownLine
from harness.cli.activity import Style, usage_text
from harness.cli.failures import complain
from harness.cli.run import Output, RunArguments
from harness.cli.terminal import Terminal
from harness.cli.text_view import TextView
from harness.orchestrator.completion import Completion
from harness.orchestrator.lines import ItemLine, Line, ProgressLine, SourceLine, last_line


class View(Protocol):
    def see(self, line: Line) -> None:
        """What happened just now."""
        ...

    def end(self, completion: Completion) -> None:
        """What it came to."""
        ...

    def write_line(self, line: ShownLine) -> None:
        """Something for a person, on stderr."""
        ...


def view_for(arguments: RunArguments, terminal: Terminal) -> View:
    """The view that `--output` names."""
    match arguments.output:
        case Output.JSON:
            return _JsonView(arguments, terminal)
        case Output.JSONL:
            return _JsonlView(arguments, terminal)
        case Output.TEXT:
            return _ForPerson(arguments, terminal)


class _ForPerson:
    """Text on stdout as it comes, all else on stderr: what a person watches, or asks for with -v."""

    def __init__(self, arguments: RunArguments, terminal: Terminal) -> None:
        self._arguments = arguments
        watched = arguments.output == Output.TEXT and terminal.notes.isatty()
        self._text = TextView(
            terminal,
            shows_text=arguments.output == Output.TEXT,
            shows_activity=arguments.verbose or watched,
            shows_thinking=arguments.show_thinking,
            full=arguments.full,
        )

    def see(self, line: Line) -> None:
        if isinstance(line, ItemLine):
            self._text.item(line.item)
        elif isinstance(line, SourceLine) and self._arguments.verbose:
            self.write_line(ShownLine(Style.QUIET, f"· source '{line.source}' is {line.route}: {line.reason}"))
        elif isinstance(line, ProgressLine):
            self._text.progress(line)

    def end(self, completion: Completion) -> None:
        self._text.answer(completion.content or "")
        if self._arguments.show_usage:
            self.write_line(ShownLine(Style.QUIET, usage_text(completion.usage)))
        if completion.error is not None:
            complain(completion.error.message)

    def write_line(self, line: ShownLine) -> None:
        self._text.line(line)


class _JsonView(_ForPerson):
    def __init__(self, arguments: RunArguments, terminal: Terminal) -> None:
        super().__init__(arguments, terminal)
        self._terminal = terminal

    def end(self, completion: Completion) -> None:
        super().end(completion)
        self._terminal.write_data(f"{completion.to_json(full=self._arguments.full)}\n")


class _JsonlView(_ForPerson):
    """The last line comes in every case, also when nothing else could."""

    def __init__(self, arguments: RunArguments, terminal: Terminal) -> None:
        super().__init__(arguments, terminal)
        self._terminal = terminal

    def see(self, line: Line) -> None:
        super().see(line)
        self._terminal.write_data(f"{line.to_json()}\n")

    def end(self, completion: Completion) -> None:
        super().end(completion)
        self._terminal.write_data(f"{last_line(completion).to_json(full=self._arguments.full)}\n")
