"""A row of the conformance matrix: a connector, and how it is put before a scripted model.

A row knows its connector by name and options only, as a user does.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from harness.contract.options import ConversationOptions
from harness.registry import Registry
from harness.scripted_model import open_scripted_model
from harness.scripted_model.server import ScriptedModel
from harness.testing.scenario import Entry, Scenario

MADE_UP_KEY = "sk-made-up"
NO_WAY_OUT = {
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), "http://127.0.0.1:9"),
    **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1"),
}


@dataclass(frozen=True)
class Prepared:
    """A peer that is ready to follow a scenario, and the options that lead to it."""

    options: ConversationOptions
    model: ScriptedModel | None = None


Prepare: TypeAlias = Callable[[Scenario, Path], AbstractAsyncContextManager[Prepared]]


@dataclass(frozen=True)
class Words:
    """What a peer puts around every result that its model reads, to the letter; scenarios compare what is left."""

    around: re.Pattern[str]
    """Matches a whole result with them; its first group is the bare result."""
    told: str
    """What the matrix says of it wherever they were seen."""


@dataclass(frozen=True)
class Row:
    """A connector with a variant, and what its peer calls things.

    `exempt` says for a scenario why it cannot be played at all with this peer, `known_gaps` what does not hold yet:
    such a scenario must fail, or the gap is to be taken out, unless it is a `chance` whether it shows.
    """

    name: str
    prepare: Prepare
    internal_names: Mapping[str, str] = field(default_factory=dict[str, str])
    exempt: Mapping[str, str] = field(default_factory=dict[str, str])
    known_gaps: Mapping[str, str] = field(default_factory=dict[str, str])
    chance: frozenset[str] = frozenset()
    words: Words | None = None
    mixes_calls: str = ""
    """Where the calls of one round come in an order of chance: what the matrix says of it."""
    registry: Callable[[], Registry] = Registry
    program: str | None = None
    """The program that has to be installed."""
    program_option: str = "command"
    """The option of the connector that names another one."""

    @property
    def is_live(self) -> bool:
        return self.program is not None

    def peer_name(self, name: str) -> str:
        return self.internal_names.get(name, name.replace(":", "_"))


# --- connectors whose peer asks a model over HTTP --------------------------------------------------------------------

Spell: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def scripted(
    name: str,
    connector_options: Callable[[str, Path], Mapping[str, Any]],
    *,
    model: str | None = None,
    spell: Spell | None = None,
    words: Words | None = None,
    **more: Any,
) -> Row:
    """A row whose peer is put before a scripted model by these options; `spell` writes calls in the peer's words.

    `words` are those it puts around results: the scripted model quotes and logs results without them.
    """

    @asynccontextmanager
    async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
        script = flat_script(scenario, spell or _plain)
        async with open_scripted_model(script, words=words.around if words else None) as scripted_model:
            chosen = connector_options(scripted_model.url, directory)
            options = ConversationOptions(connector=name, model=model, connector_options_json=json.dumps(chosen))
            yield Prepared(options, scripted_model)

    return Row(name, prepare, words=words, **more)


def flat_script(scenario: Scenario, spell: Spell) -> list[dict[str, Any]]:
    """All model calls of all turns, as the scripted model takes them; what a model cannot do is left out."""
    entries = [entry for turn in scenario.script for entry in turn if "withdraw" not in entry]
    return [_plain_entry(entry, spell) for entry in entries]


def _plain_entry(entry: Entry, spell: Spell) -> dict[str, Any]:
    if "die" in entry:  # the model is still silent when somebody kills the peer
        return {"text": "", "hang": True}
    if "calls" not in entry:
        return dict(entry)
    return {**entry, "calls": [_plain(spell(one)) for one in entry["calls"]]}


def _plain(one: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in one.items() if name in ("name", "id", "arguments", "arguments_json")}
