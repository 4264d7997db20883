"""The connector `fake`: opens sessions with a scripted peer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from connectors.fake.config import RESTRICTED, config_of, read_script_file, script_of
from connectors.fake.script import Script, capabilities_of, read_script
from connectors.fake.session import FakeSession, OnSeen, Seen
from harness.connector import SessionLog
from harness.contract.capabilities import LlmCapabilities
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue

__all__ = ["FakeConnector", "Seen"]


class FakeConnector:
    """Follows a script: the one its options name, else `script`, else it echoes.

    `script` is a `Script`, a YAML or JSON file, or the same as plain values. `on_seen` is told what reaches the peer,
    so that a test can look at a conversation from the other side.
    """

    name = "fake"
    variants: Mapping[str, Mapping[str, JsonValue]] = {"emit": {"style": "emit"}, "ask": {"style": "ask"}}
    restricted_options = RESTRICTED

    def __init__(self, script: Script | Path | object | None = None, *, on_seen: OnSeen | None = None) -> None:
        if script is None:
            self._script = Script()
        elif isinstance(script, Path):
            self._script = read_script_file(script)
        else:
            self._script = read_script(script)
        self._on_seen: OnSeen = on_seen or (lambda _: None)

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        return capabilities_of(self._script_for(options), _own_version())

    @asynccontextmanager
    async def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AsyncGenerator[FakeSession]:
        session = FakeSession(self._script_for(options), options, delegation, log, self._on_seen)
        self._on_seen(Seen("opened"))
        try:
            yield session
        finally:
            self._on_seen(Seen("closed"))

    def forked(self, records: Sequence[JsonValue]) -> Sequence[JsonValue]:
        """The peer's memory goes with the new conversation, where a script says that it can (`capabilities: fork`)."""
        return records

    def dry_run(self, options: ConversationOptions) -> Mapping[str, Any]:
        turns = self._script_for(options).turns
        return {"argv": [], "environment": [], "script": "echo" if turns is None else f"{len(turns)} turn(s)"}

    def _script_for(self, options: ConversationOptions) -> Script:
        return script_of(config_of(options), self._script)


def _own_version() -> str:
    try:
        return version("level2-harness")
    except PackageNotFoundError:
        return "0"
