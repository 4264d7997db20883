"""A person at the terminal who answers approvals and questions, line by line, on stderr and the keyboard."""

from __future__ import annotations

import json
import os
import sys
import termios
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import anyio

from harness.cli.activity import Line, Style, call_text
from harness.cli.edit_preview import preview
from harness.cli.text_view import WriteLine
from harness.contract.requests import (
    REFUSING,
    Answer,
    HostRequest,
    HostResponse,
    OptionKind,
    Question,
    QuestionAction,
    RequestKind,
    RequestOption,
)
from harness.errors import InvalidArgument
from harness.turn.answers import denying_option

SHOWN_ARGUMENTS = 4000
_LEFT = "The person at the terminal left."


@dataclass(frozen=True)
class _Choice:
    """What may be typed for it is its number or its id."""

    id: str
    label: str


class Person:
    """An `AskPerson` of the orchestrator. Open one with `open_person`."""

    def __init__(self, keyboard: int, write_line: WriteLine, directory: Path | None = None) -> None:
        self._keyboard = keyboard
        self._write_line = write_line
        self._directory = directory

    async def __call__(self, request: HostRequest) -> HostResponse:
        # what was typed before the question was asked is no answer to it
        termios.tcflush(self._keyboard, termios.TCIFLUSH)
        if request.kind == RequestKind.APPROVAL:
            return await self._approval(request)
        return await self._questions(request)

    async def _approval(self, request: HostRequest) -> HostResponse:
        """What would be done, where and with which arguments, and then once, always, no, or something else."""
        self._show(request)
        choices = [_Choice(option.id, _label(option)) for option in request.options]
        self._list(choices)
        once = next((option.id for option in request.options if option.kind == OptionKind.ALLOW_ONCE), None)
        keys = "number, y or n" if once is None else "number, y, n, or e for other arguments"
        while True:
            typed = await self._line(f"{keys} (a reason may follow): ")
            if typed is None:
                return HostResponse(
                    request_id=request.request_id, selected_option=denying_option(request), reason=_LEFT
                )
            if typed.lower() in ("e", "edit") and once is not None:
                changed = await self._changed_arguments()
                if changed is not None:
                    return HostResponse(
                        request_id=request.request_id, selected_option=once, updated_arguments_json=changed
                    )
                continue
            word, _, reason = typed.partition(" ")
            chosen = request.option(_chosen(word, choices) or _short_answer(word, request))
            if chosen is not None:
                given = reason.strip() or None if chosen.kind in REFUSING else None
                return HostResponse(request_id=request.request_id, selected_option=chosen.id, reason=given)

    def _show(self, request: HostRequest) -> None:
        shown = call_text(request.tool_name or "?", request.arguments_json, SHOWN_ARGUMENTS)
        self._write_line(Line(Style.ALERT, f"? {request.title or 'The peer asks for leave'}: {shown}"))
        length = len(request.arguments_json or "")
        if length > SHOWN_ARGUMENTS:
            self._write_line(Line(Style.ALERT, f"  the arguments have {length} characters, not all are shown"))
        where = None if self._directory is None else f"in {self._directory}"
        for detail in (request.description, request.target, where):
            if detail:
                self._write_line(Line(Style.QUIET, f"  {detail}"))
        for line in preview(request.arguments_json, self._directory):
            self._write_line(line)

    async def _changed_arguments(self) -> str | None:
        """A JSON object, typed on one line; null goes back to the question."""
        while True:
            typed = await self._line("new arguments as a JSON object (empty: back): ")
            if not typed:
                return None
            try:
                is_object = isinstance(json.loads(typed), dict)
            except (ValueError, RecursionError):
                is_object = False
            if is_object:
                return typed
            self._write_line(Line(Style.BAD, "  that is no JSON object"))

    async def _questions(self, request: HostRequest) -> HostResponse:
        answers: list[Answer] = []
        for question in request.questions:
            answer = await self._question(question)
            if answer is None:
                return HostResponse(request_id=request.request_id, action=QuestionAction.DECLINE, reason=_LEFT)
            answers.append(answer)
        return HostResponse(request_id=request.request_id, action=QuestionAction.ACCEPT, answers=answers)

    async def _question(self, question: Question) -> Answer | None:
        head = f"{question.header}: " if question.header else ""
        self._write_line(Line(Style.ALERT, f"? {head}{question.text}"))
        choices = [
            _Choice(option.id, f"{option.label}: {option.description}" if option.description else option.label)
            for option in question.options
        ]
        self._list(choices)
        takes_text = question.allow_free_text or not choices
        how = "numbers with commas" if question.multi_select else "a number" if choices else "your answer"
        prompt = f"{how} or your own words: " if choices and takes_text else f"{how}: "
        while True:
            typed = await self._line(prompt, secret=question.secret)
            if typed is None:
                return None
            words = typed.split(",") if question.multi_select else [typed]
            chosen = [_chosen(word.strip(), choices) for word in words]
            known = [one for one in chosen if one is not None]
            if choices and len(known) == len(chosen):
                return Answer(question_id=question.id, selected=known)
            if takes_text and typed:
                return Answer(question_id=question.id, text=typed)

    def _list(self, choices: Sequence[_Choice]) -> None:
        for number, choice in enumerate(choices, 1):
            self._write_line(Line(Style.CALL, f"  {number}  {choice.label}"))

    async def _line(self, prompt: str, *, secret: bool = False) -> str | None:
        """The next line that is typed; null at its end (Ctrl-D). Can be cancelled: no thread reads the keyboard."""
        typed = b""
        with _without_echo(self._keyboard) if secret else nullcontext():
            # only now: a quick typist's secret would be echoed otherwise
            sys.stderr.write(prompt)
            sys.stderr.flush()
            while not typed.endswith(b"\n"):
                await anyio.wait_readable(self._keyboard)
                data = os.read(self._keyboard, 4096)
                if not data:
                    sys.stderr.write("\n")
                    return None
                typed += data
        if secret:
            sys.stderr.write("\n")
        return typed.decode("utf-8", "replace").strip()


@contextmanager
def open_person(write_line: WriteLine, directory: Path | None = None) -> Generator[Person]:
    """The person at stdin, or at the terminal behind it when stdin is something else.

    `directory` is where the peer works, if that is on this machine.

    Raises:
        InvalidArgument: there is no terminal.
    """
    with ExitStack() as files:
        if sys.stdin is not None and sys.stdin.isatty():
            keyboard = sys.stdin.fileno()
        else:
            try:
                keyboard = files.enter_context(Path("/dev/tty").open("rb", buffering=0)).fileno()
            except OSError:
                raise InvalidArgument(
                    "--approve ask: there is no terminal to ask at; use allow or deny, or wait with --url"
                ) from None
        yield Person(keyboard, write_line, directory)


def _label(option: RequestOption) -> str:
    text = option.label or str(option.kind).replace("_", " ")
    return f"{text}: {option.description}" if option.description else text


def _short_answer(word: str, request: HostRequest) -> str | None:
    if word.lower() in ("y", "yes"):
        return OptionKind.ALLOW_ONCE
    if word.lower() in ("a", "always"):
        return OptionKind.ALLOW_ALWAYS
    return denying_option(request) if word.lower() in ("n", "no") else None


def _chosen(word: str, choices: Sequence[_Choice]) -> str | None:
    if word.isdecimal() and 1 <= int(word) <= len(choices):
        return choices[int(word) - 1].id
    return next((choice.id for choice in choices if choice.id == word), None)


@contextmanager
def _without_echo(keyboard: int) -> Generator[None]:
    before = termios.tcgetattr(keyboard)
    silent = termios.tcgetattr(keyboard)
    silent[3] &= ~termios.ECHO
    termios.tcsetattr(keyboard, termios.TCSADRAIN, silent)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
