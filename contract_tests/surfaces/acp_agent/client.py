"""The Python client of the protocol, as it comes from its index, with `harness acp` as the agent it starts."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import acp
import anyio
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    RequestPermissionResponse,
)
from acp.transports import spawn_stdio_transport

from contract_tests.cli.command import HARNESS

SECONDS = 30


@dataclass
class Person:
    """What the client's side saw and says."""

    choose: str | None = None
    """The id of the option; null says that the turn was cancelled."""
    fill: dict[str, Any] = field(default_factory=dict[str, Any])
    updates: list[Any] = field(default_factory=list[Any])
    permissions: list[Any] = field(default_factory=list[Any])
    forms: list[Any] = field(default_factory=list[Any])
    on_update: Callable[[Any], None] = lambda _: None
    asked: anyio.Event = field(default_factory=anyio.Event)
    may_answer: anyio.Event | None = None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.on_update(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **_: Any
    ) -> RequestPermissionResponse:
        self.permissions.append((tool_call, options))
        self.asked.set()
        if self.may_answer is not None:
            await self.may_answer.wait()
        if self.choose is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self.choose))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> AcceptElicitationResponse:
        self.forms.append((message, mode))
        return AcceptElicitationResponse(action="accept", content=self.fill)

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    @property
    def text(self) -> str:
        return "".join(update.content.text for update in self.of("agent_message_chunk"))


@dataclass
class Connected:
    """An agent that was started."""

    conn: Any
    process: Any
    person: Person
    initialized: Any
    cwd: Path

    async def new_session(self, **more: Any) -> str:
        return (await self.conn.new_session(**{"cwd": str(self.cwd), "mcp_servers": [], **more})).session_id

    async def say(self, session_id: str, text: str = "Go.") -> Any:
        return await self.conn.prompt(session_id=session_id, prompt=[acp.text_block(text)])


def scripted(*turns: list[dict[str, Any]], **members: Any) -> list[str]:
    """Options that choose the connector `fake` with a script of these turns."""
    given = {"turns": turns, **members} if turns else members
    return ["--connector", "fake", *(word for name, value in given.items() for word in _option(name, value))]


def _option(name: str, value: Any) -> tuple[str, str]:
    return "-O", f"{name}={json.dumps(value)}"


def environment(home: Path) -> Mapping[str, str]:
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "XDG_STATE_HOME": str(home / "state"), "USER": "u"}


@asynccontextmanager
async def started(
    home: Path, *arguments: str, person: Person | None = None, has_forms: bool = False
) -> AsyncGenerator[Connected]:
    """The command, greeted; its end is waited for."""
    person = person or Person()
    work = home / "work"
    work.mkdir(exist_ok=True)
    with (home / "stderr").open("ab") as stderr:
        async with spawn_stdio_transport(
            HARNESS, "acp", *arguments, env=environment(home), cwd=str(home), stderr=stderr.fileno()
        ) as (reader, writer, process):
            conn = acp.connect_to_agent(person, writer, reader, use_unstable_protocol=True)  # type: ignore[arg-type]
            elicitation = ElicitationCapabilities(form=ElicitationFormCapabilities()) if has_forms else None
            with anyio.fail_after(SECONDS):
                initialized = await conn.initialize(
                    protocol_version=acp.PROTOCOL_VERSION,
                    client_capabilities=ClientCapabilities(elicitation=elicitation),
                )
                yield Connected(conn, process, person, initialized, work)
            await conn.close()
