"""Whether an agent would find credentials, as far as that can be seen without starting it and without any traffic."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from connectors.acp.agent import Agent
from harness.connector import Login

_STORED = {
    "claude-agent-acp": (".claude/.credentials.json", None),
    "codex-acp": (".codex/auth.json", "CODEX_HOME"),
    "gemini": (".gemini/oauth_creds.json", None),
    "opencode": (".local/share/opencode/auth.json", None),
}
"""Where an agent stores its login below HOME, and the variable that names another place for its directory."""
_WITHOUT = {"opencode": "none stored; models that need none may do"}
"""Agents that also work with nobody logged in."""


def login_of(agent: Agent, env: Mapping[str, str]) -> Login:
    """`env` is the agent's environment."""
    credentials = [name for name in agent.variables if name.endswith(("_API_KEY", "_TOKEN")) and env.get(name)]
    if credentials:
        return Login(True, f"the key in {credentials[0]}")
    if agent.name not in _STORED:
        return Login(None, "that is the agent's own business")
    place, moved_by = _STORED[agent.name]
    stored = Path(env.get("HOME", "/")) / place
    if moved_by is not None and env.get(moved_by):
        stored = Path(env[moved_by]) / stored.name
    if stored.is_file():
        return Login(True, f"the login in '{stored}'")
    if agent.name in _WITHOUT:
        return Login(None, _WITHOUT[agent.name], agent.login_remedy)
    if stored.with_name("config.toml").is_file():
        return Login(None, f"none stored; the settings beside '{stored}' may name another provider")
    if agent.name == "claude-agent-acp" and sys.platform == "darwin":
        return Login(None, "it would be in the keychain")
    return Login(False, "nobody is logged in", agent.login_remedy)
