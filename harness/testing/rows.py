"""The connectors of this installation as rows of the conformance matrix."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from harness.contract.options import ConversationOptions
from harness.local import LocalHarness
from harness.settings import Rights
from harness.store.memory import MemoryStore
from harness.surfaces.server import serve
from harness.surfaces.tokens import Token
from harness.testing import fake_script
from harness.testing.agent_rows import AGENTS, CLAUDE_NAMES, spell_for_claude
from harness.testing.row import MADE_UP_KEY, NO_WAY_OUT, Prepared, Row, scripted
from harness.testing.scenario import Scenario

# --- the fake connector ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def _prepare_fake(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
    yield Prepared(
        ConversationOptions(connector="fake", connector_options_json=fake_script.as_connector_options(scenario))
    )


FAKE = Row("fake", _prepare_fake, internal_names=fake_script.NAMES)

# --- another harness, with that connector ----------------------------------------------------------------------------


@asynccontextmanager
async def _prepare_remote(scenario: Scenario, directory: Path) -> AsyncGenerator[Prepared]:
    token = Token(secrets.token_urlsafe(), "conformance", Rights())
    script = json.loads(fake_script.as_connector_options(scenario))
    async with LocalHarness(store=MemoryStore()) as other, serve(other, tokens=[token]) as server:
        chosen = {"url": server.url, "token": token.secret, "connector": "fake", "options": script}
        yield Prepared(ConversationOptions(connector="remote", connector_options_json=json.dumps(chosen)))


REMOTE = Row("remote:fake", _prepare_remote, internal_names=fake_script.NAMES)


def _claude_options(url: str, directory: Path) -> Mapping[str, Any]:
    env = {"CLAUDE_CODE_MAX_RETRIES": "2", **NO_WAY_OUT}
    return {"key": MADE_UP_KEY, "base_url": url, "home": str(directory / "home"), "env": env}


def _claude(name: str) -> Row:
    return scripted(
        name,
        _claude_options,
        model="claude-sonnet-4-6",
        spell=spell_for_claude,
        internal_names=CLAUDE_NAMES,
        exempt={"request-withdrawn": "no scripted answer of the model makes this CLI take a request back"},
        program="claude",
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
        REMOTE,
        _claude("claude"),
        _claude("claude:bridge"),
        _model_loop("anthropic"),
        _model_loop("openai", "/v1"),
        _model_loop("openai:chat", "/v1"),
        _model_loop(
            "ollama",
            exempt={"refusal": "the API tells no refusal"},
            known_gaps={"longest-result": "a result is cut to a quarter of the context window, and nothing says so"},
        ),
        *AGENTS,
    )
}
