"""Connector name -> connector, found by entry point and imported on first use."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import cast

from harness.connector import Connector, TellsLogin
from harness.contract.options import ConversationOptions
from harness.errors import ConnectorUnavailable, HarnessError, InvalidArgument

ENTRY_POINT_GROUP = "harness.connectors"
PREFERENCE = ("claude", "codex", "copilot", "acp", "anthropic", "openai", "ollama", "local")
"""The order in which a connector is looked for when none is named; `fake` is only ever chosen by name."""


class Registry:
    """The connectors of this installation; each is made once per registry."""

    def __init__(self, connectors: Mapping[str, Connector] | None = None) -> None:
        self._connectors: dict[str, Connector] = dict(connectors or {})
        self._entries = {} if connectors is not None else {e.name: e for e in entry_points(group=ENTRY_POINT_GROUP)}

    def names(self) -> list[str]:
        return sorted({*self._connectors, *self._entries})

    def connector(self, name: str) -> Connector:
        """The connector of that name, without a variant.

        Raises:
            InvalidArgument: no such connector.
            ConnectorUnavailable: it is installed but cannot be imported.
        """
        known = self._connectors.get(name)
        if known is not None:
            return known
        entry = self._entries.get(name)
        if entry is None:
            raise InvalidArgument(f"unknown connector '{name}'; known: {', '.join(self.names()) or 'none'}")
        try:
            connector = cast(Connector, entry.load()())
        except ImportError as error:
            raise ConnectorUnavailable(
                f"connector '{name}' cannot be loaded ({error}); type: pip install 'level2-harness[{name}]'"
            ) from error
        self._connectors[name] = connector
        return connector

    def resolve(self, options: ConversationOptions) -> tuple[Connector, ConversationOptions]:
        """The connector the options name, and the options with the variant (`claude:bridge`) spelled out."""
        name, _, variant = (options.connector or "").partition(":")
        if not name:
            raise InvalidArgument(f"no connector named; known: {', '.join(self.names())}")
        connector = self.connector(name)
        if not variant:
            return connector, options
        meant = connector.variants.get(variant)
        if meant is None:
            known = ", ".join(f"'{name}:{known}'" for known in sorted(connector.variants)) or "none"
            raise InvalidArgument(f"connector '{name}' has no variant '{variant}'; known: {known}")
        chosen = json.loads(options.connector_options_json or "{}")
        return connector, options.model_copy(update={"connector_options_json": json.dumps({**meant, **chosen})})

    async def first_usable(self, options: ConversationOptions) -> tuple[str, list[HarnessError]]:
        """The first connector of `PREFERENCE` that can be used here, and why those before it cannot.

        Raises:
            ConnectorUnavailable: none is; the message has the shortest way to get one.
        """
        refusals: list[HarnessError] = []
        for name in (known for known in PREFERENCE if known in self.names()):
            try:
                connector = self.connector(name)
                await connector.get_capabilities(options)
                await _check_login(name, connector, options)
            except HarnessError as error:
                refusals.append(error)
            else:
                return name, refusals
        reasons = "; ".join(error.message for error in refusals)
        reasons = reasons or "none is installed; type: pip install 'level2-harness[claude]'"
        raise ConnectorUnavailable(f"no usable connector ({reasons}); the connector 'fake' needs no program and no key")


async def _check_login(name: str, connector: Connector, options: ConversationOptions) -> None:
    """One that is chosen by itself has to have credentials, where that can be told."""
    login = await connector.login(options) if isinstance(connector, TellsLogin) else None
    if login is not None and login.is_there is False:
        raise ConnectorUnavailable(f"connector '{name}': {login.told}; {login.remedy}", reason="not_logged_in")
