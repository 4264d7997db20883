"""What a person types, message by message: editing and history by readline, several lines as one message."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from harness.server_record import APPLICATION
from harness.trace.redaction import Redactor, secrets_of_environment

PROMPT = "> "
MORE = "… "
KEPT_LINES = 1000
BLOCK = '"""'
_INTERRUPTED = "^C"


# Ctrl-C at the prompt is a key: it replaces the line by '^C' and enters it. As a signal it would be lost where it comes
# just before readline waits for keys, which a person would see as a dead key.
_BINDINGS = (
    r'"\e[9001~": end-of-line',
    r'"\e[9002~": unix-line-discard',
    rf'"\C-c": "\e[9001~\e[9002~{_INTERRUPTED}\C-m"',
)


class Draft:
    """A message that grows line by line (pure): after a backslash it goes on, and until a second `\"\"\"`."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._is_block = False

    @property
    def is_begun(self) -> bool:
        return bool(self._lines) or self._is_block

    def add(self, line: str) -> str | None:
        """The message, once this was its last line."""
        if not self.is_begun and line.startswith(BLOCK):
            self._is_block = True
            line = line.removeprefix(BLOCK)
            if not line.strip():
                return None  # the text begins on the next line
        if self._is_block:
            is_last = line.rstrip().endswith(BLOCK)
            line = line.rstrip().removesuffix(BLOCK) if is_last else line
        else:
            is_last = not line.endswith("\\")
            line = line if is_last else line[:-1]
        self._lines.append(line)
        return "\n".join(self._lines).strip() if is_last else None


class Keyboard:
    """Reads messages; at a terminal with readline, else line by line. Open one with `open_keyboard`."""

    def __init__(self, *, has_person: bool) -> None:
        self.has_person = has_person
        self._redactor = Redactor(secrets_of_environment(os.environ))

    def message(self) -> str | None:
        """The next message; null at the end of what is typed (Ctrl-D).

        Raises:
            KeyboardInterrupt: Ctrl-C; what was typed of the message is gone.
        """
        draft = Draft()
        while True:
            line = self._line(MORE if draft.is_begun else PROMPT)
            if line is None:
                return None
            message = draft.add(line)
            if message is not None:
                return message

    def _line(self, prompt: str) -> str | None:
        if not self.has_person:
            line = sys.stdin.readline()
            return line.removesuffix("\n") if line else None
        try:
            with _interrupts_as_keys():
                line = input(prompt)
        except EOFError:
            return None
        if line == _INTERRUPTED:
            raise KeyboardInterrupt
        self._remember(line)
        return line

    def _remember(self, line: str) -> None:
        """As shells do, nothing that begins with a blank; and no secret of the environment."""
        import readline

        is_empty_or_private = not line.strip() or line[0].isspace()
        last = readline.get_current_history_length()
        if is_empty_or_private or self._redactor.text(line) != line:
            return
        for one in line.splitlines():  # a pasted text is one line here; the file has a line for each
            if last == 0 or readline.get_history_item(last) != one:
                readline.add_history(one)
                last += 1


@contextmanager
def open_keyboard() -> Generator[Keyboard]:
    """The terminal's keyboard with the history of earlier chats, which is kept when this is left."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield Keyboard(has_person=False)
        return
    import readline

    readline.set_auto_history(False)
    for binding in _BINDINGS:
        readline.parse_and_bind(binding)
    file = _history_file()
    if file is not None:
        with suppress(OSError):  # none yet, or another program's format
            readline.read_history_file(file)
    try:
        yield Keyboard(has_person=True)
    finally:
        if file is not None:
            readline.set_history_length(KEPT_LINES)
            with suppress(OSError):
                readline.write_history_file(file)


@contextmanager
def _interrupts_as_keys() -> Generator[None]:
    import termios  # terminals as POSIX knows them

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)
    without = termios.tcgetattr(keyboard)
    without[6][termios.VINTR] = b"\0"
    termios.tcsetattr(keyboard, termios.TCSADRAIN, without)
    try:
        yield
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _history_file() -> Path | None:
    """Only this user reads it; null where it cannot be kept."""
    from platformdirs import user_state_path

    file = user_state_path(APPLICATION) / "chat_history"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.chmod(0o600)
    except OSError:
        return None
    return file
