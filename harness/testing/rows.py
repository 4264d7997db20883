"""The connectors of this installation as rows of the conformance matrix: how each is put before a scripted model.

A row knows its connector by name and options only, as a user does.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from harness.contract.options import ConversationOptions
from harness.registry import Registry
from harness.scripted_model import open_scripted_model
from harness.scripted_model.server import ScriptedModel
from harness.testing import fake_script
from harness.testing.scenario import ASK, RUN, Entry, Scenario

MADE_UP_KEY = "sk-made-up"
_NO_WAY_OUT = {
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
class Row:
    """A connector with a variant, and what its peer calls things.

    `exempt` says for a scenario why it cannot be played at all with this peer, `known_gaps` what does not hold yet:
    such a scenario must fail, or the gap is to be taken out.
    """

    name: str
    prepare: Prepare
    internal_names: Mapping[str, str] = field(default_factory=dict[str, str])
    exempt: Mapping[str, str] = field(default_factory=dict[str, str])
    known_gaps: Mapping[str, str] = field(default_factory=dict[str, str])
    registry: Callable[[], Registry] = Registry
    is_live: bool = False
    """Starts a program that has to be installed."""

    def peer_name(self, name: str) -> str:
        return self.internal_names.get(name, name.replace(":", "_"))


# --- the fake connector ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def _prepare_fake(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
    yield Prepared(
        ConversationOptions(connector="fake", connector_options_json=fake_script.as_connector_options(scenario))
    )


FAKE = Row("fake", _prepare_fake, internal_names=fake_script.NAMES)


# --- connectors whose peer asks a model over HTTP --------------------------------------------------------------------

Spell: TypeAlias = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def scripted(
    name: str,
    connector_options: Callable[[str, Path], Mapping[str, Any]],
    *,
    model: str | None = None,
    spell: Spell | None = None,
    **more: Any,
) -> Row:
    """A row whose peer is put before a scripted model by these options; `spell` writes calls in the peer's words."""

    @asynccontextmanager
    async def prepare(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
        async with open_scripted_model(flat_script(scenario, spell or _plain)) as scripted_model:
            chosen = connector_options(scripted_model.url, directory)
            options = ConversationOptions(connector=name, model=model, connector_options_json=json.dumps(chosen))
            yield Prepared(options, scripted_model)

    return Row(name, prepare, **more)


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


def _spell_for_claude(one: Mapping[str, Any]) -> Mapping[str, Any]:
    if one["name"] == RUN:
        return {**one, "name": CLAUDE_NAMES[RUN]}
    if one["name"] == ASK:
        questions = [
            {
                "question": asked["text"],
                "header": f"Choice {number}",
                "options": [{"label": label, "description": f"{label}, please"} for label in asked["options"]],
                "multiSelect": asked.get("multi_select", False),
            }
            for number, asked in enumerate(one["questions"], 1)
        ]
        return {**one, "name": CLAUDE_NAMES[ASK], "arguments": {"questions": questions}}
    return one


CLAUDE_NAMES = {RUN: "Bash", ASK: "AskUserQuestion"}


def _claude_options(url: str, directory: Path) -> Mapping[str, Any]:
    env = {"CLAUDE_CODE_MAX_RETRIES": "2", **_NO_WAY_OUT}
    return {"key": MADE_UP_KEY, "base_url": url, "home": str(directory / "home"), "env": env}


def _claude(name: str) -> Row:
    return scripted(
        name,
        _claude_options,
        model="claude-sonnet-4-6",
        spell=_spell_for_claude,
        internal_names=CLAUDE_NAMES,
        exempt={"request-withdrawn": "no scripted answer of the model makes this CLI take a request back"},
        is_live=True,
    )


def _model_loop(
    name: str,
    path: str = "",
    *,
    exempt: Mapping[str, str] | None = None,
    known_gaps: Mapping[str, str] | None = None,
) -> Row:
    def options(url: str, directory: Path) -> Mapping[str, Any]:
        return {"base_url": url + path, "max_retries": 2}

    return scripted(
        name,
        options,
        model="m",
        exempt={
            "request-withdrawn": "the loop is ours and takes no request back",
            "peer-killed": "there is no process to kill; 'cut-stream' breaks the connection",
            **(exempt or {}),
        },
        known_gaps=known_gaps or {},
    )


ROWS: Mapping[str, Row] = {
    row.name: row
    for row in (
        FAKE,
        _claude("claude"),
        _model_loop("openai", "/v1"),
        _model_loop("openai:chat", "/v1"),
        _model_loop(
            "ollama",
            exempt={"refusal": "the API tells no refusal"},
            known_gaps={"longest-result": "a result is cut to a quarter of the context window, and nothing says so"},
        ),
    )
}
