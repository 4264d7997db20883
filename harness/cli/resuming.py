"""Which conversation `harness run` and `chat` go on with: `--continue`, `--resume`, `--fork`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.contract.conversational_llm import ConversationalLLM, ConversationDirectory
from harness.contract.output import TERMINAL
from harness.contract.value import Label
from harness.errors import InvalidArgument

DIRECTORY = "directory"
"""The label of a conversation that was begun in a directory; its value does not tell which."""


class Directory(ConversationalLLM, ConversationDirectory, Protocol):
    """Both halves of a harness."""


@dataclass(frozen=True)
class Earlier:
    """What was typed: at most one of them says something."""

    latest: bool = False
    resume: str | None = None
    fork: str | None = None

    def __bool__(self) -> bool:
        return self.latest or self.resume is not None or self.fork is not None


@dataclass(frozen=True)
class TakenUp:
    """The conversation, and its turn where that has not ended; without a turn there must be a message."""

    conversation_id: str
    turn_id: str | None = None


def directory_label(directory: Path) -> Label:
    """The journal keeps no path: it may be carried to another machine."""
    digest = hashlib.sha256(str(directory.resolve()).encode("utf-8", "surrogateescape")).hexdigest()
    return Label(name=DIRECTORY, value=digest[:16])


async def taken_up(llm: Directory, earlier: Earlier, directory: Path, *, has_message: bool) -> TakenUp:
    """Finds it. A new message is for a conversation at rest, none is for one whose turn goes on.

    Raises:
        InvalidArgument: there is no such conversation here, or nothing to do in it.
        NotSupported: `--fork` of a connector that cannot.
        ConversationInUse: another process has it open.
    """
    if earlier.fork is not None and not has_message:
        raise InvalidArgument("--fork: say how to go on, with PROMPT or with '-' for stdin")
    found = await earlier_conversation(llm, earlier, directory)
    if earlier.fork is not None:
        return found
    conversation_id, turn_id = found.conversation_id, found.turn_id
    if has_message and turn_id is not None:
        raise InvalidArgument(
            f"turn '{turn_id}' of conversation '{conversation_id}' has not ended: take it up without a PROMPT first"
        )
    if not has_message and turn_id is None:
        raise InvalidArgument(
            f"no turn of conversation '{conversation_id}' is unfinished: say how to go on, with PROMPT or with '-'"
        )
    return found


async def earlier_conversation(llm: Directory, earlier: Earlier, directory: Path) -> TakenUp:
    """The conversation that was named, whatever there is to do in it.

    Raises:
        InvalidArgument: there is no such conversation here.
        NotSupported: `--fork` of a connector that cannot.
        ConversationInUse: another process has it open.
    """
    if earlier.fork is not None:
        return TakenUp(await llm.fork_conversation(earlier.fork))
    conversation_id = earlier.resume or await _latest(llm, directory)
    return TakenUp(conversation_id, await _unfinished(llm, conversation_id))


async def _latest(llm: Directory, directory: Path) -> str:
    label = directory_label(directory)
    for known in await llm.list_conversations():
        if label in known.labels:
            return known.conversation_id
    raise InvalidArgument("--continue: no conversation was begun in this directory; 'harness sessions list' names all")


async def _unfinished(llm: Directory, conversation_id: str) -> str | None:
    turns = (await llm.export_conversation(conversation_id)).turns
    if not turns:
        return None
    state = await llm.poll_turn(conversation_id, turns[-1].turn_id)
    return None if state.status in TERMINAL else turns[-1].turn_id
