"""One life of a harness whose peer is a bare model over HTTP; it may be killed at any write, or while the model speaks.

Each life is a process of its own, the model is in the process of the test. What the host is told goes to the diary that
`crash_oracle` reads.
"""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path

import anyio

from connectors.anthropic import AnthropicConnector
from connectors.openai import OpenAiConnector
from contract_tests.core.crash_world import TOOLS, Death, Diary, DyingStore, Host, Plan
from harness.contract import ConversationOptions, TurnOptions, TurnState, as_content
from harness.conversation import journal as journal_module
from harness.local import LocalHarness
from harness.registry import Registry
from harness.scripted_model.dialect import Dialect, ModelRequest
from harness.scripted_model.playback import Playback, Played
from harness.scripted_model.script import ScriptEntry, read_script

ROUNDS = read_script(
    [
        {
            "text": ["I will ", "look twice."],
            "calls": [{"name": "look", "id": "c1"}, {"name": "look", "id": "c2", "arguments": {"n": 2}}],
        },
        {"text": "Once more.", "calls": [{"name": "act", "id": "c3", "arguments": {"n": 3}}]},
        {
            "text": "At last.",
            "calls": [{"name": "act", "id": "c4", "arguments": {"n": 4}}, {"name": "unknown", "id": "c5"}],
        },
        {"text": "{{results.c1}}, {{results.c2}}, {{results.c3}}, {{results.c4}}"},
    ]
)
CALLS = ["c1", "c2", "c3", "c4", "c5"]
_ROUND_AFTER = {0: 1, 2: 2, 3: 3, 5: 4}
"""So many calls are in the history when this round begins."""


class ByHistory(Playback):
    """What the model says follows from what it is told: a call that is repeated hears the same."""

    def __init__(self, hangs_in: int | None = None) -> None:
        super().__init__(ROUNDS, run="")
        self.hangs_in = hangs_in
        """The round that the model begins and never ends."""

    def next_for(self, request: ModelRequest, dialect: Dialect) -> Played:
        number = _ROUND_AFTER[len(request.past_calls)]
        entry: ScriptEntry = ROUNDS[number - 1]
        if number == self.hangs_in:
            entry = entry.model_copy(update={"hang": True})
        return Playback((entry,), run=f"{number:012x}").next_for(request, dialect)


@dataclass(frozen=True)
class Life:
    row: str
    base_url: str
    death: Death | None = None
    dies_in: int | None = None
    """The process is killed when its host has heard the beginning of this round."""


@dataclass(kw_only=True)
class ModelHost(Host):
    """Knows its keys and nothing else."""

    life: Life
    rounds_over: int = 0

    async def do_all(self) -> None:
        options = ConversationOptions(
            connector=self.life.row,
            model="m",
            client_key="job",
            tools=TOOLS,
            connector_options_json=json.dumps({"base_url": self.life.base_url}),
        )
        conversation_id = await self.llm.begin_conversation(options)
        turn_id = await self.llm.submit_user_message(conversation_id, as_content("go"), TurnOptions(client_key="go"))
        await self._serve(conversation_id, turn_id, is_cancelled=False)

    async def _poll(self, ids: tuple[str, str], since: int, max_wait_ms: int) -> TurnState:
        state = await super()._poll(ids, since, max_wait_ms)
        for item in state.new_output_items:
            self.rounds_over += item.kind == "message"
            if item.kind == "text_delta" and self.rounds_over + 1 == self.life.dies_in:
                self.diary.note("killed")
                os.kill(os.getpid(), signal.SIGKILL)
        return state


def run_life(directory: str, life: Life) -> None:
    """The entry point of a life's process."""

    async def main() -> None:
        if life.death is not None:
            journal_module.LATER_SECONDS = 60  # so that writes follow from what happens, never from the time it takes
        diary = Diary(Path(directory) / "diary.jsonl")
        diary.note("life")
        store = DyingStore(Path(directory) / "journal.db", diary, life.death, pauses=(0,))
        registry = Registry({"openai": OpenAiConnector(), "anthropic": AnthropicConnector()})
        with anyio.fail_after(30):
            async with LocalHarness(registry, store=store) as llm:
                await ModelHost(llm, diary, Plan(), life=life).do_all()
        diary.note("finished")

    anyio.run(main)
