"""What a conversation remembers of the CLI between its processes (`SessionLog`): records to write, and what they say.

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from connectors._json import JsonObject, object_in, text_in
from harness.contract.value import JsonValue

_SESSION = "claude_session"
_TURN = "claude_turn"
_OPTIONS = "claude_turn_options"
_FORK = "claude_fork"


@dataclass(frozen=True, slots=True)
class Fork:
    """Another conversation's session, up to a message, that this one begins with."""

    session_id: str
    message_uuid: str | None


@dataclass(frozen=True, slots=True)
class Memory:
    """What the records of a conversation say together; the last one of a kind counts."""

    session_id: str | None = None
    turns: tuple[str, ...] = ()
    """The uuids of our messages whose turns have ended in this session: the CLI's history must have them."""
    last_message: str | None = None
    """The uuid of the model's last message in it."""
    totals: Mapping[str, JsonObject] | None = None
    """What the CLI had counted by then."""
    turn_options: Mapping[str, JsonValue] | None = None
    """What the last turn asked for of its own."""
    fork: Fork | None = None


def memory_of(records: Sequence[JsonValue]) -> Memory:
    session_id: str | None = None
    turns: list[str] = []
    last: JsonObject = {}
    turn_options: JsonObject | None = None
    fork: Fork | None = None
    for record in (object_in(one) for one in records):
        if _SESSION in record:
            begun = text_in(object_in(record[_SESSION]).get("session_id"))
            if begun != session_id:
                session_id, turns, last = begun, [], {}
        elif _TURN in record:
            last = object_in(record[_TURN])
            turns.append(text_in(last.get("message")))
        elif _OPTIONS in record:
            turn_options = object_in(record[_OPTIONS])
        elif _FORK in record:
            told = object_in(record[_FORK])
            fork = Fork(text_in(told.get("session_id")), text_in(told.get("message")) or None)
    totals = {model: object_in(figures) for model, figures in object_in(last.get("totals")).items()}
    return Memory(
        session_id, tuple(turns), text_in(last.get("last_message")) or None, totals or None, turn_options, fork
    )


def session_begun(session_id: str, *, cwd: str, home: str, version: str) -> JsonValue:
    return {_SESSION: {"session_id": session_id, "cwd": cwd, "home": home, "version": version}}


def turn_ended(message_uuid: str, last_message: str | None, totals: Mapping[str, JsonObject]) -> JsonValue:
    return {_TURN: {"message": message_uuid, "last_message": last_message, "totals": {**totals}}}


def turn_options_changed(turn_options: Mapping[str, JsonValue]) -> JsonValue:
    return {_OPTIONS: {**turn_options}}


def forked(records: Sequence[JsonValue]) -> list[JsonValue]:
    """What a conversation begins with that is to go on from here by itself."""
    memory = memory_of(records)
    if memory.session_id is None:
        return [] if memory.fork is None else [_fork_record(memory.fork)]
    return [_fork_record(Fork(memory.session_id, memory.last_message))]


def _fork_record(fork: Fork) -> JsonValue:
    return {_FORK: {"session_id": fork.session_id, "message": fork.message_uuid}}
