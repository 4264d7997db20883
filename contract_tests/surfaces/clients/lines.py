"""What every client library gets from a test, and what it gives back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import anthropic
import anyio
import openai

from contract_tests.surfaces.agents import AgentServer, open_agent_server
from harness.settings import Rights
from harness.surfaces.compatible.headers import CONVERSATION
from harness.surfaces.compatible.settings import CompatibleSettings
from harness.surfaces.tokens import Token

INSTRUCTIONS = "You know the weather."
DESCRIPTION = "The weather in a city."
PATIENT = CompatibleSettings(quiet_seconds=1.0)
"""On a busy machine the calls of one message may be further apart than the 50 ms of a quiet one."""
USERS = tuple(Token(f"the secret of {name}", name, Rights()) for name in ("ann", "bob"))


class Weather:
    """The client's tool, which counts its calls."""

    def __init__(self, sky: str = "rain", meeting: Meeting | None = None) -> None:
        self.asked: list[str] = []
        self._sky = sky
        self._meeting = meeting

    def tool(self) -> Callable[..., Any]:
        """A function, as libraries want it: its name, its types and its docstring are what the model reads."""

        async def get_weather(city: str) -> str:
            self.asked.append(city)
            if self._meeting is not None:
                await self._meeting.wait()
            return f"{self._sky} in {city}"

        get_weather.__doc__ = DESCRIPTION
        return get_weather


class Meeting:
    """Whoever comes waits until all have come."""

    def __init__(self, number: int) -> None:
        self._missing = number
        self._complete = anyio.Event()

    async def wait(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            self._complete.set()
        await self._complete.wait()


@dataclass
class Line:
    """One user's way to the server."""

    url: str
    key: str
    model: str
    weather: Weather
    options: Mapping[str, Any]
    """Of the SDK's client: `timeout`, `max_retries`, `default_headers`."""
    requests: list[str] = field(default_factory=list[str])
    """The paths of all HTTP requests that were sent."""
    conversations: list[str] = field(default_factory=list[str])
    """What each response named."""

    def openai_client(self) -> openai.AsyncOpenAI:
        http = openai.DefaultAsyncHttpxClient(trust_env=False, event_hooks=self.hooks)
        return openai.AsyncOpenAI(
            base_url=f"{self.url}/openai/v1", api_key=self.key, http_client=http, **{"max_retries": 0, **self.options}
        )

    def anthropic_client(self) -> anthropic.AsyncAnthropic:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False, event_hooks=self.hooks)
        return anthropic.AsyncAnthropic(
            base_url=f"{self.url}/anthropic", api_key=self.key, http_client=http, **{"max_retries": 0, **self.options}
        )

    @property
    def hooks(self) -> Mapping[str, list[Callable[..., Any]]]:
        async def sent(request: Any) -> None:
            self.requests.append(request.url.path)

        async def came(response: Any) -> None:
            if CONVERSATION in response.headers:
                self.conversations.append(response.headers[CONVERSATION])

        return {"request": [sent], "response": [came]}


@dataclass(frozen=True)
class Said:
    """What a library made of an answer."""

    text: str
    """The answer, as the library gives it."""
    history: Sequence[Any]
    """The library's own, to go on with."""
    pieces: Sequence[str] = ()
    """The answer's text as it was streamed."""


class Library(Protocol):
    """A client library, used as its own manual says."""

    async def ask(self, prompt: str, history: Sequence[Any] = (), *, streams: bool = False) -> Said:
        """Runs the tool loop to the answer."""
        ...

    async def leave(self, prompt: str) -> None:
        """Streams an answer, and goes away with its first words."""
        ...

    async def close(self) -> None: ...


@dataclass
class Place:
    """An agent behind a server, and libraries before it."""

    agent: AgentServer
    make: Callable[[Line], Library]
    _opened: list[Library] = field(default_factory=list[Library])

    def user(self, token: int = 0, weather: Weather | None = None, **options: Any) -> tuple[Library, Line]:
        """The library in the hands of a user."""
        server = self.agent.server
        line = Line(server.url, server.tokens[token].secret, self.agent.name, weather or Weather(), options)
        self._opened.append(self.make(line))
        return self._opened[-1], line

    async def close(self) -> None:
        for library in self._opened:
            await library.close()


@asynccontextmanager
async def open_place(
    make: Callable[[Line], Library],
    row: str,
    script: Sequence[Any],
    directory: Path,
    compatible: CompatibleSettings = PATIENT,
) -> AsyncGenerator[Place]:
    async with open_agent_server(row, script, directory, compatible, USERS) as agent:
        place = Place(agent, make)
        try:
            yield place
        finally:
            await place.close()
