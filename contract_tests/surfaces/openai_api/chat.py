"""The `openai` package as it comes from its index, before a server of ours on loopback."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import openai
from openai.types.chat.chat_completion import Choice

from connectors.fake import FakeConnector
from contract_tests.llm_suite import Peer
from harness.connector import SessionLog
from harness.contract import ConversationOptions
from harness.contract.delegation import Delegation
from harness.local import LocalHarness
from harness.policy import Policy
from harness.registry import Registry
from harness.store.port import Store
from harness.surfaces.compatible.headers import CONVERSATION
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.server import Server, serve

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CLOCK: Any = {"type": "function", "function": {"name": "clock"}}


class Recorded(FakeConnector):
    """A scripted peer that tells with which options its sessions were opened."""

    def __init__(self, script: object, peer: Peer) -> None:
        super().__init__({"turns": script, "repeat": True} if isinstance(script, list) else script, on_seen=peer.note)
        self.opened: list[ConversationOptions] = []

    def open_session(self, options: ConversationOptions, delegation: Delegation, log: SessionLog) -> Any:
        self.opened.append(options)
        return super().open_session(options, delegation, log)


@dataclass
class Place:
    """A server, its house and the peer behind it."""

    server: Server
    house: LocalHarness
    peer: Peer
    connector: Recorded
    clients: list[openai.AsyncOpenAI] = field(default_factory=list[openai.AsyncOpenAI])

    def client(self, token: int = 0, **options: Any) -> openai.AsyncOpenAI:
        """Closed with the place."""
        self.clients.append(openai_client(self.server, token, **options))
        return self.clients[-1]

    def chat(self, token: int = 0, **options: Any) -> Chat:
        return Chat(self.client(token), options)

    @property
    def messages(self) -> list[Any]:
        """The text of each message that reached a peer."""
        contents = [cast(Sequence[Any], one.value) for one in self.peer.seen if one.what == "message"]
        return [[getattr(block, "text", block) for block in content] for content in contents]

    def count(self, what: str) -> int:
        return sum(one.what == what for one in self.peer.seen)


@dataclass
class Chat:
    """One client's view of a conversation: the messages it keeps, and sends whole each time."""

    client: openai.AsyncOpenAI
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    conversation: str | None = None
    """What the last answer named."""
    ignored: str | None = None

    async def say(self, text: str | Sequence[dict[str, Any]], **options: Any) -> Any:
        self.messages.append({"role": "user", "content": text})
        return await self.send(**options)

    async def answer(self, results: dict[str, str], **options: Any) -> Any:
        self.messages += [{"role": "tool", "tool_call_id": one, "content": text} for one, text in results.items()]
        return await self.send(**options)

    async def send(self, **options: Any) -> Any:
        """The choice; its message is kept as the client would keep it."""
        stream = {**self.options, **options}.get("stream", False)
        choice = await (self._streamed(options) if stream else self._whole(options))
        self.messages.append(choice.message.model_dump(exclude_none=True))
        return choice

    async def _whole(self, options: dict[str, Any]) -> Any:
        raw = await self.client.chat.completions.with_raw_response.create(**self._arguments(options))
        self._note(raw.headers)
        return raw.parse().choices[0]

    async def _streamed(self, options: dict[str, Any]) -> Any:
        raw = await self.client.chat.completions.with_raw_response.create(**self._arguments(options))
        self._note(raw.headers)
        return await collected(raw.parse())

    def _arguments(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"model": "fake", "messages": self.messages, "tools": [WEATHER], **self.options, **options}

    def _note(self, headers: Any) -> None:
        self.conversation, self.ignored = headers[CONVERSATION], headers.get("X-Harness-Ignored")


async def collected(stream: Any) -> Any:
    """Chunks as the whole choice, as a client puts them together."""
    content, calls, reason = "", dict[int, dict[str, Any]](), None
    async for chunk in stream:
        for choice in chunk.choices:
            content += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for call in choice.delta.tool_calls or ():
                calls.setdefault(call.index, call.model_dump(exclude={"index"}))
    message = {"role": "assistant", "content": content or None, "tool_calls": [calls[n] for n in sorted(calls)] or None}
    return Choice.model_validate({"index": 0, "finish_reason": reason, "message": message})


def calls_of(choice: Any) -> list[tuple[str, str, str]]:
    return [(call.id, call.function.name, call.function.arguments) for call in choice.message.tool_calls or ()]


@asynccontextmanager
async def open_place(
    script: object,
    *,
    compatible: CompatibleSettings | None = None,
    policy: Policy | None = None,
    store: Store | None = None,
    **options: Any,
) -> AsyncGenerator[Place]:
    """A server whose only connector follows the script (of turns, repeated)."""
    peer = Peer()
    connector = Recorded(script, peer)
    async with (
        LocalHarness(Registry({"fake": connector}), default_connector="fake", policy=policy, store=store) as house,
        serve(house, connectors=["fake"], compatible=compatible, **options) as server,
    ):
        place = Place(server, house, peer, connector)
        with anyio.fail_after(30):
            try:
                yield place
            finally:
                for client in place.clients:
                    await client.close()


def openai_client(server: Server, token: int = 0, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        **{
            "base_url": f"{server.url}/openai/v1",
            "api_key": server.tokens[token].secret,
            "http_client": openai.DefaultAsyncHttpxClient(trust_env=False),
            "max_retries": 0,
            "timeout": 20,
            **options,
        }
    )
