"""A chat as a person drives it: types at the prompt, reads up to the next one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from contract_tests.cli.command import Screen, Shell

_SEQUENCE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
PROMPT = "> "


def plain(shown: str) -> str:
    """What is on the screen, without colours and the terminal's modes."""
    return _SEQUENCE.sub("", shown).replace("\r\n", "\n").replace("\r", "")


class ChatScreen:
    """The screen of one chat."""

    def __init__(self, screen: Screen) -> None:
        self.screen = screen
        self._read = 0

    def at_prompt(self) -> str:
        """Reads up to the next prompt; gives what is new before it."""
        while not (new := plain(self.screen.shown[self._read :])).endswith(f"\n{PROMPT}"):
            assert self.screen.more(), f"no prompt, only: {new}"
        self._read = len(self.screen.shown)
        return new.removesuffix(PROMPT)

    def say(self, text: str) -> list[str]:
        """Types a message or a command; gives the lines that answer it."""
        self.screen.type(f"{text}\n")
        return self.at_prompt().splitlines()[text.count("\n") + 1 :]

    def until(self, text: str) -> str:
        """Reads until the text is there; gives what is new."""
        while text not in (new := plain(self.screen.shown[self._read :])):
            assert self.screen.more(), f"'{text}' never came, only: {new}"
        self._read = len(self.screen.shown)
        return new

    def leave(self) -> list[str]:
        """Ctrl-D; gives the last lines."""
        self.screen.type("\x04")
        assert self.screen.end() == 0
        return plain(self.screen.shown[self._read :]).strip().splitlines()


@contextmanager
def open_chat(shell: Shell, *arguments: str, **environment: str) -> Iterator[ChatScreen]:
    """A chat that waits for its first message."""
    with shell.at_terminal("chat", *arguments, **environment) as screen:
        yield ChatScreen(screen)
