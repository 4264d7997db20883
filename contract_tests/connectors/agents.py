"""The real agents before a scripted model: what their live tests share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harness.connector import Connector
from harness.contract import ConversationOptions
from harness.local import LocalHarness
from harness.registry import Registry
from harness.scripted_model import ScriptedModel, open_scripted_model
from harness.store.memory import MemoryStore
from harness.testing.talk import Talk

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


class Agent:
    """One conversation with a real agent, its model and its house."""

    def __init__(self, harness: LocalHarness, model: ScriptedModel, talk: Talk) -> None:
        self.harness = harness
        self.model = model
        self.talk = talk

    def results(self) -> dict[str, str | None]:
        """The tool results in the last request to the model, by call id."""
        return {past.call_id: past.result for past in self.model.requests[-1].past_calls}


@asynccontextmanager
async def open_agent(
    connector: Connector,
    script: Sequence[Mapping[str, Any]],
    options_for: Any,
    *,
    journal: MemoryStore | None = None,
    sources: Sequence[Any] = (),
    **options: Any,
) -> AsyncGenerator[Agent]:
    """A conversation whose model follows the script; `options_for(url)` leads the agent to that model."""
    registry = Registry({connector.name: connector})
    async with open_scripted_model(script) as model, LocalHarness(registry, store=journal) as harness:
        chosen = ConversationOptions.model_validate({"connector": connector.name, **options_for(model.url), **options})
        talk = Talk(harness, await harness.begin_conversation(chosen))
        if sources:
            await harness.delegate_tool_sources(talk.conversation_id, sources)
        yield Agent(harness, model, talk)


def workplace(directory: Path) -> str:
    work = directory / "work"
    work.mkdir(exist_ok=True)
    return str(work)
