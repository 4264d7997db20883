"""Whether an agent's login is found, without starting the agent and without a secret in what is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from connectors.acp import AcpConnector
from connectors.codex import CodexConnector
from connectors.copilot import CopilotConnector
from contract_tests.requirements import requirement
from harness.connector import Login, TellsLogin
from harness.contract import ConversationOptions
from harness.errors import ConnectorUnavailable
from harness.registry import Registry

SECRET = "gho_do_not_tell"
PROGRAMS = ("codex", "copilot", "opencode", "gemini", "claude-agent-acp", "codex-acp")
VERSIONS = {"codex": "0.171.0", "copilot": "1.0.102"}


class Machine:
    """A home directory and a PATH with programs that say their version and nothing else."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.home.mkdir()
        programs = directory / "bin"
        programs.mkdir()
        for name in PROGRAMS:
            program = programs / name
            program.write_text(f'#!/bin/sh\necho "{VERSIONS.get(name, "1.0.0")}"\n')
            program.chmod(0o700)
        self.environ = {"HOME": str(self.home), "PATH": f"{programs}:/usr/bin:/bin"}

    def store(self, place: str, text: str = "{}") -> None:
        file = self.home / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def registry(self, more: Mapping[str, str]) -> Registry:
        environ = {**self.environ, **more}
        made = (AcpConnector(environ), CodexConnector(environ), CopilotConnector(environ))
        return Registry({connector.name: connector for connector in made})

    async def login(self, name: str, more: Mapping[str, str] | None = None, **options: object) -> Login:
        asked = ConversationOptions(connector=name, connector_options_json=json.dumps(options))
        connector, resolved = self.registry(more or {}).resolve(asked)
        assert isinstance(connector, TellsLogin)
        return await connector.login(resolved)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@requirement("agents:login")
@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("codex", "codex login"),
        ("copilot", "copilot login"),
        ("acp:gemini", "GEMINI_API_KEY"),
        ("acp:claude-agent-acp", "claude /login"),
        ("acp:codex-acp", "codex login"),
    ],
)
async def test_nobody_logged_in_is_told_with_what_to_type(machine: Machine, name: str, remedy: str) -> None:
    login = await machine.login(name)
    assert (login.is_there, remedy in (login.remedy or "")) == (False, True)


@requirement("agents:login")
@pytest.mark.parametrize(
    ("name", "place", "text"),
    [
        ("codex", ".codex/auth.json", SECRET),
        ("copilot", ".copilot/config.json", f'// mine\n{{"lastLoggedInUser": {{"login": "me"}}, "t": "{SECRET}"}}'),
        ("copilot", ".copilot/config.json", f'{{"copilotTokens": {{"github.com:me": "{SECRET}"}}}}'),
        ("acp:gemini", ".gemini/oauth_creds.json", SECRET),
        ("acp:claude-agent-acp", ".claude/.credentials.json", SECRET),
        ("acp:codex-acp", ".codex/auth.json", SECRET),
        ("acp:opencode", ".local/share/opencode/auth.json", SECRET),
    ],
)
async def test_a_stored_login_is_found_and_not_told(machine: Machine, name: str, place: str, text: str) -> None:
    machine.store(place, text)
    login = await machine.login(name)
    assert login.is_there is True
    assert SECRET not in repr(login)


@requirement("agents:login")
@pytest.mark.parametrize(
    ("name", "variable"),
    [
        ("codex", "OPENAI_API_KEY"),
        ("copilot", "GH_TOKEN"),
        ("acp:gemini", "GEMINI_API_KEY"),
        ("acp:claude-agent-acp", "CLAUDE_CODE_OAUTH_TOKEN"),
        ("acp:opencode", "ANTHROPIC_API_KEY"),
    ],
)
async def test_a_key_in_the_environment_is_a_login(machine: Machine, name: str, variable: str) -> None:
    login = await machine.login(name, {variable: SECRET})
    assert login.is_there is True
    assert SECRET not in repr(login)


@requirement("agents:login")
async def test_what_cannot_be_told_is_not_called_a_no(machine: Machine) -> None:
    assert (await machine.login("acp:opencode")).is_there is None
    assert (await machine.login("acp", command=["/usr/bin/env"])).is_there is None
    machine.store(".codex/config.toml")
    assert (await machine.login("acp:codex-acp")).is_there is None
    machine.store(".copilot/config.json", '{"loggedInUsers": [], "copilotTokens": {}}')
    assert (await machine.login("copilot")).is_there is False
    machine.store(".config/gh/hosts.yml")
    machine.store("../bin/gh")
    (machine.home.parent / "bin" / "gh").chmod(0o700)
    assert (await machine.login("copilot")).is_there is None


@requirement("agents:login")
@pytest.mark.parametrize("name", ["codex", "copilot"])
async def test_a_conversation_without_a_login_does_not_begin_and_the_version_is_told(
    machine: Machine, name: str
) -> None:
    connector, options = machine.registry({}).resolve(ConversationOptions(connector=name))
    with pytest.raises(ConnectorUnavailable, match=f"type: {name} login") as refused:
        await connector.get_capabilities(options)
    detail = refused.value.detail
    told = (detail["reason"], detail["version"], detail["tested"])
    assert told == ("not_logged_in", VERSIONS[name], True)


@requirement("agents:login")
async def test_the_first_usable_connector_is_one_that_is_logged_in(machine: Machine) -> None:
    registry = machine.registry({})
    with pytest.raises(ConnectorUnavailable, match="no usable connector") as refused:
        await registry.first_usable(ConversationOptions())
    assert "name an 'agent' or a 'command'" in refused.value.message
    assert refused.value.message.endswith("the connector 'fake' needs no program and no key")
    machine.store(".copilot/config.json", '{"lastLoggedInUser": {"login": "me"}}')
    name, refusals = await registry.first_usable(ConversationOptions())
    assert (name, [error.detail["reason"] for error in refusals]) == ("copilot", ["not_logged_in"])
