"""A connector with something added by the command: what it can do beside the port stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from harness.connector import ChecksDelegation, Connector, DryRun, Forks, Reaps, Session, SessionLog, Weighs
from harness.contract.capabilities import LlmCapabilities
from harness.contract.delegation import Delegation
from harness.contract.options import ConversationOptions
from harness.contract.value import JsonValue


class WrappedConnector:
    """Passes everything on; `completed` and `check` are for what a command adds."""

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self.name = connector.name
        self.variants = connector.variants
        self.restricted_options = connector.restricted_options

    async def get_capabilities(self, options: ConversationOptions) -> LlmCapabilities:
        completed = self.completed(options)
        self.check(completed)
        return await self._connector.get_capabilities(completed)

    def open_session(
        self, options: ConversationOptions, delegation: Delegation, log: SessionLog
    ) -> AbstractAsyncContextManager[Session]:
        return self._connector.open_session(self.completed(options), delegation, log)

    def dry_run(self, options: ConversationOptions) -> Mapping[str, JsonValue]:
        if isinstance(self._connector, DryRun):
            return self._connector.dry_run(self.completed(options))
        return {"argv": [], "env": []}

    async def reap(self, records: Sequence[JsonValue]) -> None:
        if isinstance(self._connector, Reaps):
            await self._connector.reap(records)

    def resident_bytes(self, records: Sequence[JsonValue]) -> int:
        return self._connector.resident_bytes(records) if isinstance(self._connector, Weighs) else 0

    def forked(self, records: Sequence[JsonValue]) -> Sequence[JsonValue]:
        return self._connector.forked(records) if isinstance(self._connector, Forks) else ()

    def check_delegation(self, options: ConversationOptions, delegation: Delegation) -> None:
        if isinstance(self._connector, ChecksDelegation):
            self._connector.check_delegation(self.completed(options), delegation)

    def completed(self, options: ConversationOptions) -> ConversationOptions:
        """The options as the connector gets them."""
        return options

    def check(self, options: ConversationOptions) -> None:
        """Raises what keeps a conversation with these options from beginning."""
