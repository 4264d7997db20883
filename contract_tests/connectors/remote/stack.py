"""Harnesses that stand on each other, all in this process: the caller talks to the top one."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from connectors.fake import FakeConnector
from connectors.remote import RemoteConnector
from contract_tests.llm_suite import TOOLS, Peer, say
from harness.connector import Connector
from harness.contract import ConversationOptions
from harness.local import LocalHarness
from harness.registry import Registry
from harness.settings import Rights, Settings
from harness.store import Store
from harness.surfaces.server import Server, serve
from harness.surfaces.tokens import Token

TOKEN = Token("made-up-secret", "below", Rights())


@dataclass
class Stack:
    """The top one, the servers below it (the lowest last), and the options that lead through all of them."""

    top: LocalHarness
    options: ConversationOptions
    servers: list[Server] = field(default_factory=list[Server])
    peer: Peer = field(default_factory=Peer)

    def more_options(self, **more: Any) -> ConversationOptions:
        return self.options.model_copy(update={"tools": TOOLS, **more})

    async def begin(self, message: str = "hello", **more: Any) -> tuple[str, str]:
        conversation_id = await self.top.begin_conversation(self.more_options(**more))
        return conversation_id, await say(self.top, conversation_id, message)


def through(url: str, connector: str, options: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Connector options of `remote` that lead to this connector of the server."""
    return {"url": url, "token": TOKEN.secret, "connector": connector, "options": dict(options or {})}


def remote(chosen: Mapping[str, Any], **more: Any) -> ConversationOptions:
    return ConversationOptions(connector="remote", connector_options_json=json.dumps(chosen), **more)


@asynccontextmanager
async def open_house(
    *connectors: Connector, settings: Settings | None = None, store: Store | None = None
) -> AsyncGenerator[LocalHarness]:
    registry = Registry({one.name: one for one in (*connectors, RemoteConnector())})
    async with LocalHarness(registry, settings=settings, store=store) as house:
        yield house


@asynccontextmanager
async def open_stack(script: object, *, depth: int = 3, settings: Settings | None = None) -> AsyncGenerator[Stack]:
    """`depth` harnesses: the lowest has `fake` with this script (of turns, repeated), the others have only `remote`."""
    peer = Peer()
    fake = FakeConnector({"turns": script, "repeat": True} if isinstance(script, list) else script, on_seen=peer.note)
    async with AsyncExitStack() as resources:
        servers: list[Server] = []
        connector, chosen = "fake", dict[str, Any]()
        for level in range(depth - 1):
            below = [fake] if level == 0 else []
            house = await resources.enter_async_context(open_house(*below, settings=settings))
            servers.insert(0, await resources.enter_async_context(serve(house, tokens=[TOKEN])))
            connector, chosen = "remote", through(servers[0].url, connector, chosen)
        top = await resources.enter_async_context(open_house(settings=settings))
        yield Stack(top, remote(chosen), servers, peer)
