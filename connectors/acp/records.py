"""What a conversation notes of its agent for the process that takes it up: its session, and calls it may forget."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from connectors._json import JsonObject, object_in, plain_text_in
from connectors.acp.agent import Agent
from harness.connector import SessionLog

_SESSION, _OPENED, _CLOSED = "acp_session", "acp_call_opened", "acp_call_closed"


def note_session(log: SessionLog, agent: Agent, session_id: str, version: str) -> None:
    log.append({_SESSION: {"agent": agent.name, "session_id": session_id, "version": version}})


def recorded_session(log: SessionLog, agent: Agent) -> str | None:
    """The id of the agent's session that an earlier process of this conversation noted last."""
    noted = [object_in(record[_SESSION]) for record in _records(log) if _SESSION in record]
    return str(noted[-1]["session_id"]) if noted and noted[-1].get("agent") == agent.name else None


class CallNotes:
    """Of an agent that forgets a call which is open when it dies: its model would not know that it made it."""

    def __init__(self, log: SessionLog, agent: Agent) -> None:
        self._log = log if agent.forgets_open_calls else None
        self._open: set[str] = set()

    def opened(self, key: str, tool_name: str) -> None:
        if self._log is not None:
            self._open.add(key)
            self._log.append({_OPENED: key, "tool": tool_name})

    def closed(self, key: str) -> None:
        if self._log is not None and key in self._open:
            self._open.discard(key)
            self._log.append({_CLOSED: key})

    def all_closed(self) -> None:
        """The agent has ended its turn: what was given up is in its session too."""
        for key in sorted(self._open):
            self.closed(key)

    def take_forgotten(self) -> list[str]:
        """The tools of calls that an earlier process left open, each told once."""
        open_calls: dict[str, str] = {}
        for record in _records(self._log) if self._log is not None else ():
            if _OPENED in record:
                open_calls[plain_text_in(record[_OPENED])] = plain_text_in(record.get("tool"))
            elif _CLOSED in record:
                open_calls.pop(plain_text_in(record[_CLOSED]), None)
            elif _SESSION in record:
                open_calls.clear()
        self._open.update(open_calls)
        self.all_closed()
        return list(open_calls.values())


def _records(log: SessionLog) -> Iterator[JsonObject]:
    for record in log.records():
        if isinstance(record, dict):
            yield cast(JsonObject, record)
