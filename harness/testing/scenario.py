"""What a scenario is: a script in neutral words, and what a host must see when a peer follows it."""

from __future__ import annotations

import re
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from harness.contract.capabilities import LlmCapabilities, Resume, SeedHistory
from harness.contract.requests import RequestKind
from harness.contract.tools import ToolDescriptor, ToolSourceKind
from harness.scripted_model.server import ScriptedModel
from harness.testing.talk import Talk

Entry: TypeAlias = Mapping[str, Any]
"""One model call in the words of `harness.scripted_model`, with the additions below."""
Script: TypeAlias = Sequence[Sequence[Entry]]
"""Per turn the model calls of that turn."""

RUN = "internal:run"
"""A call of the peer's own shell, which asks before it acts; each row knows the peer's name for it."""
ASK = "internal:ask"
"""A call of the peer's own tool that asks the user."""
DIES: Entry = {"die": True}
"""The peer is killed during this model call."""


def withdraws(call_id: str) -> Entry:
    """The peer no longer waits for this call."""
    return {"withdraw": call_id}


WEATHER = ToolDescriptor(
    name="get_weather",
    description="The weather in a city.",
    input_schema_json='{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}',
    read_only=True,
)
SAVE = ToolDescriptor(name="save", description="Keeps a note.")


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "id": call_id, "arguments": arguments}


def run_command(call_id: str, command: str, *, asks: bool = True) -> dict[str, Any]:
    """The model runs a command. `asks` says whether the peer is expected to ask for approval."""
    return {"name": RUN, "id": call_id, "arguments": {"command": command}, "asks": asks}


def delegated_call(name: str, call_id: str, source: str, gives: str) -> dict[str, Any]:
    """A call of a tool in a delegated source, which answers `gives`."""
    return {"name": name, "id": call_id, "source": source, "gives": gives}


def ask_user(call_id: str, *questions: Mapping[str, Any]) -> dict[str, Any]:
    """The model asks the user; a question is `{text, options: [label], multi_select}`."""
    return {"name": ASK, "id": call_id, "questions": list(questions)}


@dataclass(frozen=True)
class Need:
    """A capability without which a scenario is refused, which is then what it asserts."""

    name: str
    is_met: Callable[[LlmCapabilities], bool]


def _kind(kind: RequestKind) -> Callable[[LlmCapabilities], bool]:
    return lambda capabilities: kind in capabilities.routable_request_kinds


APPROVALS = Need("routable_request_kinds: approval", _kind(RequestKind.APPROVAL))
QUESTIONS = Need("routable_request_kinds: user_question", _kind(RequestKind.USER_QUESTION))
INTERNAL_TOOLS = Need("internal_tools", lambda one: bool(one.internal_tools))
IMAGES_IN_PROMPT = Need("images_in_prompt", lambda one: one.images_in_prompt)
IMAGES_IN_RESULTS = Need("images_in_tool_results", lambda one: one.images_in_tool_results)
COST = Need("reports_cost", lambda one: one.reports_cost)
USAGE = Need("reports_usage", lambda one: one.reports_usage)
HISTORY = Need("seed_history", lambda one: one.seed_history != SeedHistory.NONE)
RESUME = Need("resume", lambda one: one.resume != Resume.NONE)
POLICY = Need("supports_request_policy_delegation", lambda one: one.supports_request_policy_delegation)
STDIO_SOURCES = Need(
    "delegatable_tool_sources: mcp_stdio", lambda one: ToolSourceKind.MCP_STDIO in one.delegatable_tool_sources
)


def turn_option(name: str) -> Need:
    return Need(f"turn_options: {name}", lambda one: name in one.turn_options)


class Stage(Protocol):
    """Where a scenario plays: a connector, its peer, and a house that may be closed and opened again."""

    @property
    def capabilities(self) -> LlmCapabilities:
        """Of the connector with the options of this scenario."""
        ...

    @property
    def directory(self) -> Path:
        """Where the peer works."""
        ...

    @property
    def model(self) -> ScriptedModel | None:
        """The model behind the peer, for rows that have one."""
        ...

    @property
    def keeps_order(self) -> bool:
        """Whether the peer makes the calls of one round in the model's order."""
        ...

    def peer_name(self, name: str) -> str:
        """The peer's name of `RUN` or `ASK`."""
        ...

    async def begin(self, **options: Any) -> Talk:
        """A new conversation with the options of the scenario and these."""
        ...

    async def restart(self, talk: Talk) -> Talk:
        """Closes the whole house and opens a new one over the same journal; the same conversation in it."""
        ...

    def kill_peer(self, pid: int) -> None: ...


@dataclass(frozen=True)
class Scenario:
    """`run` raises `Divergence` where the connector does not keep the contract.

    Where a need is not met it must be refused: `run` then has to raise an error of the contract that says so.
    """

    name: str
    requirements: tuple[str, ...]
    script: Script
    run: Callable[[Stage], Awaitable[None]]
    tools: Sequence[ToolDescriptor] = (WEATHER, SAVE)
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the conversation, by name."""
    needs: tuple[Need, ...] = ()
    seconds: float = 60.0
    """A scenario that takes longer hangs."""

    @property
    def summary(self) -> str:
        """What it shows, in one line: the docstring of its module."""
        text = sys.modules[self.run.__module__].__doc__ or self.name
        return text.strip().splitlines()[0]

    @property
    def has_calls_at_once(self) -> bool:
        """Whether the model makes several calls in one round."""
        return any(len(entry.get("calls", ())) > 1 for turn in self.script for entry in turn)

    @property
    def internal_tools(self) -> list[str]:
        """The neutral names of the internal tools that the model uses."""
        names = [one["name"] for turn in self.script for entry in turn for one in entry.get("calls", ())]
        return sorted({name for name in names if name in (RUN, ASK)})


def pid_in(notices: Sequence[str]) -> int | None:
    """The process id that a peer's start was told with."""
    found = [match for text in notices if (match := re.search(r"\bpid (\d+)", text))]
    return int(found[-1][1]) if found else None
